//! What can go wrong with the spool, said so that an operator knows what to do.

use super::reason::Reason;
use gpuledger_wire::EventError;
use std::io;
use std::path::PathBuf;

/// The spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process has it.
    #[error("the spool {} is in use by another process: each collector needs a folder of its own", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder could not be made, read or written.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SpoolError {
    /// For `map_err`: names what was being done to what.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

/// An event that was not kept. A window's time becomes a gap of the next window that is; a fact must be offered again.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// The spool has as many bytes as it may have.
    #[error("the spool is full: {bytes} of {limit} bytes wait to be acknowledged")]
    SpoolFull {
        /// Bytes on disk.
        bytes: u64,
        /// How many there may be for this kind of event.
        limit: u64,
    },
    /// The disk did not take it.
    #[error(transparent)]
    Disk(SpoolError),
    /// The event is longer than events may be.
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The event is none.
    #[error(transparent)]
    Invalid(EventError),
}

impl NotKept {
    /// Why, in one word.
    pub fn reason(&self) -> Reason {
        match self {
            Self::SpoolFull { .. } => Reason::SpoolFull,
            Self::Disk(SpoolError::Io { source, .. }) => Reason::of_write(source),
            Self::Disk(SpoolError::InUse { .. }) => Reason::DiskFailed,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::Invalid(_) => Reason::Invalid,
        }
    }
}
