//! Devices: what the inventories say of each GPU, and when it has capacity.

use crate::fact::{Fact, FactBody, InventoryGpu};
use crate::ids::{GpuId, NodeId};
use crate::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// One mention of a GPU by an inventory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting<'a> {
    pub(super) at: Instant,
    /// Place of its fact in the order of A-18.
    order: usize,
    pub(super) node: &'a NodeId,
    pub(super) listed: &'a InventoryGpu,
}

/// A GPU that at least one inventory names.
#[derive(Debug, Default)]
pub(super) struct Device<'a> {
    /// In order of time, at least one.
    sightings: Vec<Sighting<'a>>,
    first_fact: Option<Instant>,
    /// Ends of capacity.
    pub(super) decommissioned: Vec<Instant>,
    /// Capacity up to the horizon.
    pub(super) capacity: Vec<Window>,
    /// Times in which its node's inventories did not list it.
    pub(super) missing: Vec<Window>,
}

impl<'a> Device<'a> {
    /// The latest sighting at or before `at`, else the first.
    pub(super) fn seen(&self, at: Instant) -> Option<Sighting<'a>> {
        let after = self.sightings.partition_point(|s| s.at <= at);
        self.sightings.get(after.saturating_sub(1)).copied()
    }

    /// The first sighting after `at`.
    pub(super) fn seen_next(&self, at: Instant) -> Option<Sighting<'a>> {
        self.sightings.get(self.sightings.partition_point(|s| s.at <= at)).copied()
    }

    /// The latest sighting at or before `at` in which a MIG instance has this UUID.
    pub(super) fn instance(&self, uuid: &str, at: Instant) -> Option<&'a crate::fact::Instance> {
        let upto = self.sightings.partition_point(|s| s.at <= at);
        self.sightings[..upto].iter().rev().find_map(|s| s.listed.instances.iter().find(|i| i.uuid == uuid))
    }

    /// Whether the GPU has capacity up to the horizon, on this node.
    pub(super) fn is_there(&self, node: &NodeId, as_of: Instant) -> bool {
        self.capacity.last().is_some_and(|c| c.end() == as_of)
            && self.seen(as_of).is_some_and(|s| s.node == node)
    }

    /// Compute and memory slices: as the latest inventory up to the horizon lists them. A device does not grow slices; where two
    /// inventories differ, the later one knew better, for all its time.
    pub(super) fn slices(&self) -> (u8, u8) {
        self.sightings.last().map_or((1, 1), |s| (s.listed.compute_slices, s.listed.memory_slices))
    }

    /// All sightings, in the order of A-18.
    pub(super) fn sightings(&self) -> &[Sighting<'a>] {
        &self.sightings
    }
}

/// All GPUs that an inventory names.
#[derive(Debug, Default)]
pub(super) struct Devices<'a> {
    by_gpu: BTreeMap<GpuId, Device<'a>>,
}

impl<'a> Devices<'a> {
    /// Reads devices from facts in the order of A-18.
    pub(super) fn new(facts: &[&'a Fact], as_of: Instant) -> Self {
        let mut devices = Self::default();
        for (order, fact) in facts.iter().enumerate() {
            if let FactBody::Inventory(inventory) = &fact.body {
                for listed in &inventory.gpus {
                    let device = devices.by_gpu.entry(listed.gpu.clone()).or_default();
                    device.sightings.push(Sighting { at: fact.at, order, node: &inventory.node, listed });
                }
            }
        }
        devices.note_first_facts(facts);
        devices.note_decommissions(facts);
        devices.note_missing(facts, as_of);
        for device in devices.by_gpu.values_mut() {
            device.capacity = capacity(device, as_of);
        }
        devices
    }

    /// The GPU, where an inventory names it.
    pub(super) fn get(&self, gpu: &GpuId) -> Option<&Device<'a>> {
        self.by_gpu.get(gpu)
    }

    /// All of them by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&GpuId, &Device<'a>)> {
        self.by_gpu.iter()
    }

    /// The node the GPU is on at `at`: that of the latest inventory that names it, before the first that of the first.
    pub(super) fn node_of(&self, gpu: &GpuId, at: Instant) -> Option<&'a NodeId> {
        self.by_gpu.get(gpu).and_then(|device| device.seen(at)).map(|s| s.node)
    }

    fn note_first_facts(&mut self, facts: &[&'a Fact]) {
        for fact in facts {
            for gpu in fact.body.gpus() {
                if let Some(device) = self.by_gpu.get_mut(gpu) {
                    // Facts come in order of time, so the first one stays.
                    device.first_fact.get_or_insert(fact.at);
                }
            }
        }
    }

    fn note_decommissions(&mut self, facts: &[&'a Fact]) {
        for fact in facts {
            match &fact.body {
                FactBody::GpuDecommissioned(gpu) => {
                    if let Some(device) = self.by_gpu.get_mut(gpu) {
                        device.decommissioned.push(fact.at);
                    }
                }
                FactBody::NodeDecommissioned(node) => {
                    for device in self.by_gpu.values_mut() {
                        if device.seen(fact.at).is_some_and(|s| s.node == node) {
                            device.decommissioned.push(fact.at);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A GPU is missing from an inventory of its node that does not list it until one lists it again.
    fn note_missing(&mut self, facts: &[&'a Fact], as_of: Instant) {
        let mut ever_on: BTreeMap<&'a NodeId, Vec<GpuId>> = BTreeMap::new();
        for (gpu, device) in &self.by_gpu {
            let nodes: BTreeSet<&'a NodeId> = device.sightings.iter().map(|s| s.node).collect();
            nodes.into_iter().for_each(|node| ever_on.entry(node).or_default().push(gpu.clone()));
        }
        for (order, fact) in facts.iter().enumerate() {
            let FactBody::Inventory(inventory) = &fact.body else { continue };
            for gpu in ever_on.get(&inventory.node).into_iter().flatten() {
                if inventory.gpus.iter().any(|listed| listed.gpu == *gpu) {
                    continue;
                }
                let Some(device) = self.by_gpu.get_mut(gpu) else { continue };
                let after = device.sightings.partition_point(|s| s.order < order);
                let before = after.checked_sub(1).and_then(|index| device.sightings.get(index));
                if before.is_some_and(|s| *s.node == inventory.node) {
                    let until = device.sightings.get(after).map_or(as_of, |s| s.at);
                    device.missing.extend(Window::new(fact.at, until));
                }
            }
        }
    }
}

fn capacity(device: &Device<'_>, as_of: Instant) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut open = device.first_fact;
    for &end in &device.decommissioned {
        if let Some(start) = open.filter(|start| *start <= end) {
            windows.extend(Window::new(start, end));
            open = device.seen_next(end).map(|s| s.at);
        }
    }
    windows.extend(open.and_then(|start| Window::new(start, as_of)));
    windows
}
