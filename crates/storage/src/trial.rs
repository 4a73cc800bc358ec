//! A part of a transaction that may be undone without the rest.

use crate::error::{Doing, StorageError};
use sqlx::{Executor, PgConnection};

/// Begins a trial; trials nest.
///
/// # Errors
/// Driver errors.
pub async fn begin(tx: &mut PgConnection) -> Result<(), StorageError> {
    tx.execute("SAVEPOINT trial").await.doing("beginning a trial")?;
    Ok(())
}

/// Keeps what the innermost trial wrote.
///
/// # Errors
/// Driver errors.
pub async fn keep(tx: &mut PgConnection) -> Result<(), StorageError> {
    tx.execute("RELEASE SAVEPOINT trial").await.doing("keeping a trial")?;
    Ok(())
}

/// Undoes what the innermost trial wrote, and a statement that failed in it.
///
/// # Errors
/// Driver errors.
pub async fn undo(tx: &mut PgConnection) -> Result<(), StorageError> {
    tx.execute("ROLLBACK TO SAVEPOINT trial").await.doing("undoing a trial")?;
    tx.execute("RELEASE SAVEPOINT trial").await.doing("undoing a trial")?;
    Ok(())
}
