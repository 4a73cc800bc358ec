//! What can go wrong when the books are read.

use gpuledger_storage::StorageError;

/// The books cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The database said no.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// An accepted fact is not readable any more: the database was changed by hand, or by a newer version.
    #[error("fact {seq} ({source_name} {id}) cannot be read: {why}")]
    Fact {
        /// Order of acceptance.
        seq: i64,
        /// Who said it.
        source_name: String,
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// An applied object is not readable any more.
    #[error("{kind} {id} cannot be read: {why}")]
    Object {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: String,
    },
}
