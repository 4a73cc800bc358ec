//! Settling: what something new changes is attributed anew and posted, from a floor on and nowhere else.

use crate::batch::BatchContext;
use crate::error::LedgerError;
use crate::models::{self, Mismatch};
use crate::points::point;
use crate::{post, residue};
use gpuledger_books::Terms;
use gpuledger_books::measured;
use gpuledger_books::scope::{News, Scope, floor_before, gather, standing};
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::ids::{GpuId, NodeId};
use gpuledger_domain::time::Instant;
use gpuledger_storage::hours::Filter;
use gpuledger_storage::{Tx, reach, touched, unsettled};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Form of the read models. Another one in the database means that all is derived anew before anything else is posted.
pub(crate) const DERIVED: i32 = 1;

/// GPUs of one transaction where many are settled or posted: the memory a fleet takes is bounded, and so is the time that locks are held.
pub(crate) const GPUS_AT_ONCE: i64 = 256;

/// What the news change, computed and not yet written.
pub(crate) struct Settlement {
    pub(crate) scope: Scope,
    ledger: Attribution,
    spans: models::Spans,
    posted_from: BTreeMap<GpuId, Instant>,
    news: News,
}

impl Settlement {
    /// Computes what the news change. Where spans stand over a floor otherwise than was computed, floors are lowered until they fit.
    pub(crate) async fn of(tx: &mut Tx, terms: &Terms, news: &News) -> Result<Self, LedgerError> {
        let mut news = news.clone();
        // What stands was settled without facts that wait: else what is found unchanged might not be what stands.
        news.unsettled.extend(unsettled::load(tx).await?);
        loop {
            let scope = gather(tx, terms, &news).await?;
            let (facts, lowered) =
                (u64::try_from(scope.effort.facts).unwrap_or(u64::MAX), u64::from(scope.effort.lowered));
            tracing::debug!(facts, lowered, changes = ?scope.changes, news = ?news, "gathered what is new");
            let mut floors = scope.floors.clone();
            for (gpu, from) in &news.gpus {
                floors.entry(gpu.clone()).and_modify(|floor| *floor = floor_before(*from).min(*floor));
            }
            let terms = with_measured(tx, terms, &scope.facts, &floors).await?;
            let ledger = terms.attribute_from(scope.facts.iter().map(AsRef::as_ref), news.now, &floors);
            match models::Spans::compare(tx, &ledger, &floors, news.now).await? {
                Ok(spans) => return Ok(Self { scope, ledger, spans, posted_from: floors, news }),
                Err(Mismatch { lower }) => lower_to(&mut news.gpus, lower),
            }
        }
    }

    /// As [`Settlement::of`], of a batch. What stands was settled without the life that telemetry proved since its node was marked: of the GPUs that
    /// are looked at it is settled with the batch. Else what the batch finds unchanged might not be what stands.
    pub(crate) async fn with_life(tx: &mut Tx, terms: &Terms, mut news: News) -> Result<Self, LedgerError> {
        // Of those that are named it is known that they are looked at.
        let named: BTreeSet<GpuId> = news.facts.values().flat_map(|fact| fact.body.gpus()).cloned().collect();
        hear(tx, &mut news, &named).await?;
        loop {
            let settlement = Self::of(tx, terms, &news).await?;
            if !hear(tx, &mut news, &settlement.scope.looked_at).await? {
                return Ok(settlement);
            }
        }
    }

    /// Subjects that must be held locked.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = String> {
        let nodes = self.news.heard.keys().map(|node| format!("node:{node}"));
        self.scope.subjects.iter().cloned().chain(nodes)
    }

    /// GPUs that are posted.
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &GpuId> {
        self.posted_from.keys()
    }

    /// Posts journals and read models.
    pub(crate) async fn write(
        self,
        tx: &mut Tx,
        context: &BatchContext,
        horizon: Instant,
    ) -> Result<(), LedgerError> {
        post::post(tx, &self.ledger, &self.posted_from, context.books.settings, horizon).await?;
        point("ledger::after-journals");
        self.spans.write(tx).await?;
        let heard: Vec<String> = self.news.heard.keys().map(ToString::to_string).collect();
        touched::take_of(tx, &heard, horizon.as_micros()).await?;
        models::replace_allocations_of(tx, &self.ledger, &self.scope.changes.allocations, horizon).await?;
        residue::settle(tx, &context.books, &self.news, &self.scope).await?;
        let subjects: Vec<String> = self.scope.reach.keys().cloned().collect();
        let rows: Vec<reach::ReachRow> = self.scope.reach.into_values().flatten().collect();
        reach::replace(tx, &subjects, &rows).await?;
        Ok(reach::list(tx, &self.scope.named).await?)
    }
}

/// Adds marks of these GPUs' nodes that the news do not have; false: there are none.
async fn hear(tx: &mut Tx, news: &mut News, gpus: &BTreeSet<GpuId>) -> Result<bool, LedgerError> {
    let gpus: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    let marks = touched::of_gpus(tx, &gpus, news.now.as_micros()).await?;
    let marks = marks.into_iter().map(|(node, us)| (NodeId::new(&node), Instant::from_micros(us)));
    let unknown: BTreeMap<NodeId, Instant> =
        marks.filter(|(node, _)| !news.heard.contains_key(node)).collect();
    let is_more = !unknown.is_empty();
    news.heard.extend(unknown);
    Ok(is_more)
}

/// What stands from floors on, attributed anew from the facts that act there and no more.
pub(crate) struct Anew {
    pub(crate) facts: Vec<Arc<Fact>>,
    pub(crate) terms: Terms,
    pub(crate) ledger: Attribution,
    /// How the read model differs.
    pub(crate) spans: models::Spans,
}

impl Anew {
    /// Floors are lowered until what stands over them goes on.
    pub(crate) async fn from(
        tx: &mut Tx,
        terms: &Terms,
        floors: &mut BTreeMap<GpuId, Instant>,
        horizon: Instant,
    ) -> Result<Self, LedgerError> {
        loop {
            let facts = standing(tx, terms, floors, horizon).await?;
            let terms = with_measured(tx, terms, &facts, floors).await?;
            let ledger = terms.attribute_from(facts.iter().map(AsRef::as_ref), horizon, floors);
            match models::Spans::compare(tx, &ledger, floors, horizon).await? {
                Ok(spans) => return Ok(Self { facts, terms, ledger, spans }),
                // What stands over a floor may be decided before it, and before the first hour there is nothing to go on from.
                Err(Mismatch { lower }) => {
                    floors.extend(lower.into_iter().map(|(gpu, at)| (gpu, floor_before(at))));
                }
            }
        }
    }
}

/// The terms with the measured time that these facts need from the floors on.
pub(crate) async fn with_measured(
    tx: &mut Tx,
    terms: &Terms,
    facts: &[Arc<Fact>],
    floors: &BTreeMap<GpuId, Instant>,
) -> Result<Terms, LedgerError> {
    let gpus: Vec<String> =
        terms.gpus_measured(facts.iter().map(AsRef::as_ref)).iter().map(ToString::to_string).collect();
    let Some(from) = floors.values().min().filter(|_| !gpus.is_empty()) else { return Ok(terms.clone()) };
    let filter = Filter { gpus: Some(&gpus), from_us: from.as_micros(), to_us: i64::MAX };
    Ok(Terms { measured: measured::load(tx, &filter).await?, ..terms.clone() })
}

fn lower_to(gpus: &mut BTreeMap<GpuId, Instant>, lower: BTreeMap<GpuId, Instant>) {
    for (gpu, from) in lower {
        let standing = gpus.entry(gpu).or_insert(from);
        *standing = from.min(*standing);
    }
}

#[cfg(test)]
mod tests;
