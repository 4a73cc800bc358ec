//! What the database says, as cases a caller can act on.

use std::error::Error;
use std::fmt;

/// A failed call of this package. Neither the connection URL nor a password is ever part of it.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The URL given is none of Postgres.
    #[error("the database URL cannot be read: want postgres://USER@HOST:PORT/DATABASE")]
    BadUrl,
    /// No server answers, or it takes no connections. Trying again later may help.
    #[error("the database is unreachable: {reason}")]
    Unreachable {
        /// Host and port, and what happened.
        reason: String,
        /// Cause.
        source: Option<DriverError>,
    },
    /// The server is too old, or lacks what the schema needs.
    #[error("PostgreSQL {found} is too old: want 15 or newer")]
    TooOld {
        /// Its version as it says it.
        found: String,
    },
    /// The schema is missing or older than this program.
    #[error("the database is not migrated ({reason}): run `gpuledger migrate`")]
    NotMigrated {
        /// What is missing.
        reason: String,
    },
    /// The schema was made by a newer program, or an applied migration was edited.
    #[error("migrations cannot be applied: {reason}")]
    Migration {
        /// Which one, and why.
        reason: String,
        /// Cause.
        source: Option<DriverError>,
    },
    /// A constraint or a guard of the database refused the statement (SQLSTATE class 23).
    #[error("refused by the database ({constraint}): {message}")]
    Refused {
        /// Name of the constraint, for example `journal_balance` or `append_only`.
        constraint: String,
        /// What the database said.
        message: String,
        /// Cause.
        source: DriverError,
    },
    /// The role may not do this.
    #[error("permission denied by the database: {message}")]
    Denied {
        /// What the database said.
        message: String,
        /// Cause.
        source: DriverError,
    },
    /// The transaction lost against another one and may simply be repeated.
    #[error("the transaction lost against another one: {message}")]
    Contention {
        /// What the database said.
        message: String,
        /// Cause.
        source: DriverError,
    },
    /// Another consumer has taken the partition over, or its offset moved: this batch must not commit (I-3).
    #[error(
        "fenced: {topic}/{partition} of group {group} is no longer at offset {expected:?}: another consumer moved it"
    )]
    Fenced {
        /// Consumer group.
        group: String,
        /// Topic.
        topic: String,
        /// Partition.
        partition: i32,
        /// Offset the batch began at; none: the first of all.
        expected: Option<i64>,
    },
    /// An argument no row can hold.
    #[error("{what}: {why}")]
    Invalid {
        /// Which argument.
        what: String,
        /// What would be right.
        why: String,
    },
    /// Anything else: a bug, a full disk.
    #[error("database error while {doing}: {message}")]
    Other {
        /// What was tried.
        doing: &'static str,
        /// What the driver said.
        message: String,
        /// Cause.
        source: Option<DriverError>,
    },
}

/// The driver's own error, kept as a cause and not as a type to match on.
#[derive(Debug)]
pub struct DriverError(Box<dyn Error + Send + Sync>);

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl StorageError {
    /// Whether the same transaction may be tried again at once: serialization failure or deadlock.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Contention { .. })
    }

    /// Whether the database could not be reached (exit code 3 of the command line).
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether what was to be written is at fault, and not the server: another event may well be taken.
    pub fn is_about_data(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Invalid { .. })
    }

    /// Name of the constraint that refused, where one did.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Refused { constraint, .. } => Some(constraint),
            Self::BadUrl
            | Self::Unreachable { .. }
            | Self::TooOld { .. }
            | Self::NotMigrated { .. }
            | Self::Migration { .. }
            | Self::Denied { .. }
            | Self::Contention { .. }
            | Self::Fenced { .. }
            | Self::Invalid { .. }
            | Self::Other { .. } => None,
        }
    }

    /// An argument that no row can hold.
    pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }
}

/// Puts a context on the driver's result.
pub(crate) trait Doing<T> {
    /// `doing` completes "database error while …".
    fn doing(self, doing: &'static str) -> Result<T, StorageError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, StorageError> {
        self.map_err(|error| classify(error, doing))
    }
}

/// The case of a driver error, by SQLSTATE where the server spoke.
pub(crate) fn classify(error: sqlx::Error, doing: &'static str) -> StorageError {
    let message = describe(&error);
    if is_connection_loss(&error) {
        return StorageError::Unreachable { reason: message, source: Some(DriverError(Box::new(error))) };
    }
    let (code, constraint) = match &error {
        sqlx::Error::Database(said) => {
            (said.code().map(|c| c.into_owned()), said.constraint().map(str::to_owned))
        }
        _ => (None, None),
    };
    let source = DriverError(Box::new(error));
    match code.as_deref().unwrap_or_default() {
        // Serialization failure, deadlock, and a lock that was not to be had in time.
        "40001" | "40P01" | "55P03" => StorageError::Contention { message, source },
        "42501" => StorageError::Denied { message, source },
        // Undefined table or function.
        "42P01" | "42883" => StorageError::NotMigrated { reason: message },
        // Values a column cannot hold, integrity, and rows too large for an index.
        code if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => StorageError::Refused {
            constraint: constraint.unwrap_or_else(|| format!("SQLSTATE {code}")),
            message,
            source,
        },
        code if is_unavailable(code) => StorageError::Unreachable { reason: message, source: Some(source) },
        _ => StorageError::Other { doing, message, source: Some(source) },
    }
}

/// The server's own sentence, without the driver's preamble.
fn describe(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(said) => said.message().to_owned(),
        sqlx::Error::PoolTimedOut => "all connections of the pool are in use".to_owned(),
        other => other.to_string(),
    }
}

fn is_connection_loss(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    )
}

/// Connection exceptions, a server that starts, stops or is full, and a login or database that it does not take.
fn is_unavailable(code: &str) -> bool {
    code.starts_with("08")
        || code.starts_with("57P")
        || code.starts_with("28")
        || matches!(code, "53300" | "3D000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_unreachable() {
        let error = classify(sqlx::Error::Io(std::io::Error::other("reset")), "testing");
        assert!(error.is_unreachable(), "{error}");
        assert!(!error.is_transient());
    }

    #[test]
    fn a_row_that_cannot_be_read_is_other() {
        let error = classify(sqlx::Error::RowNotFound, "reading the state");
        assert!(error.to_string().starts_with("database error while reading the state: "), "{error}");
    }
}
