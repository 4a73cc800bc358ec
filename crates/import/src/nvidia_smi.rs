//! `nvidia-smi -q -x` captures: one inventory event a capture.
//!
//! A capture has no MIG placements, and before driver 550 no MIG UUIDs: `placement` is left out, and an instance without
//! UUID gets the vendor's older name `MIG-<gpu>/<gpu instance>/<compute instance>`. A profile is derived only where memory and
//! SM count leave one choice ([`profile`]). A GPU without a UUID of its own is named by node and bus address, and listed.

mod counted;
mod document;
mod gpu;
mod profile;

use crate::report::{Reason, Reject, Report, Unmapped};
use crate::run::progress;
use crate::table::name_of;
use crate::{ImportError, Options, Sink, clock, emit};
use chrono::NaiveDateTime;
use document::{Document, Documents};
use gpuledger_domain::time::Instant;
use std::io::BufRead;
use std::path::Path;

/// Reads the captures of one node (a file of `nvidia-smi -l` holds several) and emits an inventory for each. `name` is the
/// file's name, for messages and for the node's name where the options give none.
///
/// # Errors
/// The file is no capture or is cut off within the first, carries no time where the options give none, or reading or
/// writing failed.
pub fn nvidia_smi(
    input: impl BufRead,
    name: &str,
    options: &Options,
    sink: &mut Sink<'_>,
) -> Result<Report, ImportError> {
    let mut documents = Documents::new(input);
    let mut report = Report::default();
    let mut any = false;
    loop {
        match documents.next_document() {
            Ok(Some(document)) => {
                let mut import = Import { file: name, options, report: &mut report };
                let event = import.inventory(&document)?;
                sink(event).map_err(|cause| ImportError::Write { file: name.to_owned(), cause })?;
                report.emitted += 1;
                any = true;
                progress(options, documents.bytes(), &report);
            }
            Ok(None) if any => return Ok(report),
            Ok(None) => {
                let message = "is empty; expected the output of `nvidia-smi -q -x`".to_owned();
                return Err(ImportError::Format { file: name.to_owned(), line: 1, message });
            }
            Err(fault) if any => {
                let reject = Reject::new(Reason::BadLine, None, fault.message);
                Import { file: name, options, report: &mut report }.note(fault.line, reject);
                return Ok(report);
            }
            Err(fault) => {
                return Err(ImportError::Format {
                    file: name.to_owned(),
                    line: fault.line,
                    message: fault.message,
                });
            }
        }
    }
}

/// What one capture is read with, and where its notes go.
struct Import<'a> {
    file: &'a str,
    options: &'a Options,
    report: &'a mut Report,
}

impl Import<'_> {
    fn inventory(&mut self, document: &Document) -> Result<serde_json::Value, ImportError> {
        let at = self.at(document)?;
        let node = self.node()?;
        let gpus = gpu::all(self, document, &node, &self.options.geometry);
        if let Some(attached) = document.attached.as_deref().and_then(|n| n.parse::<usize>().ok())
            && attached > document.gpus.len()
        {
            let found = document.gpus.len();
            let message =
                format!("{attached} GPUs are attached and {found} are in the capture; take a whole capture");
            self.note(document.line, Reject::new(Reason::GpuMissing, Some("attached_gpus"), message));
        }
        let boot_id = self.options.boot_id.as_deref().unwrap_or("unknown");
        Ok(emit::inventory(&node, boot_id, at, gpus))
    }

    fn at(&mut self, document: &Document) -> Result<Instant, ImportError> {
        if let Some(at) = self.options.at {
            let outside = || self.format(document.line, format!("{at} lies outside the years 1970 to 9999"));
            return clock::instant(at).ok_or_else(outside);
        }
        let text = document.timestamp.as_deref().unwrap_or("");
        let local = NaiveDateTime::parse_from_str(text, "%a %b %e %H:%M:%S %Y").map_err(|_| {
            let shown = crate::report::shown(text);
            self.format(document.line, format!("field timestamp: {shown} is not such as `Fri Aug 21 09:23:10 2026`; give the time as an option"))
        })?;
        let read = clock::in_zone(local, text, self.options.zone)
            .map_err(|e| self.format(document.line, format!("field timestamp: {e}")))?;
        if let clock::Read::Two(..) = read {
            self.report.add(Reason::TwiceLocalTime);
        }
        match read {
            clock::Read::One(at) | clock::Read::Two(at, _) => Ok(at),
        }
    }

    fn node(&self) -> Result<String, ImportError> {
        let stem = || Path::new(self.file).file_stem().and_then(|s| s.to_str()).map(str::to_owned);
        let node = self.options.node.clone().or_else(stem).unwrap_or_default();
        match name_of("node", &node) {
            Ok(_) => Ok(node),
            Err(reject) => Err(ImportError::Option {
                file: self.file.to_owned(),
                message: format!("node: {}", reject.message),
            }),
        }
    }

    fn format(&self, line: u64, message: String) -> ImportError {
        ImportError::Format { file: self.file.to_owned(), line, message }
    }

    fn note(&mut self, line: u64, note: Reject) {
        self.report.add(note.reason);
        let file = self.file.to_owned();
        let case = Unmapped { file, line, field: note.field, reason: note.reason, message: note.message };
        self.report.list(self.options.keep_unmapped, case);
    }
}

#[cfg(test)]
mod tests;
