//! Facts that are accepted and not settled yet: they came with more behind.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A fact to be marked, with what tells which others it is settled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which fact.
    pub fact_seq: i64,
    /// Whose hold it is about.
    pub allocation: Option<String>,
    /// A GPU it names.
    pub gpu: Option<String>,
    /// A node it names.
    pub node: Option<String>,
}

/// Marks facts, each with the node it names, that of the GPU it names, or that of the hold that stands. What is not known yet is looked up when they
/// are taken.
///
/// # Errors
/// Driver errors.
pub async fn mark(tx: &mut PgConnection, marks: &[Mark]) -> Result<(), StorageError> {
    sqlx::query(
        // Many facts name the same GPU: each is looked up once.
        "WITH given AS MATERIALIZED (
            SELECT * FROM UNNEST($1::INT8[], $2::TEXT[], $3::TEXT[], $4::TEXT[]) AS m (fact_seq, allocation, gpu, node)
         ), home AS MATERIALIZED (
            SELECT gpu, min(node) AS node FROM gpu_home WHERE gpu IN (SELECT gpu FROM given WHERE node IS NULL) GROUP BY gpu
         ), held AS MATERIALIZED (
            SELECT r.subject, min(h.node) AS node FROM reach AS r JOIN gpu_home AS h USING (gpu)
            WHERE r.subject IN (SELECT 'alloc:' || allocation FROM given WHERE gpu IS NULL AND node IS NULL) GROUP BY r.subject
         )
         INSERT INTO unsettled (fact_seq, allocation, gpu, node)
         SELECT g.fact_seq, g.allocation, g.gpu, COALESCE(g.node, CASE WHEN g.gpu IS NULL THEN held.node ELSE home.node END)
         FROM given AS g LEFT JOIN home USING (gpu) LEFT JOIN held ON held.subject = 'alloc:' || g.allocation",
    )
    .bind(marks.iter().map(|mark| mark.fact_seq).collect::<Vec<_>>())
    .bind(marks.iter().map(|mark| mark.allocation.as_deref()).collect::<Vec<_>>())
    .bind(marks.iter().map(|mark| mark.gpu.as_deref()).collect::<Vec<_>>())
    .bind(marks.iter().map(|mark| mark.node.as_deref()).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("marking facts to be settled")?;
    Ok(())
}

/// Whether a mark stands.
///
/// # Errors
/// Driver errors.
pub async fn any(connection: &mut PgConnection) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM unsettled)")
        .fetch_one(connection)
        .await
        .doing("looking for facts to be settled")
}

/// All marked facts.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection) -> Result<Vec<i64>, StorageError> {
    sqlx::query_scalar("SELECT fact_seq FROM unsettled")
        .fetch_all(connection)
        .await
        .doing("reading facts to be settled")
}

/// How much is settled together at most; one node's facts are not parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Nodes.
    pub nodes: i64,
    /// Facts.
    pub facts: i64,
}

/// Takes the facts of some nodes, and those of the allocations that they name; facts that lead to no node come last. In the transaction that settles
/// them.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection, portion: Portion) -> Result<Vec<i64>, StorageError> {
    bring_home(tx).await?;
    let taken: Vec<i64> = sqlx::query_scalar(
        "WITH here AS (
            SELECT node FROM (
                SELECT node, row_number() OVER place AS nodes, sum(count(*)) OVER place - count(*) AS facts_before
                FROM unsettled WHERE node IS NOT NULL GROUP BY node WINDOW place AS (ORDER BY node)
            ) AS counted WHERE nodes <= $1 AND facts_before < $2
         ), named AS (
            SELECT fact_seq, allocation FROM unsettled WHERE node IN (SELECT node FROM here)
         )
         DELETE FROM unsettled WHERE fact_seq IN (SELECT fact_seq FROM named)
            OR allocation IN (SELECT allocation FROM named WHERE allocation IS NOT NULL)
         RETURNING fact_seq",
    )
    .bind(portion.nodes)
    .bind(portion.facts)
    .fetch_all(&mut *tx)
    .await
    .doing("taking facts to be settled")?;
    if taken.is_empty() { take_homeless(tx, portion).await } else { Ok(taken) }
}

/// Inventories that came meanwhile say where GPUs are.
async fn bring_home(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query(
        "UPDATE unsettled AS u SET node = h.node FROM gpu_home AS h WHERE h.gpu = u.gpu AND u.node IS NULL AND u.gpu IS NOT NULL",
    )
    .execute(tx)
    .await
    .doing("looking for the nodes of facts to be settled")?;
    Ok(())
}

/// Takes facts that lead to no node: those of one GPU together, with those of the allocations that they name.
async fn take_homeless(tx: &mut PgConnection, portion: Portion) -> Result<Vec<i64>, StorageError> {
    sqlx::query_scalar(
        "WITH named AS (SELECT fact_seq, allocation FROM unsettled ORDER BY gpu, fact_seq LIMIT $1)
         DELETE FROM unsettled WHERE fact_seq IN (SELECT fact_seq FROM named)
            OR allocation IN (SELECT allocation FROM named WHERE allocation IS NOT NULL)
         RETURNING fact_seq",
    )
    .bind(portion.facts)
    .fetch_all(tx)
    .await
    .doing("taking facts to be settled")
}

/// Forgets all marks: everything was just settled.
///
/// # Errors
/// Driver errors.
pub async fn clear(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM unsettled").execute(tx).await.doing("forgetting facts to be settled")?;
    Ok(())
}
