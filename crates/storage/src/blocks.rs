//! Blocks: accepted telemetry windows as they came, compressed, from their acceptance until they are archived. What is in a block only
//! the ledger's rooms know; here it is bytes.

use crate::copy::BinaryRows;
use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// Microseconds in a day: a partition.
const DAY_US: i64 = 86_400_000_000;
/// First half of the name of the lock that one packer at a time holds, ours alone.
const PACKING: i32 = 0x6770_756d;

/// A block to be staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlock {
    /// UTC hour of its windows' starts, microseconds.
    pub hour_us: i64,
    /// Node of its first window.
    pub first_node: String,
    /// Node of its last window; not before the first, by bytes.
    pub last_node: String,
    /// Number of windows.
    pub windows: i32,
    /// Readings of units and processes in them.
    pub rows: i32,
    /// Bytes before compression.
    pub raw_bytes: i32,
    /// Latest end of a window, microseconds UTC.
    pub last_end_us: i64,
    /// The windows.
    pub body: Vec<u8>,
}

/// A stored block.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Block {
    /// UTC hour of its windows' starts, microseconds.
    pub hour_us: i64,
    /// Its number, greater than those staged before by the same process.
    pub number: i64,
    /// Node of its last window.
    pub last_node: String,
    /// First node whose windows are not packed; none: all are.
    pub next_node: Option<String>,
    /// The windows.
    pub body: Vec<u8>,
}

/// What of an hour waits to be packed.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Waiting {
    /// Begin of the UTC hour, microseconds.
    pub hour_us: i64,
    /// Bytes of its blocks before compression.
    pub raw_bytes: i64,
    /// Number of its newest block.
    pub newest: i64,
}

/// Stages blocks, by COPY, in the transaction that accepts their windows.
///
/// # Errors
/// Driver errors.
pub async fn stage(tx: &mut PgConnection, blocks: &[impl Borrow<NewBlock>]) -> Result<(), StorageError> {
    let blocks = || blocks.iter().map(Borrow::borrow);
    let days: BTreeSet<i64> = blocks().map(|block| block.hour_us.div_euclid(DAY_US) * DAY_US).collect();
    sqlx::query(
        "SELECT ensure_telemetry_partition('telemetry_block', day_us) FROM UNNEST($1::INT8[]) AS day_us",
    )
    .bind(days.into_iter().collect::<Vec<_>>())
    .execute(&mut *tx)
    .await
    .doing("making a partition of blocks")?;
    let mut rows = BinaryRows::new(blocks().map(|block| block.body.len() + 256).sum());
    for block in blocks() {
        rows.begin(9);
        rows.int8(Some(block.hour_us));
        // All of it is to be packed, from its first node on.
        for node in [&block.first_node, &block.last_node, &block.first_node] {
            rows.field(node.as_bytes())?;
        }
        rows.int4(block.windows).int4(block.rows).int4(block.raw_bytes).int8(Some(block.last_end_us));
        rows.field(&block.body)?;
    }
    let statement = "COPY telemetry_block (hour_us, first_node, last_node, next_node, windows, rows, raw_bytes, last_end_us, body)
                     FROM STDIN (FORMAT binary)";
    rows.send(tx, statement, "staging telemetry").await?;
    Ok(())
}

/// Hours with blocks that wait to be packed, oldest first.
///
/// # Errors
/// Driver errors.
pub async fn waiting(connection: &mut PgConnection) -> Result<Vec<Waiting>, StorageError> {
    sqlx::query_as(
        "SELECT hour_us, sum(raw_bytes)::INT8 AS raw_bytes, max(number) AS newest
         FROM telemetry_block WHERE next_node IS NOT NULL GROUP BY hour_us ORDER BY hour_us",
    )
    .fetch_all(connection)
    .await
    .doing("looking for telemetry to pack")
}

/// Latest end of a staged window, microseconds UTC; none where nothing is staged.
///
/// # Errors
/// Driver errors.
pub async fn newest_end(connection: &mut PgConnection) -> Result<Option<i64>, StorageError> {
    sqlx::query_scalar("SELECT max(last_end_us) FROM telemetry_block")
        .fetch_one(connection)
        .await
        .doing("looking for the newest window")
}

/// Waits until this transaction is the one that packs.
///
/// # Errors
/// Driver errors.
pub async fn lock_packing(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1, 0)")
        .bind(PACKING)
        .execute(tx)
        .await
        .doing("locking the packing")?;
    Ok(())
}

/// Up to `limit` blocks of an hour that wait to be packed, by next node and number, after those of `after`.
///
/// # Errors
/// Driver errors.
pub async fn to_pack(
    connection: &mut PgConnection,
    hour_us: i64,
    after: Option<(&str, i64)>,
    limit: i64,
) -> Result<Vec<Block>, StorageError> {
    sqlx::query_as(
        "SELECT hour_us, number, last_node, next_node, body FROM telemetry_block
         WHERE hour_us = $1 AND next_node IS NOT NULL AND ($2::TEXT IS NULL OR (next_node, number) > ($2, $3))
         ORDER BY next_node, number LIMIT $4",
    )
    .bind(hour_us)
    .bind(after.map(|(node, _)| node))
    .bind(after.map(|(_, number)| number))
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("reading telemetry to pack")
}

/// Notes that of these blocks of an hour the windows of nodes before `until` are packed; none: all of them.
///
/// # Errors
/// Driver errors.
pub async fn mark_packed(
    tx: &mut PgConnection,
    hour_us: i64,
    numbers: &[i64],
    until: Option<&str>,
) -> Result<(), StorageError> {
    sqlx::query(
        "UPDATE telemetry_block SET next_node = CASE WHEN last_node >= $3 THEN GREATEST(next_node, $3) END
         WHERE hour_us = $1 AND number = ANY($2)",
    )
    .bind(hour_us)
    .bind(numbers)
    .bind(until)
    .execute(tx)
    .await
    .doing("noting what is packed")?;
    Ok(())
}

/// Up to `limit` blocks that are in no file of the archive, after the one of `after` (hour, number), by hour and number.
///
/// # Errors
/// Driver errors.
pub async fn page(
    connection: &mut PgConnection,
    after: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<Block>, StorageError> {
    sqlx::query_as(
        "SELECT hour_us, number, last_node, next_node, body FROM telemetry_block
         WHERE NOT archived AND ($1::INT8 IS NULL OR (hour_us, number) > ($1, $2)) ORDER BY hour_us, number LIMIT $3",
    )
    .bind(after.map(|(hour_us, _)| hour_us))
    .bind(after.map(|(_, number)| number))
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("reading staged telemetry")
}
