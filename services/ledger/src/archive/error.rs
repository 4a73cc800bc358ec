//! What can go wrong between the database and the archive.

use gpuledger_archive::ArchiveError;
use gpuledger_wire::block::BlockError;

/// Telemetry cannot be archived, or restored.
#[derive(Debug, thiserror::Error)]
pub enum ArchivingError {
    /// The archive does not do what it was asked.
    #[error("{0}")]
    Archive(#[from] ArchiveError),
    /// A block of the database cannot be opened.
    #[error("{0}")]
    Block(#[from] BlockError),
    /// A window of a block or a file is none that was ever accepted.
    #[error("window {id} of {source_name} cannot be read: {why}")]
    Window {
        /// CloudEvents `source`.
        source_name: String,
        /// CloudEvents `id`.
        id: String,
        /// What is wrong.
        why: String,
    },
    /// The archive has files of an hour that this database does not know.
    #[error(
        "the archive at {place} holds {key}, which this database does not know: it belongs to another ledger, or was written after the \
         backup that this database comes from. Let archive_url name an empty place; `gpuledger replay --archive {place}` brings what the database lacks"
    )]
    Foreign {
        /// Which archive.
        place: String,
        /// The first such file.
        key: String,
    },
}
