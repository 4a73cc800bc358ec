//! What can go wrong with an archive. No secret is ever part of it.

use std::path::PathBuf;

/// A failed call of this package.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The settings say nothing that can be opened.
    #[error("{setting}: {why}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What would be right.
        why: String,
    },
    /// A file with a secret cannot be read.
    #[error("cannot read the secret in {}: {source}", file.display())]
    Secret {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder or the object store does not do what it was asked.
    #[error("the archive at {place} fails while {doing}: {source}")]
    Store {
        /// Which archive.
        place: String,
        /// What was tried.
        doing: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file is not what its name says.
    #[error("{key} of the archive is damaged: {why}")]
    Damaged {
        /// Which file.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// Rows that no Parquet file holds: a fault of ours.
    #[error("cannot write a Parquet file: {0}")]
    Format(#[from] parquet::errors::ParquetError),
}

impl ArchiveError {
    /// Whether it may pass by itself: the store is out of reach.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Store { .. })
    }
}
