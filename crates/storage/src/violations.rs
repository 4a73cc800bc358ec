//! Violations of residue as the ledger recorded them: each is audited once and alarmed once.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A grant in violation of R-2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct ViolationRow {
    /// On which GPU.
    pub gpu: String,
    /// Which allocation.
    pub allocation: String,
    /// Which unit of it.
    pub unit: i32,
    /// When it was granted.
    pub start_us: i64,
    /// In words.
    pub detail: String,
    /// When the ledger saw it.
    pub seen_at_us: i64,
    /// When it is alarmed.
    pub due_at_us: i64,
    /// When it was.
    pub alarmed_at_us: Option<i64>,
    /// When it turned out to be none.
    pub cleared_at_us: Option<i64>,
}

/// Violations of grants on these GPUs that start at the instant beside each or later.
///
/// # Errors
/// Driver errors.
pub async fn since(
    connection: &mut PgConnection,
    asked: &[(String, i64)],
) -> Result<Vec<ViolationRow>, StorageError> {
    sqlx::query_as(
        "SELECT v.gpu, allocation, unit, start_us, detail, seen_at_us, due_at_us, alarmed_at_us, cleared_at_us
         FROM UNNEST($1::TEXT[], $2::INT8[]) AS asked (gpu, from_us)
         JOIN residue_violation AS v ON v.gpu = asked.gpu AND v.start_us >= asked.from_us
         ORDER BY v.gpu, allocation, unit",
    )
    .bind(asked.iter().map(|(gpu, _)| gpu.as_str()).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, from)| *from).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
    .doing("reading violations")
}

/// Writes violations; one that stands already is replaced.
///
/// # Errors
/// Driver errors.
pub async fn put(tx: &mut PgConnection, rows: &[ViolationRow]) -> Result<(), StorageError> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO residue_violation
             (gpu, allocation, unit, start_us, detail, seen_at_us, due_at_us, alarmed_at_us, cleared_at_us)
         SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[], $3::INT4[], $4::INT8[], $5::TEXT[], $6::INT8[], $7::INT8[], $8::INT8[], $9::INT8[])
         ON CONFLICT (gpu, allocation, unit) DO UPDATE SET
             start_us = EXCLUDED.start_us, detail = EXCLUDED.detail, seen_at_us = EXCLUDED.seen_at_us,
             due_at_us = EXCLUDED.due_at_us, alarmed_at_us = EXCLUDED.alarmed_at_us, cleared_at_us = EXCLUDED.cleared_at_us",
    )
    .bind(rows.iter().map(|row| row.gpu.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.allocation.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.unit).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.start_us).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.detail.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.seen_at_us).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.due_at_us).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.alarmed_at_us).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.cleared_at_us).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("recording violations")?;
    Ok(())
}

/// Marks those that are due as alarmed, and returns them. Rows that a batch holds are passed by: it may be clearing them.
///
/// # Errors
/// Driver errors.
pub async fn alarm(tx: &mut PgConnection, now_us: i64) -> Result<Vec<ViolationRow>, StorageError> {
    sqlx::query_as(
        "UPDATE residue_violation SET alarmed_at_us = $1
         WHERE (gpu, allocation, unit) IN (
             SELECT gpu, allocation, unit FROM residue_violation
             WHERE alarmed_at_us IS NULL AND cleared_at_us IS NULL AND due_at_us <= $1 FOR UPDATE SKIP LOCKED)
         RETURNING gpu, allocation, unit, start_us, detail, seen_at_us, due_at_us, alarmed_at_us, cleared_at_us",
    )
    .bind(now_us)
    .fetch_all(tx)
    .await
    .doing("alarming violations")
}
