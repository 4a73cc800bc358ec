//! The order of facts: time, rank of the type, source, id. Arrival plays no part.

use crate::fact::{Fact, FactBody};
use crate::time::Instant;

/// The facts that act at `as_of`, each once, in the order of A-18.
pub(super) fn acting(facts: Vec<&Fact>, as_of: Instant) -> Vec<&Fact> {
    let mut acting = facts;
    acting.retain(|fact| fact.at <= as_of);
    acting.sort_by(|a, b| key(a).cmp(&key(b)));
    acting.dedup_by(|a, b| {
        a.source == b.source && a.id == b.id && a.at == b.at && rank(&a.body) == rank(&b.body)
    });
    acting
}

fn key(fact: &Fact) -> (Instant, u8, &str, &str) {
    (fact.at, rank(&fact.body), fact.source.as_str(), &fact.id)
}

fn rank(body: &FactBody) -> u8 {
    match body {
        FactBody::Inventory(_) => 0,
        FactBody::UnitState(_) => 1,
        FactBody::NodeAlive(_) => 2,
        FactBody::Released { .. } => 3,
        FactBody::ScrubStarted { .. } | FactBody::ScrubFinished { .. } => 4,
        FactBody::QuarantineReleased { .. } => 5,
        FactBody::Transferred { .. } => 6,
        FactBody::Granted(_) => 7,
        FactBody::Placed(_) => 8,
        FactBody::AllocationState { .. } => 9,
        FactBody::Snapshot { .. } => 10,
        FactBody::Work(_) | FactBody::Other => 11,
        FactBody::NodeDecommissioned(_) | FactBody::GpuDecommissioned(_) => 12,
    }
}
