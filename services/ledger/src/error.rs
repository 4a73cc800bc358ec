//! What can go wrong in the ledger. A bad event is no error: it is parked.

use crate::archive::ArchivingError;
use gpuledger_books::BooksError;
use gpuledger_storage::StorageError;
use gpuledger_storage::retry::Retryable;
use gpuledger_trail::keys::KeyError;
use gpuledger_trail::subjects::SubjectsError;

/// The ledger cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database said no.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The books cannot be read.
    #[error("{0}")]
    Books(#[from] BooksError),
    /// An input file cannot be read.
    #[error("{file}: {source}")]
    Input {
        /// Which.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Telemetry cannot be archived, or restored.
    #[error("{0}")]
    Archive(#[from] ArchivingError),
    /// Staged telemetry cannot be written, or read back: the database was changed by hand, or by a newer version.
    #[error("staged telemetry: {0}")]
    Block(String),
    /// Keys of subjects cannot be had: nothing personal is stored without them.
    #[error("{0}")]
    Keys(#[from] KeyError),
    /// The broker said no.
    #[error("{0}")]
    Messaging(#[from] gpuledger_messaging::MessagingError),
    /// The clock was put back.
    #[error(
        "the clock says {now}, but this ledger has already seen {seen}: GPULEDGER_NOW and --now never go back"
    )]
    ClockWentBack {
        /// What it says.
        now: gpuledger_domain::time::Instant,
        /// What was seen.
        seen: gpuledger_domain::time::Instant,
    },
}

impl From<SubjectsError> for LedgerError {
    fn from(error: SubjectsError) -> Self {
        match error {
            SubjectsError::Storage(error) => Self::Storage(error),
            SubjectsError::Keys(error) => Self::Keys(error),
        }
    }
}

impl LedgerError {
    /// Whether what was to be written is at fault, and not the server.
    pub fn is_about_data(&self) -> bool {
        match self {
            Self::Storage(error) | Self::Books(BooksError::Storage(error)) => error.is_about_data(),
            Self::Archive(_)
            | Self::Block(_)
            | Self::Books(_)
            | Self::Keys(_)
            | Self::Input { .. }
            | Self::Messaging(_)
            | Self::ClockWentBack { .. } => false,
        }
    }
}

impl Retryable for LedgerError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Storage(error) | Self::Books(BooksError::Storage(error)) => error.is_transient(),
            Self::Archive(_)
            | Self::Block(_)
            | Self::Books(_)
            | Self::Keys(_)
            | Self::Input { .. }
            | Self::Messaging(_)
            | Self::ClockWentBack { .. } => false,
        }
    }
}
