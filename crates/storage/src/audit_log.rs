//! The audit log as rows: what waits, leaves, full tiles, signed heads, chains of residue domains.

mod heads;
mod leaves;
mod rows;

pub use heads::{
    CheckpointRow, add_checkpoint, add_cosignature, checkpoint_of, cosignatures, latest_checkpoint,
};
pub use leaves::{append_leaves, append_tiles};
pub use rows::{NewLeaf, NewTile, Waiting};

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Name of the lock that one sequencer holds.
const LOCK: i64 = 0x6770_756c_6175_6469;

/// A stored leaf.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct LeafRow {
    /// Its place.
    pub leaf_index: i64,
    /// The pending record; none: a heartbeat.
    pub pending_seq: Option<i64>,
    /// Whose keys salt its commitments, in the order of its fields; then tenants that it concerns without naming them.
    pub subjects: Vec<i64>,
    /// The bytes that are hashed.
    pub leaf: Vec<u8>,
}

/// Ends of the chains of a GPU's eight memory slices: how many leaves touched each, and the last of them.
pub type Ends = ([i64; 8], [i64; 8]);

/// Takes the sequencer's lock until the end of the transaction; false where another one has it.
///
/// # Errors
/// Driver errors.
pub async fn try_lock(tx: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(LOCK)
        .fetch_one(tx)
        .await
        .doing("asking for the sequencer's lock")
}

/// Waits for the sequencer's lock; it is held until the end of the transaction.
///
/// # Errors
/// Driver errors.
pub async fn lock(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(tx)
        .await
        .doing("waiting for the sequencer's lock")?;
    Ok(())
}

/// Number of leaves.
///
/// # Errors
/// Driver errors.
pub async fn size(connection: &mut PgConnection) -> Result<i64, StorageError> {
    sqlx::query_scalar("SELECT COALESCE(max(leaf_index) + 1, 0) FROM audit_leaf")
        .fetch_one(connection)
        .await
        .doing("asking for the size of the log")
}

/// Size and root as the sequencer left them.
///
/// # Errors
/// Driver errors.
pub async fn appended(connection: &mut PgConnection) -> Result<(i64, Option<Vec<u8>>), StorageError> {
    sqlx::query_as("SELECT size, root FROM audit_state")
        .fetch_one(connection)
        .await
        .doing("reading the state of the log")
}

/// Notes size and root after leaves were appended.
///
/// # Errors
/// Driver errors.
pub async fn put_root(tx: &mut PgConnection, size: i64, root: &[u8; 32]) -> Result<(), StorageError> {
    sqlx::query("UPDATE audit_state SET size = $1, root = $2")
        .bind(size)
        .bind(root.as_slice())
        .execute(tx)
        .await
        .doing("writing the state of the log")?;
    Ok(())
}

/// Records without a leaf, in the order of their numbers, beyond `after`.
///
/// # Errors
/// Driver errors.
pub async fn waiting(
    connection: &mut PgConnection,
    after: i64,
    limit: i64,
) -> Result<Vec<Waiting>, StorageError> {
    sqlx::query_as(
        // A list, no join: a merge join would begin at the first record there ever was.
        "SELECT seq, fact_seq, kind, body, recorded_at_us FROM audit_pending
         WHERE seq = ANY(ARRAY(SELECT pending_seq FROM audit_queue WHERE pending_seq > $1 ORDER BY pending_seq LIMIT $2)) ORDER BY seq",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("reading what waits for a leaf")
}

/// How many records wait for a leaf.
///
/// # Errors
/// Driver errors.
pub async fn count_waiting(connection: &mut PgConnection) -> Result<i64, StorageError> {
    sqlx::query_scalar("SELECT count(*) FROM audit_queue")
        .fetch_one(connection)
        .await
        .doing("counting what waits for a leaf")
}

/// Whether a record without a leaf has these bytes in it.
///
/// # Errors
/// Driver errors.
pub async fn is_waiting(connection: &mut PgConnection, bytes: &[u8]) -> Result<bool, StorageError> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM audit_queue JOIN audit_pending ON seq = pending_seq WHERE position($1::BYTEA IN body) > 0)",
    )
    .bind(bytes)
    .fetch_one(connection)
    .await
    .doing("looking through what waits for a leaf")
}

/// Lets go of records that have a leaf now. By number, each: a record may have become visible among them meanwhile.
///
/// # Errors
/// [`StorageError::Refused`] where one of them does not wait: it would have two leaves.
pub async fn take(tx: &mut PgConnection, seqs: &[i64]) -> Result<(), StorageError> {
    let done = sqlx::query("DELETE FROM audit_queue WHERE pending_seq = ANY($1::INT8[])")
        .bind(seqs)
        .execute(tx)
        .await
        .doing("taking records from the queue")?;
    if usize::try_from(done.rows_affected()).ok() == Some(seqs.len()) {
        return Ok(());
    }
    Err(StorageError::Other {
        doing: "taking records from the queue",
        message: format!("{} of {} records wait no more", done.rows_affected(), seqs.len()),
        source: None,
    })
}

/// One leaf; none where there is none that row security shows.
///
/// # Errors
/// Driver errors.
pub async fn leaf(connection: &mut PgConnection, index: i64) -> Result<Option<LeafRow>, StorageError> {
    sqlx::query_as("SELECT leaf_index, pending_seq, subjects, leaf FROM audit_leaf WHERE leaf_index = $1")
        .bind(index)
        .fetch_optional(connection)
        .await
        .doing("reading a leaf")
}

/// Leaves `from` to `to` (not included), in order.
///
/// # Errors
/// Driver errors.
pub async fn leaves(connection: &mut PgConnection, from: i64, to: i64) -> Result<Vec<LeafRow>, StorageError> {
    sqlx::query_as(
        "SELECT leaf_index, pending_seq, subjects, leaf FROM audit_leaf
         WHERE leaf_index >= $1 AND leaf_index < $2 ORDER BY leaf_index",
    )
    .bind(from)
    .bind(to)
    .fetch_all(connection)
    .await
    .doing("reading leaves")
}

/// Bytes of the leaves `from` to `to` (not included), in order, and nothing else of them.
///
/// # Errors
/// Driver errors.
pub async fn leaf_bytes(
    connection: &mut PgConnection,
    from: i64,
    to: i64,
) -> Result<Vec<Vec<u8>>, StorageError> {
    sqlx::query_scalar(
        "SELECT leaf FROM audit_leaf WHERE leaf_index >= $1 AND leaf_index < $2 ORDER BY leaf_index",
    )
    .bind(from)
    .bind(to)
    .fetch_all(connection)
    .await
    .doing("reading leaves")
}

/// Index of the leaf of the fact (source, id).
///
/// # Errors
/// Driver errors.
pub async fn index_of_event(
    connection: &mut PgConnection,
    source: &str,
    id: &str,
) -> Result<Option<i64>, StorageError> {
    sqlx::query_scalar(
        "SELECT l.leaf_index FROM identity AS i JOIN audit_leaf AS l ON l.fact_seq = i.fact_seq
         WHERE i.source = $1 AND i.id = $2 AND l.pending_seq IS NOT NULL ORDER BY l.leaf_index LIMIT 1",
    )
    .bind(source)
    .bind(id)
    .fetch_optional(connection)
    .await
    .doing("looking for the leaf of an event")
}

/// Bodies of pending records by number.
///
/// # Errors
/// Driver errors.
pub async fn bodies(
    connection: &mut PgConnection,
    seqs: &[i64],
) -> Result<BTreeMap<i64, (String, Vec<u8>)>, StorageError> {
    let rows: Vec<(i64, String, Vec<u8>)> =
        sqlx::query_as("SELECT seq, kind, body FROM audit_pending WHERE seq = ANY($1::INT8[])")
            .bind(seqs)
            .fetch_all(connection)
            .await
            .doing("reading pending records")?;
    Ok(rows.into_iter().map(|(seq, kind, body)| (seq, (kind, body))).collect())
}

/// Bodies of the grants and placements of allocations.
///
/// # Errors
/// Driver errors.
pub async fn holdings(
    connection: &mut PgConnection,
    allocations: &[String],
) -> Result<Vec<Vec<u8>>, StorageError> {
    sqlx::query_scalar(
        "SELECT body FROM fact
         WHERE seq IN (SELECT fact_seq FROM fact_subject WHERE subject = ANY($1))
           AND type IN ('gpuledger.allocation.granted.v1', 'gpuledger.allocation.placed.v1')
         ORDER BY seq",
    )
    .bind(allocations.iter().map(|id| format!("alloc:{id}")).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
    .doing("reading what allocations hold")
}

/// The hashes of a full tile.
///
/// # Errors
/// Driver errors.
pub async fn tile(
    connection: &mut PgConnection,
    level: i16,
    index: i64,
) -> Result<Option<Vec<u8>>, StorageError> {
    sqlx::query_scalar("SELECT hashes FROM audit_tile WHERE level = $1 AND tile_index = $2")
        .bind(level)
        .bind(index)
        .fetch_optional(connection)
        .await
        .doing("reading a tile")
}

/// The hashes over the full tiles `from` to `to` (not included) of a level, in order.
///
/// # Errors
/// Driver errors.
pub async fn roots(
    connection: &mut PgConnection,
    level: i16,
    from: i64,
    to: i64,
) -> Result<Vec<Vec<u8>>, StorageError> {
    sqlx::query_scalar(
        "SELECT root FROM audit_tile WHERE level = $1 AND tile_index >= $2 AND tile_index < $3 ORDER BY tile_index",
    )
    .bind(level)
    .bind(from)
    .bind(to)
    .fetch_all(connection)
    .await
    .doing("reading hashes of tiles")
}

/// Ends of the chains of these GPUs.
///
/// # Errors
/// Driver errors.
pub async fn chains(
    connection: &mut PgConnection,
    gpus: &[String],
) -> Result<BTreeMap<String, Ends>, StorageError> {
    let rows: Vec<(String, Vec<i64>, Vec<i64>)> =
        sqlx::query_as("SELECT gpu, counts, lasts FROM audit_chain WHERE gpu = ANY($1)")
            .bind(gpus)
            .fetch_all(connection)
            .await
            .doing("reading chains")?;
    let eight = |numbers: Vec<i64>| {
        numbers.try_into().map_err(|_| StorageError::Other {
            doing: "reading chains",
            message: "want eight numbers".to_owned(),
            source: None,
        })
    };
    rows.into_iter().map(|(gpu, counts, lasts)| Ok((gpu, (eight(counts)?, eight(lasts)?)))).collect()
}

/// Sets the ends of chains.
///
/// # Errors
/// Driver errors.
pub async fn put_chains(tx: &mut PgConnection, chains: &BTreeMap<String, Ends>) -> Result<(), StorageError> {
    // An array of arrays does not travel through UNNEST: rows of eight are sent flat.
    let flat = |of: fn(&Ends) -> &[i64; 8]| chains.values().flat_map(|ends| *of(ends)).collect::<Vec<i64>>();
    sqlx::query(
        "INSERT INTO audit_chain (gpu, counts, lasts)
         SELECT gpu, ($2::INT8[])[(place * 8 - 7)::INT4 : (place * 8)::INT4], ($3::INT8[])[(place * 8 - 7)::INT4 : (place * 8)::INT4]
         FROM UNNEST($1::TEXT[]) WITH ORDINALITY AS g (gpu, place)
         ON CONFLICT (gpu) DO UPDATE SET counts = EXCLUDED.counts, lasts = EXCLUDED.lasts",
    )
    .bind(chains.keys().map(String::as_str).collect::<Vec<_>>())
    .bind(flat(|ends| &ends.0))
    .bind(flat(|ends| &ends.1))
    .execute(tx)
    .await
    .doing("writing chains")?;
    Ok(())
}
