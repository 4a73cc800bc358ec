//! The record of calls, a line each, for a replay.

use super::argument::Argument;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// An open record.
pub(super) struct Record(File);

impl Record {
    /// Opens a record; what stands in it stays.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        File::options().create(true).append(true).open(path).map(Self)
    }

    /// Adds a call: its name and each argument after a space. A line is one write, so that lines of several threads stay whole.
    pub(super) fn line(&self, name: &str, arguments: &[&dyn Argument]) {
        thread_local!(static LINE: RefCell<String> = const { RefCell::new(String::new()) });
        LINE.with_borrow_mut(|line| {
            line.clear();
            line.push_str(name);
            for argument in arguments {
                line.push(' ');
                // Writing to a string cannot fail, and a full disk must not change what the client sees.
                let _ = argument.record(line);
            }
            line.push('\n');
            let _ = (&self.0).write_all(line.as_bytes());
        });
    }
}
