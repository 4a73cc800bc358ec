//! GPUs whose journals are to be posted from an instant on: facts about them came with more behind.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Marks GPUs, each from the earliest instant on at which its journals lag behind, microseconds UTC.
///
/// # Errors
/// Driver errors.
pub async fn mark(tx: &mut PgConnection, marks: &BTreeMap<String, i64>) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO unposted AS u (gpu, from_us) SELECT gpu, from_us FROM UNNEST($1::TEXT[], $2::INT8[]) AS m (gpu, from_us)
           ORDER BY gpu COLLATE "C" ON CONFLICT (gpu) DO UPDATE SET from_us = EXCLUDED.from_us WHERE EXCLUDED.from_us < u.from_us"#,
    )
    .bind(marks.keys().map(String::as_str).collect::<Vec<_>>())
    .bind(marks.values().copied().collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("marking GPUs whose journals wait")?;
    Ok(())
}

/// Whether a mark stands.
///
/// # Errors
/// Driver errors.
pub async fn any(connection: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM unposted)")
        .fetch_one(connection)
        .await
        .doing("looking for GPUs whose journals wait")
}

/// Takes at most so many marks, in the transaction that posts what they wait for.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection, most: i64) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        r#"DELETE FROM unposted WHERE gpu IN (SELECT gpu FROM unposted ORDER BY gpu COLLATE "C" LIMIT $1) RETURNING gpu, from_us"#,
    )
    .bind(most)
    .fetch_all(tx)
    .await
    .doing("taking GPUs whose journals wait")?;
    Ok(rows.into_iter().collect())
}

/// All marks, each with its instant.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT gpu, from_us FROM unposted")
        .fetch_all(connection)
        .await
        .doing("reading GPUs whose journals wait")?;
    Ok(rows.into_iter().collect())
}

/// Forgets all marks: everything was just posted.
///
/// # Errors
/// Driver errors.
pub async fn clear(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM unposted").execute(tx).await.doing("forgetting GPUs whose journals waited")?;
    Ok(())
}
