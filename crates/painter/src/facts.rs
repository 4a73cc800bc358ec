//! The facts that act, in the one order that equal times have, and what is said about each allocation.

use gpuledger_domain::fact::{Fact, FactBody, Grant, PlacedOf, PlacedUnit, Runtime};
use gpuledger_domain::ids::{AllocationId, NodeId, Source};
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
    /// For each `allocation.placed` that does not wait, by its position: whose devices it gives.
    pub(crate) placed: BTreeMap<usize, &'a AllocationId>,
    /// Positions of the snapshots of each source, in order.
    snapshots: BTreeMap<&'a Source, Vec<usize>>,
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
        let mut snapshots: BTreeMap<&Source, Vec<usize>> = BTreeMap::new();
        for (position, fact) in all.iter().enumerate() {
            if matches!(fact.body, FactBody::Snapshot { .. }) {
                snapshots.entry(&fact.source).or_default().push(position);
            }
        }
        let mut facts = Self { all, as_of, allocations, placed: BTreeMap::new(), snapshots };
        facts.placed = facts.targets();
        facts
    }

    /// The devices said for the allocation, in order of (time, source, id).
    pub(crate) fn devices_said(&self, allocation: &AllocationId) -> Vec<&'a PlacedUnit> {
        let positions =
            self.placed.iter().filter(|(_, id)| **id == allocation).map(|(position, _)| *position);
        let units = positions.filter_map(|position| match &self.all[position].body {
            FactBody::Placed(placed) => Some(&placed.units),
            _ => None,
        });
        units.flatten().collect()
    }

    fn targets(&self) -> BTreeMap<usize, &'a AllocationId> {
        let mut targets = BTreeMap::new();
        for (position, fact) in self.all.iter().enumerate() {
            let FactBody::Placed(placed) = &fact.body else { continue };
            let target = match &placed.of {
                PlacedOf::Allocation(id) => Some(id),
                PlacedOf::Runtime(runtime) => self.holder_by_runtime(runtime, fact.at),
            };
            targets.extend(target.map(|id| (position, id)));
        }
        targets
    }

    /// The one allocation of this job or pod that is held at `at`; none where there is none, or several.
    fn holder_by_runtime(&self, runtime: &Runtime, at: Instant) -> Option<&'a AllocationId> {
        let same_job = self.allocations.iter().filter(|(_, a)| is_of(runtime, &a.grant.runtime));
        let mut live = same_job.filter(|(_, a)| {
            let end = self.end_in_words(a, |_, _| false);
            a.fact.at <= at && end.is_none_or(|end| at < end)
        });
        match (live.next(), live.next()) {
            (Some((id, _)), None) => Some(id),
            _ => None,
        }
    }

    /// The transfers of the allocation, in order.
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
        in_scope: impl Fn(&[NodeId], Instant) -> bool,
    ) -> Option<Instant> {
        let start = allocation.fact.at;
        let named = || allocation.named_at.iter().map(|position| self.all[*position]);
        let releases: Vec<Instant> =
            named().filter(|f| matches!(f.body, FactBody::Released { .. })).map(|f| f.at).collect();
        if !releases.is_empty() {
            return Some(releases.into_iter().filter(|at| *at >= start).min().unwrap_or(start));
        }
        let last = *allocation.named_at.last()?;
        let snapshots = self.snapshots.get(&allocation.fact.source).into_iter().flatten();
        let lacking =
            snapshots.filter(|position| **position > last).any(|position| match &self.all[*position] {
                Fact { body: FactBody::Snapshot { nodes: Some(nodes), .. }, at, .. } => in_scope(nodes, *at),
                _ => true,
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

fn is_of(asked: &Runtime, has: &Runtime) -> bool {
    let same = |asked: &Option<String>, has: &Option<String>| asked.is_none() || asked == has;
    let asks = asked.slurm_job.is_some() || asked.pod_uid.is_some();
    asks && same(&asked.slurm_job, &has.slurm_job) && same(&asked.pod_uid, &has.pod_uid)
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
        | FactBody::QuarantineReleased { .. }
        | FactBody::Work(_)
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
