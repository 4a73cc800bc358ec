//! The one place that prints. A closed pipe ends the output, not the program in a panic.

use std::io::Write;

/// Prints a line on standard output.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a line on standard error.
pub(crate) fn say_err(line: &str) {
    let mut err = std::io::stderr().lock();
    if writeln!(err, "{line}").is_err() {
        std::process::exit(2);
    }
}
