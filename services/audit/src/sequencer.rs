//! The sequencer: it takes what waits, composes leaves, and appends them with the tree over them, one batch a transaction (L-4). Records become visible out of
//! order of their numbers, so what waits is a queue and no position is remembered: a record is taken whenever it becomes visible, and its leaf and its place in the queue
//! go together. While one batch is written the next one is composed, and the one behind it is read.

mod batch;

use crate::edge::Edge;
use crate::error::AuditError;
use crate::points::point;
use batch::{Batch, Composer, Taken, composed, heartbeat_leaf, taken};
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, audit_log, subject_keys};
use gpuledger_tlog::hash::Hash;
use gpuledger_trail::keys::Seal;
use gpuledger_trail::subjects::Subjects;

/// A round ends after so many leaves, though more wait: a heartbeat may be due.
pub const ROUND_LEAVES_MAX: u64 = 100_000;

/// The sequencer of a database. Several may run; one of them works at a time.
#[derive(Debug)]
pub struct Sequencer {
    db: Db,
    seal: Seal,
    /// What the last transaction left in memory; forgotten with any failure.
    warm: Option<Warm>,
}

/// What is kept between two batches. The database has all of it too.
#[derive(Debug)]
struct Warm {
    edge: Edge,
    composer: Composer,
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// So many leaves were appended.
    Appended(u64),
    /// Another process has the sequencer's lock.
    NotOurs,
}

impl Sequencer {
    /// For a database; `seal` seals keys of subjects.
    pub fn new(db: Db, seal: Seal) -> Self {
        Self { db, seal, warm: None }
    }

    /// Gives a leaf to what waits now, to all of it but for [`ROUND_LEAVES_MAX`].
    ///
    /// # Errors
    /// The database or a key; what was appended before stays.
    pub async fn drain(&mut self, now: Instant) -> Result<Round, AuditError> {
        let Some(Warm { mut edge, composer }) = self.warmed().await? else { return Ok(Round::NotOurs) };
        let (db, seal) = (&self.db, &self.seal);
        let first = taken(db, seal, 0).await?;
        let beyond = first.last();
        let (next, records) = tokio::join!(composed(db, composer, first, now), more(db, seal, beyond));
        let ((mut composer, mut batch), mut records) = (next?, records?);
        let mut appended = 0;
        while !batch.taken.is_empty() {
            appended += u64::try_from(batch.leaves.len()).unwrap_or(0);
            let (chosen, beyond) = if appended < ROUND_LEAVES_MAX {
                let last = records.last();
                (records, last)
            } else {
                (Taken::default(), None)
            };
            let (written, next, further) = tokio::join!(
                write(db, &mut edge, &batch),
                composed(db, composer, chosen, now),
                more(db, seal, beyond)
            );
            if !written? {
                return Ok(Round::NotOurs);
            }
            (composer, batch) = next?;
            records = further?;
        }
        self.warm = Some(Warm { edge, composer });
        Ok(Round::Appended(appended))
    }

    /// Appends the leaf that says that the log lives.
    ///
    /// # Errors
    /// The database.
    pub async fn beat(&mut self, now: Instant) -> Result<Round, AuditError> {
        let Some(Warm { mut edge, mut composer }) = self.warmed().await? else { return Ok(Round::NotOurs) };
        let leaves = vec![heartbeat_leaf(edge.size(), now)];
        let batch = Batch { leaves, erasures: composer.subjects.erasures(), ..Batch::default() };
        if !write(&self.db, &mut edge, &batch).await? {
            return Ok(Round::NotOurs);
        }
        composer.next = edge.size();
        self.warm = Some(Warm { edge, composer });
        Ok(Round::Appended(1))
    }

    /// What is kept in memory, where it is as the database has it, else from there; none where another process has the lock. It is put back
    /// only after a success.
    async fn warmed(&mut self) -> Result<Option<Warm>, AuditError> {
        let warm = self.warm.take();
        let mut tx = self.db.begin().await?;
        if !audit_log::try_lock(&mut tx).await? {
            return Ok(None);
        }
        let size = unsigned(audit_log::size(&mut tx).await?);
        let mut warm = match warm.filter(|warm| warm.edge.size() == size) {
            Some(warm) => warm,
            None => {
                let edge = Edge::load(&mut tx, size).await?;
                let subjects = Subjects::load(&mut tx, self.seal.clone()).await?;
                Warm { edge, composer: Composer::new(subjects, size) }
            }
        };
        warm.composer.subjects.refresh(&mut tx, self.seal.clone()).await?;
        tx.commit().await?;
        Ok(Some(warm))
    }
}

/// What waits beyond a record; nothing where there is no such record.
async fn more(db: &Db, seal: &Seal, beyond: Option<i64>) -> Result<Taken, AuditError> {
    match beyond {
        Some(after) => taken(db, seal, after).await,
        None => Ok(Taken::default()),
    }
}

/// Leaves, full tiles, chains and the queue in one transaction; false where another process has the lock or was faster, or a key was destroyed since the
/// batch was composed: it is composed anew then.
async fn write(db: &Db, edge: &mut Edge, batch: &Batch) -> Result<bool, AuditError> {
    let mut tx = db.begin().await?;
    let is_ours = audit_log::try_lock(&mut tx).await?
        && unsigned(audit_log::size(&mut tx).await?) == edge.size()
        && subject_keys::state(&mut tx).await?.1 == batch.erasures;
    if !is_ours {
        return Ok(false);
    }
    let mut full = Vec::new();
    for leaf in &batch.leaves {
        edge.push(Hash::of_leaf(&leaf.leaf), &mut full);
    }
    audit_log::append_leaves(&mut tx, &batch.leaves).await?;
    point("audit::leaves_written");
    audit_log::append_tiles(&mut tx, &full).await?;
    let size = i64::try_from(edge.size()).unwrap_or(i64::MAX);
    audit_log::put_root(&mut tx, size, &edge.root()?.0).await?;
    if !batch.chains.is_empty() {
        audit_log::put_chains(&mut tx, &batch.chains).await?;
    }
    if !batch.taken.is_empty() {
        audit_log::take(&mut tx, &batch.taken).await?;
    }
    point("audit::before_leaves");
    tx.commit().await?;
    point("audit::after_leaves");
    Ok(true)
}

/// Numbers of the database that are never negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
