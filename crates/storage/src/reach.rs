//! Until when the facts of an allocation or scrub matter on a GPU. Derived from the facts that act at the horizon.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use crate::index::Asked;
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// No release or end is known.
pub const OPEN: i64 = i64::MAX;

/// One subject on one GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct ReachRow {
    /// Empty: units without a device.
    pub gpu: String,
    /// `alloc:ID` or `scrub:HASH`.
    pub subject: String,
    /// Who granted it; empty for a scrub, and where nobody did.
    pub source: String,
    /// The last instant at which a fact or snapshot names it, or [`OPEN`].
    pub until_us: i64,
    /// The earliest instant at which a fact or snapshot names it.
    pub first_us: i64,
    /// Pools that grants of the allocation name.
    pub pools: Vec<String>,
}

/// Replaces what stands of `subjects` by `rows`; who was named before stays named since then.
///
/// # Errors
/// Driver errors.
pub async fn replace(
    tx: &mut PgConnection,
    subjects: &[String],
    rows: &[ReachRow],
) -> Result<(), StorageError> {
    let firsts = firsts(tx, subjects).await?;
    sqlx::query("DELETE FROM reach WHERE subject = ANY($1)")
        .bind(subjects)
        .execute(&mut *tx)
        .await
        .doing("replacing reach")?;
    let mut copy = CopyRows::default();
    for row in rows {
        let first_us = firsts.get(&row.subject).map_or(row.first_us, |first| row.first_us.min(*first));
        copy.text(&row.gpu).text(&row.subject).text(&row.source).plain(row.until_us).plain(first_us);
        copy.text(&array(&row.pools)).end_row();
    }
    let statement = "COPY reach (gpu, subject, source, until_us, first_us, pools) FROM STDIN";
    copy.send(tx, statement, "replacing reach").await?;
    Ok(())
}

/// Since when each of `subjects` is named; those that nothing is known of are left out.
///
/// # Errors
/// Driver errors.
pub async fn firsts(
    connection: &mut PgConnection,
    subjects: &[String],
) -> Result<BTreeMap<String, i64>, StorageError> {
    if subjects.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT subject, min(first_us) FROM reach WHERE subject = ANY($1) GROUP BY subject")
            .bind(subjects)
            .fetch_all(connection)
            .await
            .doing("looking up when allocations were named first")?;
    Ok(rows.into_iter().collect())
}

/// Texts as Postgres writes an array of them.
fn array(texts: &[String]) -> String {
    let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    format!("{{{}}}", texts.iter().map(quoted).collect::<Vec<_>>().join(","))
}

/// Removes everything, before all is derived anew.
///
/// # Errors
/// Driver errors.
pub async fn clear(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM reach").execute(tx).await.doing("clearing reach")?;
    Ok(())
}

/// Snapshots name these subjects, between the two instants: where they had ended before, they matter until then. Of those that nobody granted it
/// is noted since when they are named.
///
/// # Errors
/// Driver errors.
pub async fn list(tx: &mut PgConnection, named: &BTreeMap<String, (i64, i64)>) -> Result<(), StorageError> {
    if named.is_empty() {
        return Ok(());
    }
    let statements = [
        "UPDATE reach AS r SET until_us = GREATEST(until_us, last), first_us = LEAST(first_us, first)
         FROM UNNEST($1::TEXT[], $2::INT8[], $3::INT8[]) AS named (subject, first, last)
         WHERE r.subject = named.subject AND (until_us < last OR first_us > first)",
        "INSERT INTO reach (gpu, subject, source, until_us, first_us)
         SELECT '', subject, '', GREATEST(last, 9223372036854775807), first
         FROM UNNEST($1::TEXT[], $2::INT8[], $3::INT8[]) AS named (subject, first, last)
         WHERE NOT EXISTS (SELECT FROM reach AS r WHERE r.subject = named.subject)",
    ];
    for statement in statements {
        sqlx::query(statement)
            .bind(named.keys().map(String::as_str).collect::<Vec<_>>())
            .bind(named.values().map(|(first, _)| *first).collect::<Vec<_>>())
            .bind(named.values().map(|(_, last)| *last).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await
            .doing("noting who snapshots name")?;
    }
    Ok(())
}

/// Subjects that matter on each GPU at or after its instant.
///
/// # Errors
/// Driver errors.
pub async fn since(connection: &mut PgConnection, asked: &[Asked]) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "SELECT DISTINCT found.subject FROM UNNEST($1::TEXT[], $2::INT8[]) AS asked (gpu, from_us)
         CROSS JOIN LATERAL (
            SELECT r.subject FROM reach AS r WHERE r.gpu = asked.gpu AND r.until_us >= asked.from_us OFFSET 0) AS found",
    )
    .bind(asked.iter().map(|(gpu, _)| gpu.as_str()).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, us)| *us).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
    .doing("looking up what matters on GPUs")
}

/// Allocations in one of `pools` that matter at `since_us` or later, with their GPUs.
///
/// # Errors
/// Driver errors.
pub async fn members(
    connection: &mut PgConnection,
    pools: &[String],
    since_us: i64,
) -> Result<Vec<(String, String)>, StorageError> {
    if pools.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_as("SELECT subject, gpu FROM reach WHERE pools <> '{}' AND pools && $1 AND until_us >= $2")
        .bind(pools)
        .bind(since_us)
        .fetch_all(connection)
        .await
        .doing("looking up members of pools")
}

/// Allocations of `sources` that nobody released.
///
/// # Errors
/// Driver errors.
pub async fn open_of(connection: &mut PgConnection, sources: &[String]) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "SELECT DISTINCT subject FROM reach WHERE source = ANY($1) AND until_us = 9223372036854775807",
    )
    .bind(sources)
    .fetch_all(connection)
    .await
    .doing("looking up open allocations")
}

/// GPUs with an allocation that runs, and a node they were ever on of which neither telemetry nor an inventory was heard in
/// `[since_us, now_us]`: a lease may end there.
///
/// # Errors
/// Driver errors.
pub async fn silent_holders(
    connection: &mut PgConnection,
    since_us: i64,
    now_us: i64,
) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "SELECT DISTINCT r.gpu FROM allocation AS a JOIN reach AS r ON r.subject = 'alloc:' || a.allocation
         WHERE a.end_us IS NULL AND r.gpu <> '' AND r.until_us = 9223372036854775807 AND EXISTS (
            SELECT FROM gpu_home AS h WHERE h.gpu = r.gpu AND NOT (
                EXISTS (SELECT FROM node_heard AS n, UNNEST(n.heard) AS run
                        WHERE n.node = h.node AND n.day_us >= $1 - 86400000000 AND lower(run) <= $2 AND upper(run) - $3 >= $1)
                OR EXISTS (SELECT FROM fact_subject AS s
                           WHERE s.subject = 'node:' || h.node AND s.kind = 'i' AND s.at_us >= $1 AND s.at_us <= $2)))",
    )
    .bind(since_us)
    .bind(now_us)
    .bind(crate::alive::RUN_US)
    .fetch_all(connection)
    .await
    .doing("looking for silent nodes")
}
