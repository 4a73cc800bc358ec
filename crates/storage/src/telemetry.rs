//! Telemetry: received sequences.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Identity of a telemetry window (I-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowId<'w> {
    /// Node.
    pub node: &'w str,
    /// Random id of the node's spool.
    pub stream: &'w str,
    /// From 0, without holes; below `i64::MAX`.
    pub sequence: i64,
    /// Begin of the window; no part of the identity.
    pub start_us: i64,
    /// End of the window; no part of the identity.
    pub end_us: i64,
}

/// A hole in a stream's sequences.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SequenceGap {
    /// Node.
    pub node: String,
    /// Stream.
    pub stream: String,
    /// First missing sequence.
    pub first: i64,
    /// Last missing sequence.
    pub last: i64,
    /// End of the window before it; none: it is the stream's first, or came before ends were kept.
    pub since_us: Option<i64>,
    /// Begin of the window behind it; none: it came before begins were kept.
    pub until_us: Option<i64>,
}

/// A window that an earlier version staged by itself, as a canonical event.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct StagedAlone {
    /// Where the row lies.
    pub place: String,
    /// The event.
    pub body: Vec<u8>,
}

/// Records sequences as received and tells, in order, which of them are new. A sequence that stands twice in `ids` is new
/// once, at its first place. The streams stay locked until commit. Windows beside a hole are kept with their times, for [`gaps`].
///
/// # Errors
/// [`StorageError::Invalid`] for a negative sequence or `i64::MAX`; [`StorageError::Contention`]: try again.
pub async fn accept(tx: &mut PgConnection, ids: &[WindowId<'_>]) -> Result<Vec<bool>, StorageError> {
    if let Some(bad) = ids.iter().find(|id| id.sequence < 0 || id.sequence == i64::MAX) {
        return Err(StorageError::invalid(format!("sequence {}", bad.sequence), "want 0 to 2^63 - 2"));
    }
    let nodes: Vec<&str> = ids.iter().map(|id| id.node).collect();
    let streams: Vec<&str> = ids.iter().map(|id| id.stream).collect();
    lock_streams(tx, &nodes, &streams).await?;
    let fresh: Vec<i64> = sqlx::query_scalar(
        "WITH fresh AS (
            SELECT node, stream, sequence, min(place) AS place, min(start_us) AS start_us, min(end_us) AS end_us
            FROM UNNEST($1::TEXT[], $2::TEXT[], $3::INT8[], $4::INT8[], $5::INT8[]) WITH ORDINALITY
                 AS given (node, stream, sequence, start_us, end_us, place)
            JOIN telemetry_stream USING (node, stream)
            WHERE NOT ranges @> sequence
            GROUP BY node, stream, sequence
         ), joined AS (
            SELECT node, stream, s.ranges AS stood, s.top_end_us AS stood_end_us, s.ranges + added.ranges AS ranges, added.top, added.end_us
            FROM (SELECT node, stream, range_agg(int8range(sequence, sequence + 1)) AS ranges, max(sequence) AS top,
                         (array_agg(end_us ORDER BY sequence DESC))[1] AS end_us
                  FROM fresh GROUP BY node, stream) AS added
            JOIN telemetry_stream AS s USING (node, stream)
         ), recorded AS (
            UPDATE telemetry_stream AS s
            SET ranges = joined.ranges, top_end_us = CASE WHEN top >= upper(stood) OR isempty(stood) THEN end_us ELSE stood_end_us END
            FROM joined WHERE s.node = joined.node AND s.stream = joined.stream
         ), edges AS (
            INSERT INTO telemetry_edge (node, stream, sequence, start_us, end_us)
            SELECT node, stream, sequence, start_us, fresh.end_us FROM fresh JOIN joined USING (node, stream)
            WHERE (sequence > 0 AND NOT ranges @> sequence - 1) OR (sequence < upper(ranges) - 1 AND NOT ranges @> sequence + 1)
            UNION ALL
            SELECT node, stream, upper(stood) - 1, stood_end_us, stood_end_us FROM joined
            WHERE top > upper(stood) AND stood_end_us IS NOT NULL AND NOT ranges @> upper(stood)
            ON CONFLICT DO NOTHING
         )
         SELECT place - 1 FROM fresh",
    )
    .bind(&nodes)
    .bind(&streams)
    .bind(ids.iter().map(|id| id.sequence).collect::<Vec<_>>())
    .bind(ids.iter().map(|id| id.start_us).collect::<Vec<_>>())
    .bind(ids.iter().map(|id| id.end_us).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("recording sequences")?;
    let mut is_new = vec![false; ids.len()];
    for place in fresh {
        if let Some(flag) = usize::try_from(place).ok().and_then(|place| is_new.get_mut(place)) {
            *flag = true;
        }
    }
    Ok(is_new)
}

/// Registers unknown streams and locks all of them, in one order.
async fn lock_streams(tx: &mut PgConnection, nodes: &[&str], streams: &[&str]) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO telemetry_stream (node, stream)
           SELECT DISTINCT node COLLATE "C", stream COLLATE "C" FROM UNNEST($1::TEXT[], $2::TEXT[]) AS given (node, stream)
           ORDER BY 1, 2 ON CONFLICT DO NOTHING"#,
    )
    .bind(nodes)
    .bind(streams)
    .execute(&mut *tx)
    .await
    .doing("registering streams")?;
    sqlx::query(
        r#"SELECT FROM telemetry_stream
           WHERE (node, stream) IN (SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[]))
           ORDER BY node COLLATE "C", stream COLLATE "C" FOR UPDATE"#,
    )
    .bind(nodes)
    .bind(streams)
    .execute(tx)
    .await
    .doing("locking streams")?;
    Ok(())
}

/// Holes between the received sequences of each stream, and before its first: what a node still owes.
///
/// # Errors
/// Driver errors.
pub async fn gaps(connection: &mut PgConnection) -> Result<Vec<SequenceGap>, StorageError> {
    sqlx::query_as(
        r#"SELECT s.node, s.stream, lower(hole) AS first, upper(hole) - 1 AS last, before.end_us AS since_us, behind.start_us AS until_us
           FROM telemetry_stream AS s
           CROSS JOIN UNNEST(int8multirange(int8range(0, upper(ranges))) - ranges) AS hole
           LEFT JOIN telemetry_edge AS before
             ON (before.node, before.stream, before.sequence) = (s.node, s.stream, lower(hole) - 1)
           LEFT JOIN telemetry_edge AS behind
             ON (behind.node, behind.stream, behind.sequence) = (s.node, s.stream, upper(hole))
           WHERE NOT isempty(ranges)
           ORDER BY s.node COLLATE "C", s.stream COLLATE "C", first"#,
    )
    .fetch_all(connection)
    .await
    .doing("reading gaps")
}

/// Takes up to `limit` windows that an earlier version staged by themselves, and locks them.
///
/// # Errors
/// Driver errors.
pub async fn staged_alone(tx: &mut PgConnection, limit: i64) -> Result<Vec<StagedAlone>, StorageError> {
    sqlx::query_as("SELECT ctid::TEXT AS place, body FROM telemetry_window LIMIT $1 FOR UPDATE SKIP LOCKED")
        .bind(limit)
        .fetch_all(tx)
        .await
        .doing("reading windows of an earlier version")
}

/// Removes such windows, in the transaction that stages them in blocks.
///
/// # Errors
/// Driver errors.
pub async fn remove_alone(tx: &mut PgConnection, places: &[String]) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM telemetry_window WHERE ctid = ANY($1::TEXT[]::TID[])")
        .bind(places)
        .execute(tx)
        .await
        .doing("removing windows of an earlier version")?;
    Ok(())
}
