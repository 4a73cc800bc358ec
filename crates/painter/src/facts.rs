//! The facts that act, in the one order that equal times have, and what is said about each allocation.

use gpuledger_domain::fact::{Fact, FactBody, Grant, PlacedOf};
use gpuledger_domain::ids::AllocationId;
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

/// The acting facts in order of A-18, each once.
pub(crate) struct Facts<'a> {
    /// In order; a position in it is a place in time.
    pub(crate) all: Vec<&'a Fact>,
    /// The horizon.
    pub(crate) as_of: Instant,
    /// Every allocation that some grant begins.
    pub(crate) allocations: BTreeMap<&'a AllocationId, Allocation<'a>>,
}

/// One allocation: its grant and the positions of the facts that name it.
pub(crate) struct Allocation<'a> {
    /// The grant that counts.
    pub(crate) fact: &'a Fact,
    /// Its body.
    pub(crate) grant: &'a Grant,
    /// Positions of all facts that name the allocation by its id, in order.
    pub(crate) named_at: Vec<usize>,
}

impl<'a> Facts<'a> {
    pub(crate) fn acting(facts: &'a [Fact], as_of: Instant) -> Self {
        let mut all: Vec<&Fact> = facts.iter().filter(|f| f.at <= as_of).collect();
        all.sort_by_key(|f| (f.at, rank(&f.body), &f.source, &f.id));
        all.dedup_by(|a, b| a.source == b.source && a.id == b.id);
        let allocations = allocations(&all);
        Self { all, as_of, allocations }
    }

    /// Who owns the allocation at `at`: the last transfer not after it, else the grant's tenant.
    pub(crate) fn transfers(&self, allocation: &AllocationId) -> Vec<&'a Fact> {
        let Some(known) = self.allocations.get(allocation) else { return Vec::new() };
        let named = known.named_at.iter().map(|position| self.all[*position]);
        named.filter(|f| matches!(f.body, FactBody::Transferred { .. })).collect()
    }

    /// The end that is said in words: the earliest release not before the start; the start itself where releases lie before it
    /// only; the last naming of an allocation that a later snapshot of its allocator lacks. `in_scope` tells whether a
    /// snapshot of these nodes, taken at this instant, speaks of the unit.
    pub(crate) fn end_in_words(
        &self,
        allocation: &Allocation<'_>,
        in_scope: impl Fn(&[gpuledger_domain::ids::NodeId], Instant) -> bool,
    ) -> Option<Instant> {
        let start = allocation.fact.at;
        let named = || allocation.named_at.iter().map(|position| self.all[*position]);
        let releases: Vec<Instant> =
            named().filter(|f| matches!(f.body, FactBody::Released { .. })).map(|f| f.at).collect();
        if !releases.is_empty() {
            return Some(releases.into_iter().filter(|at| *at >= start).min().unwrap_or(start));
        }
        let last = *allocation.named_at.last()?;
        let lacking = self.all[last + 1..].iter().any(|f| match &f.body {
            FactBody::Snapshot { nodes, .. } if f.source == allocation.fact.source => {
                nodes.as_ref().is_none_or(|nodes| in_scope(nodes, f.at))
            }
            _ => false,
        });
        lacking.then(|| self.all[last].at)
    }
}

fn allocations<'a>(all: &[&'a Fact]) -> BTreeMap<&'a AllocationId, Allocation<'a>> {
    let mut known: BTreeMap<&AllocationId, Allocation<'_>> = BTreeMap::new();
    let mut named: BTreeMap<&AllocationId, Vec<usize>> = BTreeMap::new();
    for (position, fact) in all.iter().enumerate() {
        for allocation in names(&fact.body) {
            named.entry(allocation).or_default().push(position);
        }
        if let FactBody::Granted(grant) = &fact.body {
            let this = || Allocation { fact, grant, named_at: Vec::new() };
            let counts = known.entry(&grant.allocation).or_insert_with(this);
            if (fact.at, &fact.id, &fact.source) < (counts.fact.at, &counts.fact.id, &counts.fact.source) {
                *counts = this();
            }
        }
    }
    for (id, allocation) in &mut known {
        allocation.named_at = named.remove(*id).unwrap_or_default();
    }
    known
}

/// The allocations a fact names by id.
fn names(body: &FactBody) -> Vec<&AllocationId> {
    match body {
        FactBody::Granted(grant) => vec![&grant.allocation],
        FactBody::Placed(placed) => match &placed.of {
            PlacedOf::Allocation(id) => vec![id],
            PlacedOf::Runtime(_) => Vec::new(),
        },
        FactBody::AllocationState { allocation, .. }
        | FactBody::Transferred { allocation, .. }
        | FactBody::Released { allocation, .. } => vec![allocation],
        FactBody::Snapshot { allocations, .. } => {
            let mut ids: Vec<&AllocationId> = allocations.iter().collect();
            ids.sort();
            ids.dedup();
            ids
        }
        FactBody::Inventory(_)
        | FactBody::NodeDecommissioned(_)
        | FactBody::GpuDecommissioned(_)
        | FactBody::UnitState(_)
        | FactBody::NodeAlive(_)
        | FactBody::ScrubStarted { .. }
        | FactBody::ScrubFinished { .. }
        | FactBody::Other => Vec::new(),
    }
}

/// The order of types at one instant.
fn rank(body: &FactBody) -> u8 {
    match body {
        FactBody::Inventory(_) => 0,
        FactBody::UnitState(_) => 1,
        FactBody::NodeAlive(_) => 2,
        FactBody::Released { .. } => 3,
        FactBody::ScrubStarted { .. } | FactBody::ScrubFinished { .. } => 4,
        FactBody::Transferred { .. } => 6,
        FactBody::Granted(_) => 7,
        FactBody::Placed(_) => 8,
        FactBody::AllocationState { .. } => 9,
        FactBody::Snapshot { .. } => 10,
        FactBody::Other => 11,
        FactBody::NodeDecommissioned(_) | FactBody::GpuDecommissioned(_) => 12,
    }
}
