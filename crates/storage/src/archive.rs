//! Files of the archive as the database knows them: closed, or begun; and the blocks that go into them.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Name of the lock that one archiver holds.
const ARCHIVER: &str = "gpuledger.archiver";

/// A closed file.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ClosedFile {
    /// Its name within the archive.
    pub key: String,
    /// `windows` or `minutes`.
    pub kind: String,
    /// Begin of the UTC hour it is about.
    pub hour_us: i64,
    /// Its place among the files of the hour, from 0.
    pub part: i32,
    /// SHA-256 of its bytes.
    pub digest: Vec<u8>,
    /// Its length.
    pub bytes: i64,
    /// Windows, or units and owners by minute.
    pub rows: i64,
    /// Gaps told by its windows.
    pub gaps: i64,
    /// Length of these gaps together, in microseconds.
    pub gap_us: i64,
    /// Earliest instant of its rows.
    pub first_us: i64,
    /// Latest instant of its rows.
    pub last_us: i64,
    /// When it was closed.
    pub closed_at_us: i64,
}

/// A block whose windows are in packed hours and in no file yet.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct WaitingBlock {
    /// Its number within the hour.
    pub number: i64,
    /// Bytes before compression.
    pub raw_bytes: i32,
    /// Its bytes: `crates/wire/src/block.rs`.
    pub body: Vec<u8>,
}

/// Takes the one archiver's lock to the end of the transaction; false: somebody else has it.
///
/// # Errors
/// Driver errors.
pub async fn try_lock(tx: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))")
        .bind(ARCHIVER)
        .fetch_one(tx)
        .await
        .doing("locking the archive")
}

/// The earliest hour that began before `before_us` and has packed blocks in no file.
///
/// # Errors
/// Driver errors.
pub async fn waiting_hour(tx: &mut PgConnection, before_us: i64) -> Result<Option<i64>, StorageError> {
    sqlx::query_scalar(
        "SELECT min(hour_us) FROM telemetry_block WHERE packed AND NOT archived AND hour_us < $1",
    )
    .bind(before_us)
    .fetch_one(tx)
    .await
    .doing("looking for telemetry to archive")
}

/// How many hours that began before `before_us` have packed blocks in no file.
///
/// # Errors
/// Driver errors.
pub async fn waiting_hours(connection: &mut PgConnection, before_us: i64) -> Result<i64, StorageError> {
    sqlx::query_scalar(
        "SELECT count(DISTINCT hour_us) FROM telemetry_block WHERE packed AND NOT archived AND hour_us < $1",
    )
    .bind(before_us)
    .fetch_one(connection)
    .await
    .doing("looking for telemetry to archive")
}

/// Packed blocks of an hour that are in no file, in the order they were taken in, until they have `raw_bytes` before compression; one
/// at least where there is one.
///
/// # Errors
/// Driver errors.
pub async fn waiting_blocks(
    tx: &mut PgConnection,
    hour_us: i64,
    raw_bytes: i64,
) -> Result<Vec<WaitingBlock>, StorageError> {
    sqlx::query_as(
        "WITH waiting AS (
            SELECT number, sum(raw_bytes::INT8) OVER (ORDER BY number) - raw_bytes AS before
            FROM telemetry_block WHERE hour_us = $1 AND packed AND NOT archived
         )
         SELECT number, b.raw_bytes, b.body FROM telemetry_block AS b JOIN waiting USING (number)
         WHERE b.hour_us = $1 AND before < $2 ORDER BY number",
    )
    .bind(hour_us)
    .bind(raw_bytes)
    .fetch_all(tx)
    .await
    .doing("reading blocks to archive")
}

/// Marks blocks of an hour as archived; returns how many were not before.
///
/// # Errors
/// [`StorageError::Contention`]: try again.
pub async fn mark_archived(
    tx: &mut PgConnection,
    hour_us: i64,
    numbers: &[i64],
) -> Result<u64, StorageError> {
    let done = sqlx::query(
        "UPDATE telemetry_block SET archived = true WHERE hour_us = $1 AND number = ANY($2) AND NOT archived",
    )
    .bind(hour_us)
    .bind(numbers)
    .execute(tx)
    .await
    .doing("marking archived blocks")?;
    Ok(done.rows_affected())
}

/// The number of the next part of an hour.
///
/// # Errors
/// Driver errors.
pub async fn next_part(tx: &mut PgConnection, hour_us: i64) -> Result<i32, StorageError> {
    sqlx::query_scalar("SELECT COALESCE(max(part) + 1, 0) FROM archive_file WHERE hour_us = $1")
        .bind(hour_us)
        .fetch_one(tx)
        .await
        .doing("numbering a file")
}

/// Those of `keys` that are neither closed nor begun here.
///
/// # Errors
/// Driver errors.
pub async fn unknown(connection: &mut PgConnection, keys: &[String]) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "SELECT key FROM UNNEST($1::TEXT[]) AS key
         EXCEPT (SELECT key FROM archive_file UNION ALL SELECT key FROM archive_intent) ORDER BY 1",
    )
    .bind(keys)
    .fetch_all(connection)
    .await
    .doing("looking up files")
}

/// Records that files are about to be written. Commit before they are.
///
/// # Errors
/// Driver errors.
pub async fn intend(tx: &mut PgConnection, keys: &[String], now_us: i64) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO archive_intent (key, begun_at_us) SELECT key, $2 FROM UNNEST($1::TEXT[]) AS key
         ON CONFLICT DO NOTHING",
    )
    .bind(keys)
    .bind(now_us)
    .execute(tx)
    .await
    .doing("announcing files")?;
    Ok(())
}

/// Files begun before `before_us` and never closed.
///
/// # Errors
/// Driver errors.
pub async fn orphans(connection: &mut PgConnection, before_us: i64) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "SELECT key FROM archive_intent AS i
         WHERE begun_at_us < $1 AND NOT EXISTS (SELECT FROM archive_file AS f WHERE f.key = i.key) ORDER BY key",
    )
    .bind(before_us)
    .fetch_all(connection)
    .await
    .doing("looking for orphaned files")
}

/// Forgets that files were begun: they are closed, or gone.
///
/// # Errors
/// Driver errors.
pub async fn forget(tx: &mut PgConnection, keys: &[String]) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM archive_intent WHERE key = ANY($1)")
        .bind(keys)
        .execute(tx)
        .await
        .doing("forgetting files")?;
    Ok(())
}

/// Records a file as closed. Its audit record belongs into the same transaction.
///
/// # Errors
/// [`StorageError::Refused`] where the part is taken.
pub async fn close(tx: &mut PgConnection, file: &ClosedFile) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO archive_file (key, kind, hour_us, part, digest, bytes, rows, gaps, gap_us, first_us, last_us, closed_at_us)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(&file.key)
    .bind(&file.kind)
    .bind(file.hour_us)
    .bind(file.part)
    .bind(&file.digest)
    .bind(file.bytes)
    .bind(file.rows)
    .bind(file.gaps)
    .bind(file.gap_us)
    .bind(file.first_us)
    .bind(file.last_us)
    .bind(file.closed_at_us)
    .execute(tx)
    .await
    .doing("closing a file")?;
    Ok(())
}

/// Closed files of a kind about hours that begin in `[from_us, to_us)`, by hour and part.
///
/// # Errors
/// Driver errors.
pub async fn files(
    connection: &mut PgConnection,
    kind: &str,
    from_us: i64,
    to_us: i64,
) -> Result<Vec<ClosedFile>, StorageError> {
    sqlx::query_as(
        "SELECT key, kind, hour_us, part, digest, bytes, rows, gaps, gap_us, first_us, last_us, closed_at_us
         FROM archive_file WHERE kind = $1 AND hour_us >= $2 AND hour_us < $3 ORDER BY hour_us, part",
    )
    .bind(kind)
    .bind(from_us)
    .bind(to_us)
    .fetch_all(connection)
    .await
    .doing("listing archived files")
}
