//! Nodes to be settled: their telemetry came, and what follows from it is not posted yet.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Marks nodes.
///
/// # Errors
/// Driver errors.
pub async fn mark(tx: &mut PgConnection, nodes: &[String]) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO touched SELECT node FROM UNNEST($1::TEXT[]) AS node ORDER BY node COLLATE "C" ON CONFLICT DO NOTHING"#,
    )
    .bind(nodes)
    .execute(tx)
    .await
    .doing("marking nodes")?;
    Ok(())
}

/// Whether a mark stands.
///
/// # Errors
/// Driver errors.
pub async fn any(connection: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM touched)")
        .fetch_one(connection)
        .await
        .doing("looking for marked nodes")
}

/// Takes all marks, in the transaction that settles the nodes.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar("DELETE FROM touched RETURNING node").fetch_all(tx).await.doing("taking marked nodes")
}
