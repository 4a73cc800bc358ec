//! From records to leaves. What the database must be asked is asked once a batch; the rest is computed beside the event loop.

use crate::error::AuditError;
use gpuledger_domain::time::Instant;
use gpuledger_storage::audit_log::{self, Ends as StoredEnds, NewLeaf, Waiting};
use gpuledger_storage::{Db, Tx};
use gpuledger_trail::keys::Seal;
use gpuledger_trail::leaf::{Draft, HEARTBEAT, encode};
use gpuledger_trail::links::{Ends, Places, allocation, gpus, link, places};
use gpuledger_trail::private::{Private, Subject, split};
use gpuledger_trail::sealed::{Gone, Opener, numbers};
use gpuledger_trail::subjects::Subjects;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Records of one transaction at most. Larger ones are hardly faster, and hold the others up for longer.
const BATCH: i64 = 4_000;

/// Leaves of one transaction.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In order, the first at the size the log will have then.
    pub(super) leaves: Vec<NewLeaf>,
    /// Numbers of the records they were composed of.
    pub(super) taken: Vec<i64>,
    /// Ends of the chains that move.
    pub(super) chains: BTreeMap<String, StoredEnds>,
    /// How many keys were destroyed when it was composed.
    pub(super) erasures: i64,
}

/// What composing remembers: it runs ahead of what is written.
#[derive(Debug)]
pub(super) struct Composer {
    pub(super) subjects: Subjects,
    chains: BTreeMap<String, Ends>,
    /// Index of the next leaf.
    pub(super) next: u64,
}

impl Composer {
    pub(super) fn new(subjects: Subjects, next: u64) -> Self {
        Self { subjects, chains: BTreeMap::new(), next }
    }
}

/// A record taken apart.
struct Read {
    waiting: Waiting,
    content: Value,
    private: Vec<Private>,
    places: Places,
    allocation: Option<String>,
    /// Tenants that it concerns without naming them: whose allocation it is.
    concerned: BTreeSet<Subject>,
    /// Whose keys seal something in it: its leaf is found by them, too, where they stand within another's commitment.
    sealed: BTreeSet<i64>,
}

fn read(waiting: Waiting, opener: &Opener) -> Read {
    // What is committed to is what was said. Nobody's key is destroyed while a record of it waits here (`erase`).
    let (content, private) = split(&waiting.kind, &opener.opened(&waiting.body, Gone::Kept));
    let sealed = numbers(&waiting.body);
    // Names of GPUs and allocations are public, so the content has them.
    let (places, allocation) = (places(&content), allocation(&waiting.kind, &content));
    Read { waiting, content, private, places, allocation, concerned: BTreeSet::new(), sealed }
}

/// Records that were read and have no leaf yet, in order.
#[derive(Default)]
pub(super) struct Taken(Vec<Read>);

impl Taken {
    /// The number of the last of them; none: there are none.
    pub(super) fn last(&self) -> Option<i64> {
        self.0.last().map(|record| record.waiting.seq)
    }
}

/// Reads what waits beyond `after`, as much as a batch may have.
pub(super) async fn taken(db: &Db, seal: &Seal, after: i64) -> Result<Taken, AuditError> {
    let mut tx = db.begin().await?;
    let waiting = audit_log::waiting(&mut tx, after, BATCH).await?;
    if waiting.is_empty() {
        return Ok(Taken::default());
    }
    let (waiting, sealers) = beside(move || {
        let sealers: BTreeSet<i64> = waiting.iter().flat_map(|record| numbers(&record.body)).collect();
        (waiting, sealers)
    })
    .await?;
    let opener = Opener::of(&mut tx, seal, &sealers).await?;
    tx.commit().await?;
    beside(move || Taken(waiting.into_iter().map(|record| read(record, &opener)).collect())).await
}

/// Composes the leaves of records; an empty batch where there are none. Subjects that are met for the first time have their keys afterwards, whether the leaves are written
/// or not.
pub(super) async fn composed(
    db: &Db,
    mut composer: Composer,
    Taken(mut records): Taken,
    now: Instant,
) -> Result<(Composer, Batch), AuditError> {
    if records.is_empty() {
        return Ok((composer, Batch::default()));
    }
    let mut tx = db.begin().await?;
    place_by_allocation(&mut tx, &mut records).await?;
    load_chains(&mut tx, &mut composer, &records).await?;
    let named =
        |record: &Read| record.private.iter().map(|private| private.subject.clone()).collect::<Vec<_>>();
    let wanted: BTreeSet<Subject> = records
        .iter()
        .flat_map(|record| named(record).into_iter().chain(record.concerned.iter().cloned()))
        .collect();
    composer.subjects.have(&mut tx, &wanted, now).await?;
    tx.commit().await?;
    beside(move || composed_of(composer, records, now)).await
}

/// Computation does not stop the event loop.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, AuditError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| AuditError::BrokenOff)
}

fn composed_of(mut composer: Composer, records: Vec<Read>, now: Instant) -> (Composer, Batch) {
    let mut batch = Batch { erasures: composer.subjects.erasures(), ..Batch::default() };
    let touched = gpus(records.iter().map(|record| &record.places));
    for record in records {
        batch.taken.push(record.waiting.seq);
        batch.leaves.push(leaf(&mut composer, record, now));
        composer.next += 1;
    }
    let ends = |gpu: String| composer.chains.get(&gpu).map(|ends| (gpu, (ends.counts, ends.lasts)));
    batch.chains = touched.into_iter().filter_map(ends).collect();
    (composer, batch)
}

fn leaf(composer: &mut Composer, record: Read, now: Instant) -> NewLeaf {
    let signed = i64::try_from(composer.next).unwrap_or(i64::MAX);
    let links = link(signed, &record.places, &mut composer.chains);
    // Every subject was looked up for the batch.
    let keyed: Vec<_> = record
        .private
        .iter()
        .filter_map(|private| composer.subjects.get(&private.subject).map(|(no, key)| (no, (private, key))))
        .collect();
    let (numbers, private): (Vec<i64>, Vec<_>) = keyed.into_iter().unzip();
    let draft = Draft {
        index: composer.next,
        kind: record.waiting.kind,
        fact_seq: record.waiting.fact_seq,
        recorded_at: Instant::from_micros(record.waiting.recorded_at_us),
        // The log's clock follows no record's: what was recorded by a faster clock is still sequenced now.
        sequenced_at: now,
        links,
        content: record.content,
    };
    let (bytes, kept) = encode(draft, &private);
    let concerned =
        record.concerned.iter().filter_map(|subject| composer.subjects.get(subject)).map(|(no, _)| no);
    let mut subjects: Vec<i64> =
        kept.iter().filter_map(|place| numbers.get(*place)).copied().chain(concerned).collect();
    let further: Vec<i64> = record.sealed.into_iter().filter(|number| !subjects.contains(number)).collect();
    subjects.extend(further);
    NewLeaf {
        index: signed,
        pending_seq: Some(record.waiting.seq),
        fact_seq: record.waiting.fact_seq,
        subjects,
        leaf: bytes,
    }
}

/// A release, a transfer or a state names its allocation: it touches what that was granted, and is its tenant's too.
async fn place_by_allocation(tx: &mut Tx, records: &mut [Read]) -> Result<(), AuditError> {
    let named: BTreeSet<String> = records.iter().filter_map(|record| record.allocation.clone()).collect();
    if named.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = named.into_iter().collect();
    let mut held: BTreeMap<String, (Places, BTreeSet<Subject>)> = BTreeMap::new();
    for body in audit_log::holdings(tx, &named).await? {
        let Ok(body) = serde_json::from_slice::<Value>(&body) else { continue };
        let Some(name) = body.pointer("/data/allocation").and_then(Value::as_str) else { continue };
        let (all, tenants) = held.entry(name.to_owned()).or_default();
        for (gpu, slices) in places(&body) {
            *all.entry(gpu).or_default() |= slices;
        }
        tenants.extend(body.pointer("/data/tenant").and_then(Value::as_str).map(Subject::tenant));
    }
    for record in records {
        if let Some((places, tenants)) = record.allocation.as_ref().and_then(|name| held.get(name)) {
            record.places.extend(places.clone());
            record.concerned.extend(tenants.iter().cloned());
        }
    }
    Ok(())
}

async fn load_chains(tx: &mut Tx, composer: &mut Composer, records: &[Read]) -> Result<(), AuditError> {
    let touched = gpus(records.iter().map(|record| &record.places));
    let unknown: Vec<String> = touched.into_iter().filter(|gpu| !composer.chains.contains_key(gpu)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    for (gpu, (counts, lasts)) in audit_log::chains(tx, &unknown).await? {
        composer.chains.insert(gpu, Ends { counts, lasts });
    }
    Ok(())
}

/// The leaf that says only that the log lives.
pub(super) fn heartbeat_leaf(index: u64, now: Instant) -> NewLeaf {
    let draft = Draft {
        index,
        kind: HEARTBEAT.to_owned(),
        fact_seq: None,
        recorded_at: now,
        sequenced_at: now,
        links: Vec::new(),
        content: json!({}),
    };
    NewLeaf {
        index: i64::try_from(index).unwrap_or(i64::MAX),
        pending_seq: None,
        fact_seq: None,
        subjects: Vec::new(),
        leaf: encode(draft, &[]).0,
    }
}
