//! What a program prints for a person: lines, and an error with its causes. A closed pipe ends the output, not the program in a panic.

use std::io::Write;

/// Prints a line on standard output.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a line on standard error.
pub fn say_err(line: &str) {
    let mut err = std::io::stderr().lock();
    if writeln!(err, "{line}").is_err() {
        std::process::exit(2);
    }
}

/// An error and its causes, outermost first, as one line. A cause that the one before it tells already is left out.
pub fn error_line(program: &str, chain: impl IntoIterator<Item = String>) -> String {
    let mut line = program.to_owned();
    let mut said = String::new();
    for cause in chain {
        if said.is_empty() || !said.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
            said = cause;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::error_line;

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let chain = ["reading the file: not found", "not found", "the disk is gone"].map(str::to_owned);
        assert_eq!(
            error_line("gpuledger", chain),
            "gpuledger: reading the file: not found: the disk is gone"
        );
    }
}
