//! What can go wrong in the log.

use gpuledger_storage::StorageError;
use gpuledger_tlog::checkpoint::CheckpointError;
use gpuledger_tlog::note::NoteError;
use gpuledger_trail::keys::KeyError;
use gpuledger_trail::stored::StoredError;
use gpuledger_trail::subjects::SubjectsError;
use std::path::PathBuf;

/// The log cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The database said no.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// Leaves or tiles are not as they must be.
    #[error("{0}")]
    Stored(#[from] StoredError),
    /// Keys of subjects.
    #[error("{0}")]
    Keys(#[from] KeyError),
    /// The signer said no, or does not answer.
    #[error("{0}")]
    Signer(#[from] SignerError),
    /// Hashing stored leaves again gives another root than the stored hashes: the database was changed. Nothing is signed.
    #[error(
        "refusing to sign: {leaves} stored leaves hashed again give root {again}, stored hashes give {stored}"
    )]
    Rehash {
        /// Size of the tree.
        leaves: u64,
        /// From the leaves.
        again: String,
        /// From the tiles.
        stored: String,
    },
    /// The database is older than what was signed.
    #[error(
        "refusing to sign: the last signed head has {signed} leaves, the database {stored}: it was restored from an older backup, or leaves were removed"
    )]
    Behind {
        /// Size of the signed head.
        signed: u64,
        /// Leaves in the database.
        stored: u64,
    },
    /// The beginning of the log is not what was signed.
    #[error(
        "refusing to sign: the stored tree of {size} leaves has root {stored}, the signed head {signed}: the log was rewritten"
    )]
    Rewritten {
        /// Size of the signed head.
        size: u64,
        /// Root by the database.
        stored: String,
        /// Root that was signed.
        signed: String,
    },
    /// A task ended before its time.
    #[error("composing leaves was broken off")]
    BrokenOff,
    /// A subject cannot be erased.
    #[error("not erased: {0}")]
    NotErased(String),
}

impl From<SubjectsError> for AuditError {
    fn from(error: SubjectsError) -> Self {
        match error {
            SubjectsError::Storage(error) => Self::Storage(error),
            SubjectsError::Keys(error) => Self::Keys(error),
        }
    }
}

/// The signer said no.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// A file of the signer.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why, and what would be right.
        why: String,
    },
    /// The head is smaller than the last signed one.
    #[error("refusing to sign a head of {asked} leaves: one of {signed} is signed")]
    Smaller {
        /// What was asked for.
        asked: u64,
        /// What is signed.
        signed: u64,
    },
    /// The head is not an extension of the last signed one.
    #[error("refusing to sign: the head of {asked} leaves does not extend the signed one of {signed}: {why}")]
    Forked {
        /// What was asked for.
        asked: u64,
        /// What is signed.
        signed: u64,
        /// What the proof lacks.
        why: String,
    },
    /// A note.
    #[error("{0}")]
    Note(#[from] NoteError),
    /// A checkpoint.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// The signer behind a socket.
    #[error("the signer at {}: {why}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// A task ended before its time.
    #[error("signing was broken off")]
    BrokenOff,
}

impl SignerError {
    /// Of a file.
    pub(crate) fn file(path: &std::path::Path, why: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), why: why.to_string() }
    }
}
