//! Nodes to be settled: their telemetry came, and what follows from it is not posted yet.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Marks nodes, each from the earliest instant on at which what came may change something, microseconds UTC.
///
/// # Errors
/// Driver errors.
pub async fn mark_from(tx: &mut PgConnection, marks: &BTreeMap<String, i64>) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO touched AS t (node, from_us) SELECT node, from_us FROM UNNEST($1::TEXT[], $2::INT8[]) AS m (node, from_us)
           ORDER BY node COLLATE "C" ON CONFLICT (node) DO UPDATE SET from_us = LEAST(t.from_us, EXCLUDED.from_us)"#,
    )
    .bind(marks.keys().map(String::as_str).collect::<Vec<_>>())
    .bind(marks.values().copied().collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("marking nodes")?;
    Ok(())
}

/// Whether a mark stands from an instant the horizon has reached.
///
/// # Errors
/// Driver errors.
pub async fn any(connection: &mut PgConnection, horizon_us: i64) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM touched WHERE from_us <= $1)")
        .bind(horizon_us)
        .fetch_one(connection)
        .await
        .doing("looking for marked nodes")
}

/// Marks of the nodes that these GPUs were ever on, from instants the horizon has reached.
///
/// # Errors
/// Driver errors.
pub async fn of_gpus(
    connection: &mut PgConnection,
    gpus: &[String],
    horizon_us: i64,
) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT node, from_us FROM touched
         WHERE from_us <= $2 AND node IN (SELECT node FROM gpu_home WHERE gpu = ANY($1))",
    )
    .bind(gpus)
    .bind(horizon_us)
    .fetch_all(connection)
    .await
    .doing("looking for marked nodes of GPUs")?;
    Ok(rows.into_iter().collect())
}

/// Takes the marks from instants the horizon has reached. Of a node that was heard beyond it a mark stays: what lies there does not act yet, and
/// is settled when the horizon moves.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection, horizon_us: i64) -> Result<BTreeMap<String, i64>, StorageError> {
    take_some(tx, None, horizon_us).await
}

/// As [`take`], of these nodes.
///
/// # Errors
/// Driver errors.
pub async fn take_of(
    tx: &mut PgConnection,
    nodes: &[String],
    horizon_us: i64,
) -> Result<BTreeMap<String, i64>, StorageError> {
    if nodes.is_empty() {
        return Ok(BTreeMap::new());
    }
    take_some(tx, Some(nodes), horizon_us).await
}

async fn take_some(
    tx: &mut PgConnection,
    nodes: Option<&[String]>,
    horizon_us: i64,
) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "DELETE FROM touched WHERE from_us <= $1 AND ($2::TEXT[] IS NULL OR node = ANY($2)) RETURNING node, from_us",
    )
    .bind(horizon_us)
    .bind(nodes)
    .fetch_all(&mut *tx)
    .await
    .doing("taking marked nodes")?;
    sqlx::query(
        "INSERT INTO touched (node, from_us) SELECT node, $2::INT8 + 1 FROM UNNEST($1::TEXT[]) AS taken (node)
         WHERE EXISTS (SELECT FROM node_heard AS h, UNNEST(h.heard) AS run
                       WHERE h.node = taken.node AND h.day_us >= $2 - 86400000000 AND upper(run) - $3 > $2)",
    )
    .bind(rows.iter().map(|(node, _)| node.as_str()).collect::<Vec<_>>())
    .bind(horizon_us)
    .bind(crate::alive::RUN_US)
    .execute(tx)
    .await
    .doing("marking nodes")?;
    Ok(rows.into_iter().collect())
}
