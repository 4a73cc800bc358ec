//! Accepted facts, their identities and subjects.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Longest `source`, `id` or other name a row can hold, in bytes of UTF-8; index rows end at a third of a page. A name
/// must not contain U+0000 either. Callers park what breaks this.
pub const MAX_NAME_BYTES: usize = 1024;

/// Whether a name can be stored.
pub fn is_storable_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.contains('\0')
}

/// A fact to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFact {
    /// CloudEvents `source`.
    pub source: String,
    /// CloudEvents `id`.
    pub id: String,
    /// CloudEvents `type`.
    pub kind: String,
    /// When it happened.
    pub at_us: i64,
    /// When it is accepted.
    pub received_at_us: i64,
    /// Version of the rules it is accepted under.
    pub rule_set: String,
    /// SHA-256 of its content, keyed where it has personal fields (I-1, L-3).
    pub digest: [u8; 32],
    /// Canonical JSON of the whole event, personal fields sealed.
    pub body: Vec<u8>,
    /// What it is about: `gpu:…`, `node:…`, `alloc:…`, …; repeated ones count once.
    pub subjects: Vec<String>,
    /// How it is found.
    pub indexed: Indexed,
}

/// How a fact is found by its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// One of [`crate::index::kind`].
    pub kind: char,
    /// When it happened; of work the end of the time it is about.
    pub at_us: i64,
    /// Of an inventory.
    pub inventory: Option<NewInventory>,
}

impl Default for Indexed {
    fn default() -> Self {
        Self { kind: crate::index::kind::OTHER, at_us: 0, inventory: None }
    }
}

/// What is known of an inventory without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInventory {
    /// SHA-256 of what it says besides its time.
    pub content: [u8; 32],
    /// Which node.
    pub node: String,
    /// Which GPUs.
    pub gpus: Vec<String>,
}

/// What became of one fact of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It stands now.
    New {
        /// Its place in the order of acceptance.
        seq: i64,
    },
    /// Its identity was taken before: a repetition if the digests are equal, else a conflict.
    Exists {
        /// Digest of the content that stands.
        digest: [u8; 32],
        /// `seq` of the fact that stands.
        seq: i64,
    },
}

/// An accepted fact.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredFact {
    /// Order of acceptance, with holes.
    pub seq: i64,
    /// CloudEvents `source`.
    pub source: String,
    /// CloudEvents `id`.
    pub id: String,
    /// When it was accepted.
    pub received_at_us: i64,
    /// Canonical JSON of the whole event, personal fields sealed.
    pub body: Vec<u8>,
}

/// The set of accepted facts in two values (V-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsDigest {
    /// How many.
    pub count: i64,
    /// Greatest `seq`; 0 where there are none.
    pub last_seq: i64,
    /// SHA-256 over (source, id, digest) of each, sorted by source and id as bytes; texts are preceded by their length as u64,
    /// big-endian.
    pub digest: [u8; 32],
}

#[derive(sqlx::FromRow)]
struct IdentityRow {
    source: String,
    id: String,
    digest: Vec<u8>,
    fact_seq: i64,
}

/// Content digests and fact `seq`s of those of `names` (source, id) that were accepted before.
///
/// # Errors
/// Driver errors.
pub async fn identities(
    tx: &mut PgConnection,
    names: &[(String, String)],
) -> Result<BTreeMap<(String, String), ([u8; 32], i64)>, StorageError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows: Vec<IdentityRow> = sqlx::query_as(
        "SELECT source, id, digest, fact_seq FROM identity JOIN UNNEST($1::TEXT[], $2::TEXT[]) AS wanted (source, id) USING (source, id)",
    )
    .bind(names.iter().map(|(source, _)| source.as_str()).collect::<Vec<_>>())
    .bind(names.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("reading identities")?;
    rows.into_iter().map(|row| Ok(((row.source, row.id), (digest(&row.digest)?, row.fact_seq)))).collect()
}

/// Accepts facts: identity, fact, subjects and pending audit record of each, in the caller's transaction. Returns what
/// became of each, in order. Of equal identities the first stands (I-6), within the batch and against other consumers: where
/// one of them is just inserting the same identity, this waits for its commit and then reports what stands.
///
/// # Errors
/// [`StorageError::Refused`] for a name longer than [`MAX_NAME_BYTES`]; [`StorageError::Contention`]: try again.
pub async fn insert_facts(tx: &mut PgConnection, facts: &[NewFact]) -> Result<Vec<Inserted>, StorageError> {
    if facts.is_empty() {
        return Ok(Vec::new());
    }
    let won = insert_winners(tx, facts).await?;
    insert_subjects(tx, facts, &won).await?;
    insert_inventories(tx, facts, &won).await?;
    let lost: Vec<(String, String)> = (0..facts.len())
        .filter(|place| !won.contains_key(place))
        .filter_map(|place| facts.get(place))
        .map(|fact| (fact.source.clone(), fact.id.clone()))
        .collect();
    // A new statement: it sees what the winner committed while the insertion waited.
    let standing = identities(tx, &lost).await?;
    facts.iter().enumerate().map(|(place, fact)| outcome(place, fact, &won, &standing)).collect()
}

fn outcome(
    place: usize,
    fact: &NewFact,
    won: &BTreeMap<usize, i64>,
    standing: &BTreeMap<(String, String), ([u8; 32], i64)>,
) -> Result<Inserted, StorageError> {
    if let Some(seq) = won.get(&place) {
        return Ok(Inserted::New { seq: *seq });
    }
    match standing.get(&(fact.source.clone(), fact.id.clone())) {
        Some((digest, seq)) => Ok(Inserted::Exists { digest: *digest, seq: *seq }),
        None => Err(StorageError::Other {
            doing: "accepting facts",
            message: format!("identity ({}, {}) is neither new nor known", fact.source, fact.id),
            source: None,
        }),
    }
}

/// Inserts identities and, for those that were free, facts and audit records. Returns `seq` by place in `facts`.
/// Identities go in by (source, id), so that two consumers never wait for each other in a circle.
async fn insert_winners(
    tx: &mut PgConnection,
    facts: &[NewFact],
) -> Result<BTreeMap<usize, i64>, StorageError> {
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "WITH given AS (
            SELECT nextval('public.fact_seq_seq') AS seq, g.*
            FROM UNNEST($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::INT8[], $5::INT8[], $6::TEXT[], $7::BYTEA[], $8::BYTEA[])
                 WITH ORDINALITY AS g (source, id, type, at_us, received_at_us, rule_set, digest, body, place)
        ), won AS (
            INSERT INTO identity (source, id, digest, fact_seq)
            SELECT source, id, digest, seq FROM given ORDER BY source, id, place
            ON CONFLICT DO NOTHING RETURNING fact_seq
        ), accepted AS (
            INSERT INTO fact (seq, source, id, type, at_us, received_at_us, rule_set, digest, body) OVERRIDING SYSTEM VALUE
            SELECT seq, source, id, type, at_us, received_at_us, rule_set, digest, body
            FROM given JOIN won ON seq = fact_seq ORDER BY seq
        ), pending AS (
            INSERT INTO audit_pending (fact_seq, kind, body, recorded_at_us)
            SELECT seq, type, body, received_at_us FROM given JOIN won ON seq = fact_seq ORDER BY seq
        )
        SELECT place - 1, seq FROM given JOIN won ON seq = fact_seq",
    )
    .bind(facts.iter().map(|f| f.source.as_str()).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.id.as_str()).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.kind.as_str()).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.at_us).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.received_at_us).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.rule_set.as_str()).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.digest.as_slice()).collect::<Vec<_>>())
    .bind(facts.iter().map(|f| f.body.as_slice()).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("accepting facts")?;
    rows.into_iter().map(|(place, seq)| Ok((place_of(place)?, seq))).collect()
}

async fn insert_subjects(
    tx: &mut PgConnection,
    facts: &[NewFact],
    won: &BTreeMap<usize, i64>,
) -> Result<(), StorageError> {
    let mut rows = CopyRows::default();
    for (place, seq) in won {
        let Some(fact) = facts.get(*place) else { continue };
        // Grants of a source are found by its open allocations; the subject is there to be locked.
        let stored = fact.subjects.iter().filter(|subject| !subject.starts_with("source-grants:"));
        let subjects: BTreeSet<&str> = stored.map(String::as_str).collect();
        for subject in subjects {
            rows.text(subject).plain(fact.indexed.kind).plain(fact.indexed.at_us).plain(seq).end_row();
        }
    }
    let statement = "COPY fact_subject (subject, kind, at_us, fact_seq) FROM STDIN";
    rows.send(tx, statement, "writing the subjects of facts").await?;
    Ok(())
}

async fn insert_inventories(
    tx: &mut PgConnection,
    facts: &[NewFact],
    won: &BTreeMap<usize, i64>,
) -> Result<(), StorageError> {
    let mut contents = CopyRows::default();
    let mut homes = BTreeSet::new();
    for (place, seq) in won {
        let Some(inventory) = facts.get(*place).and_then(|fact| fact.indexed.inventory.as_ref()) else {
            continue;
        };
        contents.plain(seq).bytes(&inventory.content).end_row();
        homes.extend(inventory.gpus.iter().map(|gpu| (gpu.as_str(), inventory.node.as_str())));
    }
    let statement = "COPY inventory_content (fact_seq, content) FROM STDIN";
    if contents.send(tx, statement, "writing inventories").await? == 0 {
        return Ok(());
    }
    // In order, so that two batches never wait for each other in a circle.
    sqlx::query(
        r#"INSERT INTO gpu_home (gpu, node) SELECT gpu, node FROM UNNEST($1::TEXT[], $2::TEXT[]) AS g (gpu, node)
           ORDER BY gpu COLLATE "C", node COLLATE "C" ON CONFLICT DO NOTHING"#,
    )
    .bind(homes.iter().map(|(gpu, _)| *gpu).collect::<Vec<_>>())
    .bind(homes.iter().map(|(_, node)| *node).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("writing where GPUs are")?;
    Ok(())
}

/// All facts about any of `subjects`, each once, in order of acceptance.
///
/// # Errors
/// Driver errors.
pub async fn load_by_subjects(
    tx: &mut PgConnection,
    subjects: &[String],
) -> Result<Vec<StoredFact>, StorageError> {
    sqlx::query_as(
        "SELECT seq, source, id, received_at_us, body FROM fact
         WHERE seq IN (SELECT fact_seq FROM fact_subject WHERE subject = ANY($1))
         ORDER BY seq",
    )
    .bind(subjects)
    .fetch_all(tx)
    .await
    .doing("reading facts by subject")
}

/// Subjects that begin with `prefix` (`gpu:`, `node:`, …), sorted by their bytes.
///
/// # Errors
/// Driver errors.
pub async fn subjects(tx: &mut PgConnection, prefix: &str) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        r#"SELECT subject FROM (SELECT DISTINCT subject FROM fact_subject WHERE starts_with(subject, $1)) AS found
           ORDER BY subject COLLATE "C""#,
    )
    .bind(prefix)
    .fetch_all(tx)
    .await
    .doing("listing subjects")
}

/// Up to `limit` facts with a `seq` above `after`, in order of acceptance: all facts page by page, beginning at 0. Read the
/// pages in one [`crate::Db::snapshot`].
///
/// # Errors
/// Driver errors.
pub async fn load_page(
    connection: &mut PgConnection,
    after: i64,
    limit: i64,
) -> Result<Vec<StoredFact>, StorageError> {
    sqlx::query_as(
        "SELECT seq, source, id, received_at_us, body FROM fact WHERE seq > $1 ORDER BY seq LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("reading facts")
}

/// All facts in order of acceptance, in memory.
///
/// # Errors
/// Driver errors.
pub async fn load_all(connection: &mut PgConnection) -> Result<Vec<StoredFact>, StorageError> {
    load_page(connection, 0, i64::MAX).await
}

/// Count and digest of all accepted facts.
///
/// # Errors
/// Driver errors.
pub async fn digest_all(connection: &mut PgConnection) -> Result<FactsDigest, StorageError> {
    let mut rows = sqlx::query_as::<_, (String, String, Vec<u8>, i64)>(
        r#"SELECT source, id, digest, seq FROM fact ORDER BY source COLLATE "C", id COLLATE "C""#,
    )
    .fetch(connection);
    let mut hash = Sha256::new();
    let (mut count, mut last_seq) = (0, 0);
    while let Some((source, id, digest, seq)) = rows.try_next().await.doing("digesting the facts")? {
        for text in [source.as_bytes(), id.as_bytes()] {
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(text);
        }
        hash.update(&digest);
        count += 1;
        last_seq = seq.max(last_seq);
    }
    Ok(FactsDigest { count, last_seq, digest: hash.finalize().into() })
}

fn digest(bytes: &[u8]) -> Result<[u8; 32], StorageError> {
    bytes.try_into().map_err(|_| StorageError::Other {
        doing: "reading a digest",
        message: format!("it has {} bytes, not 32", bytes.len()),
        source: None,
    })
}

fn place_of(number: i64) -> Result<usize, StorageError> {
    usize::try_from(number).map_err(|_| StorageError::invalid(format!("place {number}"), "want 0 or more"))
}
