//! GPUs to be settled because their measured time was packed, where some pool divides by it.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Marks GPUs from the begin of a packed hour on, microseconds UTC; nothing where no pool that stands divides by measured time. Under the lock of
/// the packing: whoever applies such a pool derives everything anew behind the same lock.
///
/// # Errors
/// Driver errors.
pub async fn mark(tx: &mut PgConnection, gpus: &[&str], hour_us: i64) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO measured_mark AS m (gpu, from_us)
           SELECT gpu, $2 FROM UNNEST($1::TEXT[]) AS packed (gpu)
           WHERE EXISTS (SELECT FROM object WHERE kind = 'Pool' AND body ->> 'policy' = 'measured')
           GROUP BY gpu ORDER BY gpu COLLATE "C"
           ON CONFLICT (gpu) DO UPDATE SET from_us = LEAST(m.from_us, EXCLUDED.from_us)"#,
    )
    .bind(gpus)
    .bind(hour_us)
    .execute(tx)
    .await
    .doing("marking measured GPUs")?;
    Ok(())
}

/// Whether a mark stands.
///
/// # Errors
/// Driver errors.
pub async fn any(connection: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM measured_mark)")
        .fetch_one(connection)
        .await
        .doing("looking for measured GPUs")
}

/// Takes up to `limit` marks, GPUs with their instants, in the transaction that settles them.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection, limit: i64) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "DELETE FROM measured_mark WHERE gpu IN (SELECT gpu FROM measured_mark ORDER BY gpu LIMIT $1)
         RETURNING gpu, from_us",
    )
    .bind(limit)
    .fetch_all(tx)
    .await
    .doing("taking measured GPUs")?;
    Ok(rows.into_iter().collect())
}
