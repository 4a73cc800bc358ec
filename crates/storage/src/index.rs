//! The index of facts: what was said about a subject, of which kind, from when to when. Bodies are read apart, so that what is known is
//! not read again.
//!
//! Every query walks the primary key of `fact_subject` once for each subject and kind: `OFFSET 0` keeps the planner from joining the whole
//! table for long lists, so that what a query costs never grows with what stands before the time it asks for.

use crate::error::{Doing, StorageError};
use crate::facts::StoredFact;
use sqlx::PgConnection;

/// Kinds of facts, a letter each.
pub mod kind {
    /// An inventory.
    pub const INVENTORY: char = 'i';
    /// A whole GPU works.
    pub const OK: char = 'k';
    /// Any other state of a unit.
    pub const STATE: char = 's';
    /// A scrub begins.
    pub const SCRUB_BEGIN: char = 'b';
    /// A scrub ends.
    pub const SCRUB_END: char = 'f';
    /// Slices may leave quarantine.
    pub const QUARANTINE_END: char = 'q';
    /// Capacity ends.
    pub const DECOMMISSION: char = 'd';
    /// A grant.
    pub const GRANT: char = 'g';
    /// Devices of a grant.
    pub const PLACED: char = 'p';
    /// A release.
    pub const RELEASE: char = 'r';
    /// A new owner.
    pub const TRANSFER: char = 't';
    /// A state of an allocation.
    pub const ALLOCATION_STATE: char = 'a';
    /// A live list.
    pub const SNAPSHOT: char = 'n';
    /// Work of a pool.
    pub const WORK: char = 'w';
    /// Anything else.
    pub const OTHER: char = 'o';
    /// All that may be a GPU's first fact.
    pub const OF_GPUS: &str = "iksbfdgp";
}

/// A subject and an instant, microseconds UTC.
pub type Asked = (String, i64);

/// One fact in the index.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Entry {
    /// What was asked for.
    pub subject: String,
    /// The instant asked for.
    pub asked_us: i64,
    /// When the fact happened; of work the end of what it is about.
    pub at_us: i64,
    /// Which fact.
    pub fact_seq: i64,
}

macro_rules! entries {
    ($name:ident, $doc:literal, $picked:literal) => {
        #[doc = $doc]
        ///
        /// # Errors
        /// Driver errors.
        pub async fn $name(
            connection: &mut PgConnection,
            kinds: &str,
            asked: &[Asked],
        ) -> Result<Vec<Entry>, StorageError> {
            if asked.is_empty() {
                return Ok(Vec::new());
            }
            sqlx::query_as(concat!(
                "SELECT asked.subject, asked.asked_us, found.at_us, found.fact_seq
                 FROM UNNEST($1::TEXT[], $2::INT8[]) AS asked (subject, asked_us) CROSS JOIN UNNEST($3::TEXT[]) AS wanted (kind)
                 CROSS JOIN LATERAL (",
                $picked,
                ") AS found"
            ))
            .bind(asked.iter().map(|(subject, _)| subject.as_str()).collect::<Vec<_>>())
            .bind(asked.iter().map(|(_, us)| *us).collect::<Vec<_>>())
            .bind(kinds.chars().map(String::from).collect::<Vec<_>>())
            .fetch_all(connection)
            .await
            .doing("looking facts up")
        }
    };
}

entries!(
    since,
    "Facts of these kinds about each subject, from its instant on.",
    "SELECT at_us, fact_seq FROM fact_subject AS s
     WHERE s.subject = asked.subject AND s.kind = wanted.kind AND s.at_us >= asked.asked_us OFFSET 0"
);
entries!(
    latest,
    "Of each kind the latest facts about each subject at or before its instant: all of one instant.",
    "SELECT s.at_us, s.fact_seq FROM fact_subject AS s
     WHERE s.subject = asked.subject AND s.kind = wanted.kind AND s.at_us = (
        SELECT l.at_us FROM fact_subject AS l WHERE l.subject = asked.subject AND l.kind = wanted.kind AND l.at_us <= asked.asked_us
        ORDER BY l.at_us DESC LIMIT 1) OFFSET 0"
);
entries!(
    next,
    "Of each kind the first facts about each subject after its instant: all of one instant.",
    "SELECT s.at_us, s.fact_seq FROM fact_subject AS s
     WHERE s.subject = asked.subject AND s.kind = wanted.kind AND s.at_us = (
        SELECT l.at_us FROM fact_subject AS l WHERE l.subject = asked.subject AND l.kind = wanted.kind AND l.at_us > asked.asked_us
        ORDER BY l.at_us LIMIT 1) OFFSET 0"
);

/// All facts of these kinds about each subject, whenever they happened; `asked_us` is the least number. Of subjects that little is said about: what is said
/// is read in one walk of the index, and other kinds are passed over.
///
/// # Errors
/// Driver errors.
pub async fn all(
    connection: &mut PgConnection,
    kinds: &str,
    subjects: &[String],
) -> Result<Vec<Entry>, StorageError> {
    if subjects.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_as(
        "SELECT asked.subject, $3::INT8 AS asked_us, found.at_us, found.fact_seq FROM UNNEST($1::TEXT[]) AS asked (subject)
         CROSS JOIN LATERAL (SELECT at_us, fact_seq FROM fact_subject AS s
                             WHERE s.subject = asked.subject AND strpos($2, s.kind::TEXT) > 0 OFFSET 0) AS found",
    )
    .bind(subjects)
    .bind(kinds)
    .bind(i64::MIN)
    .fetch_all(connection)
    .await
    .doing("looking facts up")
}

/// The latest inventories about a subject before an instant: whole instants, at least `limit` facts where there are so many.
///
/// # Errors
/// Driver errors.
pub async fn latest_before(
    connection: &mut PgConnection,
    subject: &str,
    before_us: i64,
    limit: i64,
) -> Result<Vec<Entry>, StorageError> {
    sqlx::query_as(
        "SELECT subject, $2 AS asked_us, at_us, fact_seq FROM fact_subject
         WHERE subject = $1 AND kind = 'i' AND at_us < $2 AND at_us >= COALESCE((
            SELECT min(at_us) FROM (SELECT at_us FROM fact_subject WHERE subject = $1 AND kind = 'i' AND at_us < $2
                                    ORDER BY at_us DESC LIMIT $3) AS page), $2)",
    )
    .bind(subject)
    .bind(before_us)
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("looking inventories up")
}

/// Facts that happened in `[from_us, upto_us]`, in order of acceptance.
///
/// # Errors
/// Driver errors.
pub async fn within(
    connection: &mut PgConnection,
    from_us: i64,
    upto_us: i64,
) -> Result<Vec<StoredFact>, StorageError> {
    sqlx::query_as(
        "SELECT seq, source, id, received_at_us, body FROM fact WHERE at_us >= $1 AND at_us <= $2 ORDER BY seq",
    )
    .bind(from_us)
    .bind(upto_us)
    .fetch_all(connection)
    .await
    .doing("reading facts by time")
}

/// Snapshots of any source that happened in `[from_us, upto_us)`.
///
/// # Errors
/// Driver errors.
pub async fn snapshots(
    connection: &mut PgConnection,
    from_us: i64,
    upto_us: i64,
) -> Result<Vec<i64>, StorageError> {
    sqlx::query_scalar(
        "SELECT seq FROM fact WHERE type = 'gpuledger.allocation.snapshot.v1' AND at_us >= $1 AND at_us < $2",
    )
    .bind(from_us)
    .bind(upto_us)
    .fetch_all(connection)
    .await
    .doing("looking snapshots up")
}

/// The latest snapshots of a source before an instant, latest first: whole instants, at least `limit` facts where there are so many.
///
/// # Errors
/// Driver errors.
pub async fn snapshots_before(
    connection: &mut PgConnection,
    source: &str,
    before_us: i64,
    limit: i64,
) -> Result<Vec<(i64, i64)>, StorageError> {
    sqlx::query_as(
        "SELECT at_us, fact_seq FROM fact_subject
         WHERE subject = $1 AND kind = 'n' AND at_us < $2 AND at_us >= COALESCE((
            SELECT min(at_us) FROM (SELECT at_us FROM fact_subject WHERE subject = $1 AND kind = 'n' AND at_us < $2
                                    ORDER BY at_us DESC LIMIT $3) AS page), $2)
         ORDER BY at_us DESC",
    )
    .bind(format!("snapshot:{source}"))
    .bind(before_us)
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("looking snapshots up")
}

/// These facts, in order of acceptance.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection, seqs: &[i64]) -> Result<Vec<StoredFact>, StorageError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_as("SELECT seq, source, id, received_at_us, body FROM fact WHERE seq = ANY($1) ORDER BY seq")
        .bind(seqs)
        .fetch_all(connection)
        .await
        .doing("reading facts")
}

/// What is known of an inventory without its body.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct InventoryHead {
    /// Which fact.
    pub seq: i64,
    /// CloudEvents `source`.
    pub source: String,
    /// CloudEvents `id`.
    pub id: String,
    /// When it happened.
    pub at_us: i64,
    /// Hash of what it says besides its time; none: not known.
    pub content: Option<Vec<u8>>,
}

/// Heads of these inventories, in order of acceptance.
///
/// # Errors
/// Driver errors.
pub async fn inventory_heads(
    connection: &mut PgConnection,
    seqs: &[i64],
) -> Result<Vec<InventoryHead>, StorageError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_as(
        "SELECT seq, source, id, at_us, content FROM fact LEFT JOIN inventory_content ON fact_seq = seq WHERE seq = ANY($1) ORDER BY seq",
    )
    .bind(seqs)
    .fetch_all(connection)
    .await
    .doing("reading heads of inventories")
}

/// Nodes that `gpus` were ever on, as (GPU, node).
///
/// # Errors
/// Driver errors.
pub async fn homes(
    connection: &mut PgConnection,
    gpus: &[String],
) -> Result<Vec<(String, String)>, StorageError> {
    sqlx::query_as("SELECT gpu, node FROM gpu_home WHERE gpu = ANY($1)")
        .bind(gpus)
        .fetch_all(connection)
        .await
        .doing("looking nodes up")
}

/// GPUs that were ever on `nodes`, as (GPU, node).
///
/// # Errors
/// Driver errors.
pub async fn gpus_on(
    connection: &mut PgConnection,
    nodes: &[String],
) -> Result<Vec<(String, String)>, StorageError> {
    sqlx::query_as("SELECT gpu, node FROM gpu_home WHERE node = ANY($1)")
        .bind(nodes)
        .fetch_all(connection)
        .await
        .doing("looking GPUs up")
}

/// Up to `limit` GPUs whose ids come after `after`, sorted.
///
/// # Errors
/// Driver errors.
pub async fn gpus_after(
    connection: &mut PgConnection,
    after: &str,
    limit: i64,
) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar("SELECT DISTINCT gpu FROM gpu_home WHERE gpu > $1 ORDER BY gpu LIMIT $2")
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await
        .doing("listing GPUs")
}
