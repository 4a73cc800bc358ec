//! Published heads and their cosignatures.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A published head.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct CheckpointRow {
    /// Number of leaves.
    pub size: i64,
    /// Root over them.
    pub root: Vec<u8>,
    /// The note as the log signed it.
    pub note: Vec<u8>,
    /// When.
    pub signed_at_us: i64,
}

/// The largest published head.
///
/// # Errors
/// Driver errors.
pub async fn latest_checkpoint(connection: &mut PgConnection) -> Result<Option<CheckpointRow>, StorageError> {
    sqlx::query_as("SELECT size, root, note, signed_at_us FROM audit_checkpoint ORDER BY size DESC LIMIT 1")
        .fetch_optional(connection)
        .await
        .doing("reading the checkpoint")
}

/// The published head of a size.
///
/// # Errors
/// Driver errors.
pub async fn checkpoint_of(
    connection: &mut PgConnection,
    size: i64,
) -> Result<Option<CheckpointRow>, StorageError> {
    sqlx::query_as("SELECT size, root, note, signed_at_us FROM audit_checkpoint WHERE size = $1")
        .bind(size)
        .fetch_optional(connection)
        .await
        .doing("reading a checkpoint")
}

/// Publishes a head. One of this size with this root may stand already: it was signed and published by a process that was killed then.
///
/// # Errors
/// [`StorageError::Refused`] where one of this size with another root stands.
pub async fn add_checkpoint(tx: &mut PgConnection, head: &CheckpointRow) -> Result<(), StorageError> {
    if checkpoint_of(tx, head.size).await?.is_some_and(|standing| standing.root == head.root) {
        return Ok(());
    }
    sqlx::query("INSERT INTO audit_checkpoint (size, root, note, signed_at_us) VALUES ($1, $2, $3, $4)")
        .bind(head.size)
        .bind(&head.root)
        .bind(&head.note)
        .bind(head.signed_at_us)
        .execute(tx)
        .await
        .doing("publishing a checkpoint")?;
    Ok(())
}

/// Adds a witness's signature line to a published head; the first one of a witness stays.
///
/// # Errors
/// [`StorageError::Refused`] where no head of this size is published.
pub async fn add_cosignature(
    tx: &mut PgConnection,
    size: i64,
    witness: &str,
    line: &str,
    at_us: i64,
) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO audit_cosignature (size, witness, line, came_at_us) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    )
    .bind(size)
    .bind(witness)
    .bind(line)
    .bind(at_us)
    .execute(tx)
    .await
    .doing("adding a cosignature")?;
    Ok(())
}

/// Signature lines of witnesses under the head of a size, by name.
///
/// # Errors
/// Driver errors.
pub async fn cosignatures(
    connection: &mut PgConnection,
    size: i64,
) -> Result<Vec<(String, String)>, StorageError> {
    sqlx::query_as(
        r#"SELECT witness, line FROM audit_cosignature WHERE size = $1 ORDER BY witness COLLATE "C""#,
    )
    .bind(size)
    .fetch_all(connection)
    .await
    .doing("reading cosignatures")
}
