//! Journals and their entries: lock, read the last revision, post the next.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use crate::index::Asked;
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};

/// One posting: who has a unit's time in an interval.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct EntryRow {
    /// Begin of the interval.
    pub start_us: i64,
    /// End of the interval, exclusive.
    pub end_us: i64,
    /// `tenant`, `idle`, `stranded`, `scrub`, `quarantine`, `fault`, `maintenance`, `unobserved`.
    pub account: String,
    /// Of account `tenant` only.
    pub tenant: Option<String>,
    /// Of account `tenant` only.
    pub project: Option<String>,
    /// Of account `tenant` only.
    pub allocation: Option<String>,
    /// Index of the unit within its allocation.
    pub unit: Option<i32>,
    /// Memory slices of the unit, bit 0 = slice 0.
    pub memory_mask: i32,
    /// Compute slices of the unit.
    pub compute_slices: i16,
    /// The holder's part of the unit's time in the interval.
    pub part_us: i64,
}

impl EntryRow {
    /// Compute-slice-microseconds: part times compute slices.
    pub fn compute_slice_us(&self) -> i64 {
        self.part_us.saturating_mul(i64::from(self.compute_slices))
    }

    /// Memory-slice-microseconds: part times memory slices.
    pub fn memory_slice_us(&self) -> i64 {
        self.part_us.saturating_mul(i64::from(self.memory_mask.count_ones()))
    }
}

/// One revision of the journal of a GPU and UTC hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRevision {
    /// GPU.
    pub gpu: String,
    /// Begin of the hour.
    pub hour_us: i64,
    /// 1, or the last revision plus 1.
    pub revision: i32,
    /// Compute slices of the GPU.
    pub compute_slices: i16,
    /// Memory slices of the GPU.
    pub memory_slices: i16,
    /// When it has capacity within the hour: disjoint intervals.
    pub capacity: Vec<(i64, i64)>,
    /// SHA-256 of `entries`, as the caller defines it.
    pub digest: [u8; 32],
    /// As-of instant.
    pub horizon_us: i64,
    /// Version of the rules.
    pub rule_set: String,
    /// What is posted; the negation of the revision before is added by [`post`].
    pub entries: Vec<EntryRow>,
}

/// Header of the last revision of a journal.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct JournalHeader {
    /// GPU.
    pub gpu: String,
    /// Begin of the hour.
    pub hour_us: i64,
    /// Its revision.
    pub revision: i32,
    /// Compute slices of the GPU.
    pub compute_slices: i16,
    /// Memory slices of the GPU.
    pub memory_slices: i16,
    /// Length of its capacity.
    pub capacity_us: i64,
    /// SHA-256 of its entries.
    pub digest: Vec<u8>,
    /// As-of instant it was derived at.
    pub horizon_us: i64,
}

/// Headers of the last revisions of each GPU's journals, for the hours that begin at its instant or later, before `to_us`.
///
/// # Errors
/// Driver errors.
pub async fn standing_journals(
    connection: &mut PgConnection,
    asked: &[Asked],
    to_us: i64,
) -> Result<Vec<JournalHeader>, StorageError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_as(
        "SELECT found.* FROM UNNEST($1::TEXT[], $2::INT8[]) AS asked (gpu, from_us) CROSS JOIN LATERAL (
            SELECT DISTINCT ON (j.hour_us)
                   j.gpu, j.hour_us, j.revision, j.compute_slices, j.memory_slices, j.capacity_us, j.digest, j.horizon_us
            FROM journal AS j WHERE j.gpu = asked.gpu AND j.hour_us >= asked.from_us AND j.hour_us < $3
            ORDER BY j.hour_us, j.revision DESC OFFSET 0) AS found",
    )
    .bind(asked.iter().map(|(gpu, _)| gpu.as_str()).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, us)| *us).collect::<Vec<_>>())
    .bind(to_us)
    .fetch_all(connection)
    .await
    .doing("reading journals")
}

/// GPUs that have a journal, sorted by their bytes.
///
/// # Errors
/// Driver errors.
pub async fn gpus(connection: &mut PgConnection) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(r#"SELECT DISTINCT gpu COLLATE "C" FROM journal ORDER BY 1"#)
        .fetch_all(connection)
        .await
        .doing("listing GPUs")
}

/// The posted entries of the last revisions for the hours of `gpu` that begin in `[from_us, to_us)`, each with its hour, by
/// hour and line.
///
/// # Errors
/// Driver errors.
pub async fn last_entries(
    connection: &mut PgConnection,
    gpu: &str,
    from_us: i64,
    to_us: i64,
) -> Result<Vec<(i64, EntryRow)>, StorageError> {
    let rows: Vec<KeyedEntry> = sqlx::query_as(
        "SELECT e.gpu, e.hour_us, e.revision, e.start_us, e.end_us, e.account, e.tenant, e.project, e.allocation, e.unit,
                e.memory_mask, e.compute_slices, e.part_us
         FROM (SELECT hour_us, max(revision) AS revision FROM journal
               WHERE gpu = $1 AND hour_us >= $2 AND hour_us < $3 GROUP BY hour_us) AS last
         JOIN entry AS e ON e.gpu = $1 AND e.hour_us = last.hour_us AND e.revision = last.revision AND e.sign = 1
         WHERE e.hour_us >= $2 AND e.hour_us < $3
         ORDER BY e.hour_us, e.line",
    )
    .bind(gpu)
    .bind(from_us)
    .bind(to_us)
    .fetch_all(connection)
    .await
    .doing("reading entries")?;
    Ok(rows.into_iter().map(|row| (row.hour_us, row.entry)).collect())
}

#[derive(sqlx::FromRow)]
struct KeyedEntry {
    gpu: String,
    hour_us: i64,
    revision: i32,
    #[sqlx(flatten)]
    entry: EntryRow,
}

/// Posts revisions: their headers, then the entries of all and the negations of the revisions before, in one COPY. The
/// GPUs' subjects must be locked ([`crate::locks`]). The partitions of their months are made where they lack.
///
/// # Errors
/// [`StorageError::Refused`] with constraint `journal_balance` names GPU, hour, revision and the broken rule.
pub async fn post(tx: &mut PgConnection, revisions: &[JournalRevision]) -> Result<(), StorageError> {
    if revisions.is_empty() {
        return Ok(());
    }
    ensure_partitions(tx, revisions).await?;
    let mut negated = entries_before(tx, revisions).await?;
    headers(revisions)
        .send(
            tx,
            "COPY journal (gpu, hour_us, revision, compute_slices, memory_slices, capacity, digest, horizon_us, rule_set) FROM STDIN",
            "posting journals",
        )
        .await?;
    let mut rows = CopyRows::default();
    for revision in revisions {
        let before = negated.remove(&(revision.gpu.clone(), revision.hour_us, revision.revision));
        push_journal(&mut rows, revision, &before.unwrap_or_default());
    }
    rows.send(
        tx,
        "COPY entry (gpu, hour_us, revision, line, sign, start_us, end_us, account, tenant, project, allocation, unit,
                     memory_mask, compute_slices, part_us, compute_slice_us, memory_slice_us) FROM STDIN",
        "posting entries",
    )
    .await?;
    Ok(())
}

async fn ensure_partitions(tx: &mut PgConnection, revisions: &[JournalRevision]) -> Result<(), StorageError> {
    let hours: BTreeSet<i64> = revisions.iter().map(|revision| revision.hour_us).collect();
    sqlx::query(
        "SELECT ensure_entry_partition(first) FROM (
            SELECT min(hour_us) AS first FROM UNNEST($1::INT8[]) AS hour_us
            GROUP BY date_trunc('month', timestamp 'epoch' + make_interval(secs => hour_us / 1000000)) ORDER BY first
         ) AS months",
    )
    .bind(hours.into_iter().collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("making partitions")?;
    Ok(())
}

type JournalKey = (String, i64, i32);

/// What each of `revisions` has to negate, by its own key.
async fn entries_before(
    tx: &mut PgConnection,
    revisions: &[JournalRevision],
) -> Result<BTreeMap<JournalKey, Vec<EntryRow>>, StorageError> {
    let later: Vec<&JournalRevision> = revisions.iter().filter(|revision| revision.revision > 1).collect();
    let mut before: BTreeMap<JournalKey, Vec<EntryRow>> = BTreeMap::new();
    if later.is_empty() {
        return Ok(before);
    }
    let rows: Vec<KeyedEntry> = sqlx::query_as(
        "SELECT e.gpu, e.hour_us, e.revision, e.start_us, e.end_us, e.account, e.tenant, e.project, e.allocation, e.unit,
                e.memory_mask, e.compute_slices, e.part_us
         FROM UNNEST($1::TEXT[], $2::INT8[], $3::INT4[]) AS later (gpu, hour_us, revision)
         JOIN entry AS e ON e.gpu = later.gpu AND e.hour_us = later.hour_us AND e.revision = later.revision - 1 AND e.sign = 1
         ORDER BY e.gpu, e.hour_us, e.line",
    )
    .bind(later.iter().map(|r| r.gpu.as_str()).collect::<Vec<_>>())
    .bind(later.iter().map(|r| r.hour_us).collect::<Vec<_>>())
    .bind(later.iter().map(|r| r.revision).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("reading what is to be negated")?;
    for row in rows {
        before.entry((row.gpu, row.hour_us, row.revision + 1)).or_default().push(row.entry);
    }
    // Revisions posted together negate each other.
    let posted: BTreeSet<JournalKey> = later.iter().map(|r| (r.gpu.clone(), r.hour_us, r.revision)).collect();
    for revision in revisions {
        let next = (revision.gpu.clone(), revision.hour_us, revision.revision + 1);
        if posted.contains(&next) {
            before.insert(next, revision.entries.clone());
        }
    }
    Ok(before)
}

fn headers(revisions: &[JournalRevision]) -> CopyRows {
    let mut rows = CopyRows::default();
    for revision in revisions {
        let capacity: Vec<String> =
            revision.capacity.iter().map(|(start, end)| format!("[{start},{end})")).collect();
        rows.text(&revision.gpu).plain(revision.hour_us).plain(revision.revision);
        rows.plain(revision.compute_slices).plain(revision.memory_slices);
        rows.plain(format_args!("{{{}}}", capacity.join(","))).bytes(&revision.digest);
        rows.plain(revision.horizon_us).text(&revision.rule_set).end_row();
    }
    rows
}

fn push_journal(rows: &mut CopyRows, revision: &JournalRevision, negated: &[EntryRow]) {
    let posted = revision.entries.iter().map(|entry| (1, entry));
    let entries = negated.iter().map(|entry| (-1, entry)).chain(posted);
    for (line, (sign, entry)) in (1_i64..).zip(entries) {
        rows.text(&revision.gpu).plain(revision.hour_us).plain(revision.revision).plain(line).plain(sign);
        rows.plain(entry.start_us).plain(entry.end_us).text(&entry.account);
        rows.text_or_null(entry.tenant.as_deref()).text_or_null(entry.project.as_deref());
        rows.text_or_null(entry.allocation.as_deref()).plain_or_null(entry.unit);
        rows.plain(entry.memory_mask).plain(entry.compute_slices).plain(entry.part_us);
        rows.plain(entry.compute_slice_us()).plain(entry.memory_slice_us()).end_row();
    }
}
