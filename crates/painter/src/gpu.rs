//! What the facts say of each GPU: the inventories that name it, where it is, when it has capacity, its states and scrubs.

use crate::facts::Facts;
use crate::states::{StateFact, Track, tracks};
use gpuledger_domain::fact::{FactBody, GrantUnit, Instance, InventoryGpu, Placement};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{GpuId, NodeId};
use gpuledger_domain::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// All GPUs that some acting inventory names, in order of their ids.
pub(crate) struct Fleet<'a> {
    pub(crate) gpus: BTreeMap<&'a GpuId, Gpu<'a>>,
}

/// One GPU.
pub(crate) struct Gpu<'a> {
    /// The inventories that name it, in order; at least one.
    pub(crate) seen: Vec<Sight<'a>>,
    /// The earliest fact that names it: capacity begins.
    pub(crate) first: Instant,
    /// Instants at which it, or the node it is on then, is decommissioned, in order.
    pub(crate) closes: Vec<Instant>,
    /// What each scope of it is in.
    pub(crate) states: Vec<Track>,
    /// Scrubs of it: when, and where (none: all of it).
    pub(crate) scrubs: Vec<(Window, Option<Placement>)>,
    /// Times in which its node's inventories no longer name it.
    pub(crate) missing: Vec<Window>,
}

/// One inventory that names the GPU.
pub(crate) struct Sight<'a> {
    /// Its position among the facts.
    position: usize,
    /// When.
    pub(crate) at: Instant,
    /// On which node.
    pub(crate) node: &'a NodeId,
    /// As what.
    pub(crate) gpu: &'a InventoryGpu,
}

impl<'a> Gpu<'a> {
    /// The latest inventory at or before `at` that names it, else the next one.
    pub(crate) fn sight(&self, at: Instant) -> &Sight<'a> {
        let passed = self.seen.partition_point(|s| s.at <= at);
        &self.seen[passed.saturating_sub(1)]
    }

    /// The instance of this MIG UUID in the latest inventory at or before `at` that has it.
    pub(crate) fn instance_by_uuid(&self, uuid: &str, at: Instant) -> Option<&'a Instance> {
        let before = self.seen.iter().rev().filter(|s| s.at <= at);
        before.flat_map(|s| &s.gpu.instances).find(|i| i.uuid == uuid)
    }

    /// Whether it has capacity: from the first fact on, not between a decommissioning and the next inventory.
    pub(crate) fn has_capacity(&self, at: Instant) -> bool {
        // What was decommissioned before the first fact about it had no capacity to lose.
        let closed = self.closes.iter().rev().find(|close| **close <= at && **close >= self.first);
        at >= self.first && closed.is_none_or(|close| self.seen.iter().any(|s| s.at > *close && s.at <= at))
    }

    /// Compute slices of an instance of this profile: by geometry, else by what the inventory read, else by its name.
    pub(crate) fn compute_of(&self, profile: &str, read: Option<u8>, at: Instant, geometry: &Geometry) -> u8 {
        let known = geometry.of(&self.sight(at).gpu.model).and_then(|m| m.profile(profile));
        known.map(|p| p.compute_slices).or(read).unwrap_or_else(|| digits_before_g(profile))
    }
}

/// `3` of `3g.40gb` and of `1c.3g.40gb`; 1, the least there is, where no number stands before the first `g`.
fn digits_before_g(profile: &str) -> u8 {
    let head = profile.split('g').next().unwrap_or_default();
    let number = head.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    number.parse().unwrap_or(1).max(1)
}

impl<'a> Fleet<'a> {
    pub(crate) fn read(facts: &Facts<'a>) -> Self {
        let mut gpus: BTreeMap<&GpuId, Gpu<'_>> = BTreeMap::new();
        for (position, fact) in facts.all.iter().enumerate() {
            let FactBody::Inventory(inventory) = &fact.body else { continue };
            for listed in &inventory.gpus {
                let gpu = gpus.entry(&listed.gpu).or_insert_with(|| Gpu {
                    seen: Vec::new(),
                    first: fact.at,
                    closes: Vec::new(),
                    states: Vec::new(),
                    scrubs: Vec::new(),
                    missing: Vec::new(),
                });
                gpu.seen.push(Sight { position, at: fact.at, node: &inventory.node, gpu: listed });
            }
        }
        let mut fleet = Self { gpus };
        fleet.read_first_facts(facts);
        fleet.read_closes(facts);
        fleet.read_states(facts);
        fleet.read_scrubs(facts);
        fleet.read_missing(facts);
        fleet
    }

    /// The node the GPU is on at `at`, where an inventory names it at all.
    pub(crate) fn node_of(&self, gpu: &GpuId, at: Instant) -> Option<&'a NodeId> {
        self.gpus.get(gpu).map(|g| g.sight(at).node)
    }

    fn read_first_facts(&mut self, facts: &Facts<'a>) {
        for fact in &facts.all {
            for named in gpus_named(&fact.body) {
                if let Some(gpu) = self.gpus.get_mut(named) {
                    gpu.first = gpu.first.min(fact.at);
                }
            }
        }
    }

    fn read_closes(&mut self, facts: &Facts<'a>) {
        for fact in &facts.all {
            match &fact.body {
                FactBody::GpuDecommissioned(id) => {
                    if let Some(gpu) = self.gpus.get_mut(id) {
                        gpu.closes.push(fact.at);
                    }
                }
                FactBody::NodeDecommissioned(node) => {
                    for gpu in self.gpus.values_mut().filter(|g| g.sight(fact.at).node == node) {
                        gpu.closes.push(fact.at);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_states(&mut self, facts: &Facts<'a>) {
        let mut said: BTreeMap<&GpuId, Vec<StateFact<'_>>> = BTreeMap::new();
        for fact in &facts.all {
            if let FactBody::UnitState(state) = &fact.body {
                let heard = StateFact { at: fact.at, scope: state.placement, state: &state.state };
                said.entry(&state.gpu).or_default().push(heard);
            }
        }
        for (id, said) in said {
            if let Some(gpu) = self.gpus.get_mut(id) {
                gpu.states = tracks(&said);
            }
        }
    }

    fn read_scrubs(&mut self, facts: &Facts<'a>) {
        let finished: BTreeSet<_> = facts
            .all
            .iter()
            .filter_map(|f| match &f.body {
                FactBody::ScrubFinished { scrub, gpu, .. } => Some((gpu, scrub)),
                _ => None,
            })
            .collect();
        for fact in &facts.all {
            let (id, placement, window) = match &fact.body {
                FactBody::ScrubFinished { gpu, placement, started_at, .. } => {
                    (gpu, placement, Window::new(*started_at, fact.at))
                }
                FactBody::ScrubStarted { scrub, gpu, placement } if !finished.contains(&(gpu, scrub)) => {
                    (gpu, placement, Window::new(fact.at, facts.as_of))
                }
                _ => continue,
            };
            if let (Some(gpu), Some(window)) = (self.gpus.get_mut(id), window) {
                gpu.scrubs.push((window, *placement));
            }
        }
    }

    fn read_missing(&mut self, facts: &Facts<'a>) {
        let mut of_node: BTreeMap<&NodeId, Vec<(usize, Instant)>> = BTreeMap::new();
        for (position, fact) in facts.all.iter().enumerate() {
            if let FactBody::Inventory(inventory) = &fact.body {
                of_node.entry(&inventory.node).or_default().push((position, fact.at));
            }
        }
        for gpu in self.gpus.values_mut() {
            for (n, sight) in gpu.seen.iter().enumerate() {
                let again = gpu.seen.get(n + 1);
                let (until, end) = again.map_or((usize::MAX, facts.as_of), |s| (s.position, s.at));
                let heard = of_node.get(sight.node).map(Vec::as_slice).unwrap_or_default();
                let next = heard.get(heard.partition_point(|(position, _)| *position <= sight.position));
                let lacking = next.filter(|(position, _)| *position < until);
                gpu.missing.extend(lacking.and_then(|(_, at)| Window::new(*at, end)));
            }
        }
    }
}

/// The GPUs a fact names so that their capacity begins with it.
fn gpus_named(body: &FactBody) -> Vec<&GpuId> {
    match body {
        FactBody::Inventory(inventory) => inventory.gpus.iter().map(|g| &g.gpu).collect(),
        FactBody::UnitState(state) => vec![&state.gpu],
        FactBody::GpuDecommissioned(gpu) => vec![gpu],
        FactBody::ScrubStarted { gpu, .. } | FactBody::ScrubFinished { gpu, .. } => vec![gpu],
        FactBody::Placed(placed) => placed.units.iter().map(|u| &u.gpu).collect(),
        FactBody::Granted(grant) => {
            let placed = grant.units.iter().filter_map(|u| match u {
                GrantUnit::Placed(unit) => Some(&unit.gpu),
                GrantUnit::Unplaced { .. } => None,
            });
            placed.collect()
        }
        FactBody::QuarantineReleased { .. }
        | FactBody::NodeDecommissioned(_)
        | FactBody::NodeAlive(_)
        | FactBody::AllocationState { .. }
        | FactBody::Transferred { .. }
        | FactBody::Released { .. }
        | FactBody::Snapshot { .. }
        | FactBody::Work(_)
        | FactBody::Other => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::digits_before_g;

    #[test]
    fn the_compute_slices_stand_before_the_g() {
        let read = ["3g.40gb", "1c.3g.40gb", "1g.10gb+me", "odd"].map(digits_before_g);
        assert_eq!(read, [3, 3, 1, 1]);
    }
}
