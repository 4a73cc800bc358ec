//! Proof of life: when each node was last heard of, and when it was silent for too long.

use super::allocations::Allocation;
use super::devices::Devices;
use super::units::Place;
use crate::fact::{Fact, FactBody, Placed, PlacedOf, Settings};
use crate::ids::{AllocationId, NodeId};
use crate::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of every node's life up to the horizon.
#[derive(Debug)]
pub(super) struct Life<'a> {
    proofs: BTreeMap<&'a NodeId, BTreeSet<Instant>>,
    settings: Settings,
    as_of: Instant,
}

impl<'a> Life<'a> {
    /// Collects proofs: inventories, telemetry ends, and allocators' facts about a unit there.
    pub(super) fn new(
        facts: &[&'a Fact],
        devices: &Devices<'a>,
        allocations: &[Allocation<'a>],
        settings: Settings,
        as_of: Instant,
    ) -> Self {
        let mut life = Self { proofs: BTreeMap::new(), settings, as_of };
        for fact in facts {
            match &fact.body {
                FactBody::Inventory(inventory) => life.prove(&inventory.node, fact.at),
                FactBody::NodeAlive(node) => life.prove(node, fact.at),
                FactBody::UnitState(state) if fact.source.is_allocator() => {
                    life.prove_all(devices.node_of(&state.gpu, fact.at), fact.at);
                }
                FactBody::ScrubStarted { gpu, .. } | FactBody::ScrubFinished { gpu, .. }
                    if fact.source.is_allocator() =>
                {
                    life.prove_all(devices.node_of(gpu, fact.at), fact.at);
                }
                _ => {}
            }
        }
        life.prove_by_allocations(facts, devices, allocations);
        life
    }

    fn prove(&mut self, node: &'a NodeId, at: Instant) {
        self.proofs.entry(node).or_default().insert(at);
    }

    fn prove_all(&mut self, nodes: impl IntoIterator<Item = &'a NodeId>, at: Instant) {
        for node in nodes {
            self.prove(node, at);
        }
    }

    fn prove_by_allocations(
        &mut self,
        facts: &[&'a Fact],
        devices: &Devices<'a>,
        allocations: &[Allocation<'a>],
    ) {
        let by_id: BTreeMap<&AllocationId, &Allocation<'_>> = allocations.iter().map(|a| (a.id, a)).collect();
        for fact in facts {
            let named: Vec<&AllocationId> = match &fact.body {
                FactBody::Granted(grant) => vec![&grant.allocation],
                FactBody::Released { allocation, .. }
                | FactBody::Transferred { allocation, .. }
                | FactBody::AllocationState { allocation, .. }
                | FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), .. }) => vec![allocation],
                FactBody::Snapshot { allocations, .. } => allocations.iter().collect(),
                _ => continue,
            };
            for unit in named.iter().filter_map(|id| by_id.get(id)).flat_map(|a| &a.units) {
                if let Place::Slices { gpu, .. } = &unit.place {
                    self.prove_all(devices.node_of(gpu, fact.at), fact.at);
                }
            }
        }
    }

    /// The last proof of life of the node up to the horizon.
    pub(super) fn last_proof(&self, node: &NodeId) -> Option<Instant> {
        self.proofs.get(node).and_then(|proofs| proofs.last()).copied()
    }

    /// How long the node has been silent at the horizon, in microseconds.
    pub(super) fn silence_us(&self, node: &NodeId) -> Option<i64> {
        self.last_proof(node).map(|proof| self.as_of.since(proof))
    }

    /// Times after which silence counts.
    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    /// Nodes silent for longer than the lease, with their last proof.
    pub(super) fn lost_nodes(&self) -> impl Iterator<Item = (&'a NodeId, Instant)> + '_ {
        self.proofs.iter().filter_map(|(node, proofs)| {
            let last = *proofs.last()?;
            (self.as_of.since(last) > self.settings.lease_us).then_some((*node, last))
        })
    }

    /// Stretches in which the node was unheard of for longer than the observation gap: from a proof to the next, or to the horizon.
    pub(super) fn silences(&self, node: &NodeId) -> Vec<Window> {
        let Some(proofs) = self.proofs.get(node) else { return Vec::new() };
        let nexts = proofs.iter().skip(1).copied().chain([self.as_of]);
        let pairs = proofs.iter().copied().zip(nexts).filter_map(|(from, to)| Window::new(from, to));
        pairs.filter(|window| window.micros() > self.settings.observation_gap_us).collect()
    }
}
