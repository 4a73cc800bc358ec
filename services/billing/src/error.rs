//! Why a bill could not be made, shown or issued.

use gpuledger_domain::money::MoneyError;
use gpuledger_domain::rating::{PeriodError, RateError};

/// What went wrong, in words for the one who asked.
#[derive(Debug, thiserror::Error)]
pub enum BillingError {
    /// Usage could not be rated.
    #[error("{0}")]
    Rate(#[from] RateError),
    /// An amount is too large.
    #[error("{0}")]
    Money(#[from] MoneyError),
    /// Not a month, or no edge in a zone.
    #[error("{0}")]
    Period(#[from] PeriodError),
    /// The database said no.
    #[error("{0}")]
    Storage(#[from] gpuledger_storage::StorageError),
    /// An applied object cannot be used.
    #[error("{kind} {id:?}: {why}")]
    Object {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// Why not.
        why: String,
    },
    /// The books cannot be read.
    #[error("{0}")]
    Books(#[from] gpuledger_books::BooksError),
    /// Someone else changed the document at the same time; nothing was written.
    #[error("document {0:?} was changed at the same time; try again")]
    Changed(String),
    /// Only a draft can be discarded.
    #[error("document {id:?} is {status}, and only a draft can be discarded")]
    NotADraft {
        /// Which.
        id: String,
        /// What it is.
        status: String,
    },
    /// A later document rests on it.
    #[error(
        "document {id:?} cannot be discarded: {later:?} corrects its period or takes over what it carries; discard that one first"
    )]
    BuiltOn {
        /// Which.
        id: String,
        /// The later one.
        later: String,
    },
    /// There is no such document or line.
    #[error("{0}")]
    NotFound(String),
    /// The page could not be laid out.
    #[error("the document could not be rendered")]
    Render(#[source] askama::Error),
    /// The table could not be written.
    #[error("the document could not be written as csv")]
    Csv(#[source] csv::Error),
    /// A stored document is not of the form this version writes.
    #[error("document {id:?} cannot be read")]
    Document {
        /// Which.
        id: String,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// A member of a stored document is not what it should be.
    #[error("document {id:?}: {member} {text:?} cannot be read")]
    Member {
        /// Which document.
        id: String,
        /// Which member.
        member: &'static str,
        /// What it says.
        text: String,
    },
}
