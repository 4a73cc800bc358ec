//! The part of the books that something new can change: what differs, from when on, and the facts that decide it.
//!
//! Nothing is read that lies before a floor but what is carried over it. What is new says where to look and from when on ([`News`]); then
//! facts are read ([`reading`]), the ledger is looked at without and with what is new, and what differs is compared
//! ([`gpuledger_domain::attribution::changes`]). Where it differs earlier than was read, or on more GPUs, more is read and compared again: what
//! comes out is the same as if everything had been read. In the worst case it has been.

mod carried;
mod floors;
mod follow;
mod places;
mod reading;
mod snapshots;

pub use carried::reach_of_all;
pub use floors::floor_before;

use crate::Terms;
use crate::error::BooksError;
use gpuledger_domain::attribution::{Changes, Look};
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId};
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::reach::ReachRow;
use reading::Reading;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was not there when the ledger was settled last.
#[derive(Clone, Debug)]
pub struct News {
    /// Facts that may act otherwise now than before, by their order of acceptance.
    pub facts: BTreeMap<i64, Arc<Fact>>,
    /// Accepted facts that what stands was settled without: those of them that are new, and others that wait.
    pub unsettled: BTreeSet<i64>,
    /// Nodes that telemetry came from, each with the earliest instant it proves.
    pub heard: BTreeMap<NodeId, Instant>,
    /// GPUs to look at whatever came, each from when on.
    pub gpus: BTreeMap<GpuId, Instant>,
    /// Allocations to look at whatever came.
    pub allocations: BTreeSet<AllocationId>,
    /// From when on hours begin to be posted: whatever differs is painted from there on at the latest.
    pub due: Option<Instant>,
    /// The horizon then.
    pub before: Instant,
    /// The horizon now, not earlier.
    pub now: Instant,
}

impl News {
    /// Facts just accepted, of which those act that the horizon has reached.
    pub fn of_batch(accepted: BTreeMap<i64, Arc<Fact>>, horizon: Instant) -> Self {
        let mut facts = accepted;
        facts.retain(|_, fact| fact.at <= horizon);
        let unsettled = facts.keys().copied().collect();
        Self {
            facts,
            unsettled,
            heard: BTreeMap::new(),
            gpus: BTreeMap::new(),
            allocations: BTreeSet::new(),
            due: None,
            before: horizon,
            now: horizon,
        }
    }
}

impl News {
    /// From when on a GPU is painted that differs from `at` on.
    fn floor(&self, at: Instant) -> Instant {
        self.due.unwrap_or(Instant::MAX).min(floor_before(at))
    }
}

/// What is to be settled anew.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// What differs.
    pub changes: Changes,
    /// From when on each GPU that differs is painted: a full hour before anything differs.
    pub floors: BTreeMap<GpuId, Instant>,
    /// GPUs that were looked at, whether they differ or not.
    pub looked_at: BTreeSet<GpuId>,
    /// Everything that acts there, from the floors on.
    pub facts: Vec<Arc<Fact>>,
    /// Subjects whose reach stands anew, with their rows.
    pub reach: BTreeMap<String, Vec<ReachRow>>,
    /// Allocations that snapshots among the news name, as subjects, with the first and the last instant at which they do, microseconds UTC.
    pub named: BTreeMap<String, (i64, i64)>,
    /// Every subject that was asked for: what a batch must hold locked.
    pub subjects: BTreeSet<String>,
    /// How reading went.
    pub effort: Effort,
}

/// How much was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// How often more had to be read, because something differed earlier or elsewhere than was expected.
    pub lowered: u32,
    /// Facts that were read.
    pub facts: usize,
}

/// Gathers what `news` can change.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn gather(tx: &mut Tx, terms: &Terms, news: &News) -> Result<Scope, BooksError> {
    let mut reading = Reading::new(tx, terms.settings, news.now);
    reading.take(&news.facts);
    reading.follow_news(news, terms).await?;
    let mut floors = floors::first(&reading, news);
    let mut effort = Effort::default();
    loop {
        reading.read_around(&floors, &news.heard).await?;
        let facts = reading.facts();
        let changes = terms.changes(
            Look {
                facts: facts.iter().filter(|fact| fact.is_settled(news)).map(|fact| fact.fact).collect(),
                as_of: news.before,
            },
            Look { facts: facts.iter().map(|fact| fact.fact).collect(), as_of: news.now },
        );
        effort.facts = facts.len();
        reading.learn_firsts(&changes.moved).await?;
        if !floors::lower(&mut floors, &changes, news, &reading) {
            let looked_at = floors.into_keys().collect();
            let floors = changes.gpus.iter().map(|(gpu, at)| (gpu.clone(), news.floor(*at))).collect();
            let (reach, named) = (reading.reach(news), snapshots::named(news));
            let (facts, subjects) = reading.finish();
            return Ok(Scope { changes, floors, looked_at, facts, reach, named, subjects, effort });
        }
        effort.lowered += 1;
    }
}

/// Reads what paints these GPUs from their floors on, full hours, where nothing is new.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn standing(
    tx: &mut Tx,
    terms: &Terms,
    floors: &BTreeMap<GpuId, Instant>,
    now: Instant,
) -> Result<Vec<Arc<Fact>>, BooksError> {
    let mut reading = Reading::new(tx, terms.settings, now);
    reading.read_around(floors, &BTreeMap::new()).await?;
    Ok(reading.finish().0)
}

/// A fact as it was read.
#[derive(Clone, Copy)]
struct Known<'r> {
    /// None: a proof of life by telemetry.
    seq: Option<i64>,
    fact: &'r Fact,
}

impl Known<'_> {
    /// Whether the ledger was settled with it.
    fn is_settled(&self, news: &News) -> bool {
        match (self.seq, &self.fact.body) {
            (Some(seq), _) => !news.unsettled.contains(&seq),
            (None, FactBody::NodeAlive(node)) => news.heard.get(node).is_none_or(|from| self.fact.at < *from),
            (None, _) => true,
        }
    }
}
