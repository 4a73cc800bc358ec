//! The common frame of the row formats: reads lines, lets a format turn each into events, and keeps the report.

use crate::lines::Lines;
use crate::report::{Reason, Reject, Report, Unmapped};
use crate::{ImportError, Options, Progress, Sink};
use serde_json::Value;
use std::io::BufRead;

/// Rows between two reports of progress.
const PROGRESS_ROWS: u64 = 1024;

/// A format whose rows are lines.
pub(crate) trait RowFormat {
    /// Looks at the first line. `true`: it was a header and is no row.
    fn header(&mut self, first: &str) -> Result<bool, String>;

    /// Turns a row into events.
    fn row(&mut self, line: &str, out: &mut Out<'_, '_>) -> Result<(), RowError>;

    /// Has the last word, after the last row.
    fn end(&mut self, report: &mut Report, file: &str);
}

/// Why a row ended early.
#[derive(Debug)]
pub(crate) enum RowError {
    /// The row gives no event.
    Reject(Reject),
    /// The sink failed.
    Write(std::io::Error),
}

impl From<Reject> for RowError {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}

/// Where a row's events and notes go.
pub(crate) struct Out<'a, 's> {
    file: &'a str,
    line: u64,
    keep: usize,
    report: &'a mut Report,
    sink: &'a mut Sink<'s>,
}

impl Out<'_, '_> {
    /// Number of the row's line, from 1.
    pub(crate) const fn line(&self) -> u64 {
        self.line
    }

    /// Emits one event.
    pub(crate) fn event(&mut self, event: Value) -> Result<(), RowError> {
        (self.sink)(event).map_err(RowError::Write)?;
        self.report.emitted += 1;
        Ok(())
    }

    /// Notes a reason beside events that are emitted all the same, or a row without one.
    pub(crate) fn note(&mut self, note: Reject) {
        self.report.add(note.reason);
        if note.reason.is_listed() {
            let case = Unmapped {
                file: self.file.to_owned(),
                line: self.line,
                field: note.field,
                reason: note.reason,
                message: note.message,
            };
            self.report.list(self.keep, case);
        }
    }
}

/// Runs a format over a file.
pub(crate) fn run(
    format: &mut dyn RowFormat,
    input: impl BufRead,
    file: &str,
    options: &Options,
    sink: &mut Sink<'_>,
) -> Result<Report, ImportError> {
    let mut lines = Lines::new(input, options.max_line_bytes);
    let mut report = Report::default();
    let mut started = false;
    loop {
        let read = lines.next_line().map_err(|cause| ImportError::Read { file: file.to_owned(), cause })?;
        let Some(line) = read.map(|line| line.map(str::to_owned)) else { break };
        if line.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        let number = lines.number();
        if !std::mem::replace(&mut started, true) {
            let first = line.as_deref().unwrap_or("");
            let message = |message| ImportError::Format { file: file.to_owned(), line: number, message };
            if format.header(first).map_err(message)? {
                continue;
            }
        }
        report.read += 1;
        let mut out =
            Out { file, line: number, keep: options.keep_unmapped, report: &mut report, sink: &mut *sink };
        match line.map_err(RowError::from).and_then(|text| format.row(&text, &mut out)) {
            Ok(()) => {}
            Err(RowError::Reject(reject)) => out.note(reject),
            Err(RowError::Write(cause)) => return Err(ImportError::Write { file: file.to_owned(), cause }),
        }
        if report.read.is_multiple_of(PROGRESS_ROWS) {
            progress(options, lines.bytes(), &report);
        }
    }
    if !started && let Err(message) = format.header("") {
        return Err(ImportError::Format { file: file.to_owned(), line: 1, message });
    }
    if started && !lines.ended() {
        let note = Reject::new(
            Reason::NoFinalNewline,
            None,
            "the file does not end with a line end: its last row may be cut",
        );
        Out { file, line: lines.number(), keep: options.keep_unmapped, report: &mut report, sink }.note(note);
    }
    format.end(&mut report, file);
    progress(options, lines.bytes(), &report);
    Ok(report)
}

/// Tells the caller how far the import has come.
pub(crate) fn progress(options: &Options, bytes: u64, report: &Report) {
    if let Some(tell) = &options.progress {
        tell(Progress { bytes, rows: report.read, events: report.emitted });
    }
}
