//! Proofs of life of each node, and its silences.

use crate::facts::Facts;
use crate::gpu::Fleet;
use crate::holds::Units;
use gpuledger_domain::fact::{FactBody, Placed, PlacedOf};
use gpuledger_domain::ids::{AllocationId, NodeId};
use gpuledger_domain::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// When each node was heard of, up to the horizon.
pub(crate) struct Life {
    proofs: BTreeMap<NodeId, BTreeSet<Instant>>,
    as_of: Instant,
}

impl Life {
    pub(crate) fn read(facts: &Facts<'_>, fleet: &Fleet<'_>, units: &Units<'_>) -> Self {
        let mut proofs: BTreeMap<NodeId, BTreeSet<Instant>> = BTreeMap::new();
        for fact in &facts.all {
            let mut proved: Vec<&NodeId> = Vec::new();
            let mut by_units = |allocation: &AllocationId| {
                let gpus = units.gpus_of.get(allocation).into_iter().flatten();
                proved.extend(gpus.filter_map(|gpu| fleet.node_of(gpu, fact.at)));
            };
            match &fact.body {
                FactBody::Granted(grant) => by_units(&grant.allocation),
                // Devices said for a job name no allocation: they come from the node, which proves its life by itself.
                FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), .. }) => by_units(allocation),
                FactBody::AllocationState { allocation, .. }
                | FactBody::Transferred { allocation, .. }
                | FactBody::Released { allocation, .. } => by_units(allocation),
                FactBody::Snapshot { allocations, .. } => allocations.iter().for_each(by_units),
                FactBody::Inventory(inventory) => proved.push(&inventory.node),
                FactBody::NodeAlive(node) => proved.push(node),
                FactBody::UnitState(state) if fact.source.is_allocator() => {
                    proved.extend(fleet.node_of(&state.gpu, fact.at));
                }
                FactBody::ScrubStarted { gpu, .. } | FactBody::ScrubFinished { gpu, .. }
                    if fact.source.is_allocator() =>
                {
                    proved.extend(fleet.node_of(gpu, fact.at));
                }
                FactBody::Placed(_)
                | FactBody::UnitState(_)
                | FactBody::ScrubStarted { .. }
                | FactBody::ScrubFinished { .. }
                | FactBody::QuarantineReleased { .. }
                | FactBody::NodeDecommissioned(_)
                | FactBody::GpuDecommissioned(_)
                | FactBody::Work(_)
                | FactBody::Other => {}
            }
            for node in proved {
                proofs.entry(node.clone()).or_default().insert(fact.at);
            }
        }
        Self { proofs, as_of: facts.as_of }
    }

    /// The last proof of life of the node at or before the horizon.
    pub(crate) fn last_proof(&self, node: &NodeId) -> Option<Instant> {
        self.proofs.get(node)?.last().copied()
    }

    /// The times for which nothing was heard of the node for longer than `gap_us`.
    pub(crate) fn silences(&self, node: &NodeId, gap_us: i64) -> Vec<Window> {
        let Some(proofs) = self.proofs.get(node) else { return Vec::new() };
        let next = proofs.iter().skip(1).copied().chain([self.as_of]);
        let pairs = proofs.iter().copied().zip(next).filter(|(proof, next)| next.since(*proof) > gap_us);
        pairs.filter_map(|(proof, next)| Window::new(proof, next)).collect()
    }
}
