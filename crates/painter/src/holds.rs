//! Which units each allocation holds, where, and how long.

use crate::facts::{Allocation, Facts};
use crate::gpu::{Fleet, Gpu};
use crate::life::Life;
use gpuledger_domain::fact::{FactBody, GrantUnit, MigUnit, Mode, PlacedUnit, Placement, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{AllocationId, GpuId, ProjectId, TenantId};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

/// One unit of an allocation on a device.
#[derive(Clone)]
pub(crate) struct Unit<'a> {
    pub(crate) allocation: &'a AllocationId,
    /// Its place among the units of the allocation.
    pub(crate) index: usize,
    /// None: the whole GPU.
    pub(crate) mig: Option<MigSlices>,
    pub(crate) shared: bool,
    pub(crate) share: Share,
}

/// The slices of a MIG instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MigSlices {
    pub(crate) placement: Placement,
    pub(crate) compute: u8,
}

/// A unit and the time over which it is held.
pub(crate) struct Hold<'a> {
    pub(crate) unit: Unit<'a>,
    pub(crate) start: Instant,
    /// Not before the start; at the start: never held.
    pub(crate) end: Instant,
    /// Whether a release or a snapshot says so.
    pub(crate) ends_in_words: bool,
    /// The grant's owner, then each later one from its instant on.
    pub(crate) owners: Vec<Owner<'a>>,
}

/// Who owns an allocation from an instant on.
pub(crate) struct Owner<'a> {
    pub(crate) from: Instant,
    pub(crate) tenant: &'a TenantId,
    pub(crate) project: Option<&'a ProjectId>,
}

/// Who owns the allocation, in order of time: one at or before its start, then those after it.
pub(crate) fn owners<'a>(
    id: &AllocationId,
    allocation: &Allocation<'a>,
    facts: &Facts<'a>,
) -> Vec<Owner<'a>> {
    let (grant, start) = (allocation.grant, allocation.fact.at);
    let mut owners = vec![Owner { from: start, tenant: &grant.tenant, project: grant.project.as_ref() }];
    for fact in facts.transfers(id) {
        if let FactBody::Transferred { tenant, project, .. } = &fact.body {
            owners.push(Owner { from: fact.at.max(start), tenant, project: project.as_ref() });
        }
    }
    owners
}

/// The units on devices, in order of allocation and place in it.
#[derive(Default)]
pub(crate) struct Units<'a> {
    /// Per GPU, those whose slices are known. A unit on an unknown GPU, or whose MIG UUID no inventory explains yet, waits.
    pub(crate) on: BTreeMap<&'a GpuId, Vec<Unit<'a>>>,
    /// The GPUs of each allocation's units: facts about it are about units there. What waits acts on nothing yet (I-4).
    pub(crate) gpus_of: BTreeMap<&'a AllocationId, Vec<&'a GpuId>>,
}

pub(crate) fn units<'a>(facts: &Facts<'a>, fleet: &Fleet<'a>, geometry: &Geometry) -> Units<'a> {
    let mut units = Units::default();
    for (id, allocation) in &facts.allocations {
        let start = allocation.fact.at;
        let shared = allocation.grant.mode == Mode::Shared;
        for (index, slot) in slots(id, allocation, facts, fleet, geometry).into_iter().enumerate() {
            let Some((device, share)) = slot.device else { continue };
            let Some(gpu) = fleet.gpus.get(&device.gpu) else { continue };
            let mig = device.mig.as_ref().map(|named| slices(named, gpu, start, geometry));
            if mig == Some(None) {
                continue;
            }
            units.gpus_of.entry(id).or_default().push(&device.gpu);
            let share = share.unwrap_or_else(|| Share::from_integer(1));
            let unit = Unit { allocation: id, index, mig: mig.flatten(), shared, share };
            units.on.entry(&device.gpu).or_default().push(unit);
        }
    }
    units
}

/// One unit of a grant, an unplaced one counted singly.
pub(crate) struct Slot<'a> {
    /// The device, with the share of it, once one is known.
    pub(crate) device: Option<(&'a PlacedUnit, Option<Share>)>,
    /// The share of an unplaced unit.
    pub(crate) share: Option<Share>,
}

/// The units of the grant in its order; devices of `allocation.placed` fill the unplaced ones.
pub(crate) fn slots<'a>(
    id: &AllocationId,
    allocation: &Allocation<'a>,
    facts: &Facts<'a>,
    fleet: &Fleet<'a>,
    geometry: &Geometry,
) -> Vec<Slot<'a>> {
    let mut devices = devices(id, allocation, facts, fleet, geometry).into_iter();
    let mut slots = Vec::new();
    for unit in &allocation.grant.units {
        match unit {
            GrantUnit::Placed(device) => {
                slots.push(Slot { device: Some((device, device.share)), share: None })
            }
            GrantUnit::Unplaced { count, share, .. } => {
                for _ in 0..*count {
                    let device = devices.next().map(|device| (device, share.or(device.share)));
                    slots.push(Slot { device, share: *share });
                }
            }
        }
    }
    slots
}

/// The devices said for the allocation, each once, in order of (time, source, id).
fn devices<'a>(
    id: &AllocationId,
    allocation: &Allocation<'a>,
    facts: &Facts<'a>,
    fleet: &Fleet<'a>,
    geometry: &Geometry,
) -> Vec<&'a PlacedUnit> {
    // A node that confirms a device the grant names itself fills nothing with it.
    let granted = allocation.grant.units.iter().filter_map(|unit| match unit {
        GrantUnit::Placed(unit) => Some(unit),
        GrantUnit::Unplaced { .. } => None,
    });
    let mut known: Vec<(&GpuId, DeviceName)> =
        granted.map(|unit| (&unit.gpu, device_name(unit, fleet, allocation.fact.at, geometry))).collect();
    let mut devices = Vec::new();
    for unit in facts.devices_said(id) {
        let name = (&unit.gpu, device_name(unit, fleet, allocation.fact.at, geometry));
        if !known.contains(&name) {
            known.push(name);
            devices.push(unit);
        }
    }
    devices
}

/// What tells one device of a GPU from another.
#[derive(PartialEq, Eq)]
enum DeviceName {
    Whole,
    At(Placement),
    Named(Option<String>),
}

fn device_name(unit: &PlacedUnit, fleet: &Fleet<'_>, start: Instant, geometry: &Geometry) -> DeviceName {
    let Some(mig) = &unit.mig else { return DeviceName::Whole };
    let resolved = fleet.gpus.get(&unit.gpu).and_then(|gpu| slices(mig, gpu, start, geometry));
    match mig.placement.or(resolved.map(|r| r.placement)) {
        Some(placement) => DeviceName::At(placement),
        None => DeviceName::Named(mig.uuid.clone()),
    }
}

/// Where a MIG unit lies and how many compute slices it has.
fn slices(mig: &MigUnit, gpu: &Gpu<'_>, start: Instant, geometry: &Geometry) -> Option<MigSlices> {
    let by_uuid = mig.uuid.as_deref().and_then(|uuid| gpu.instance_by_uuid(uuid, start));
    let placement = mig.placement.or_else(|| by_uuid.and_then(|i| i.placement))?;
    let listed = gpu.sight(start).gpu.instances.iter().find(|i| i.placement == Some(placement)).or(by_uuid);
    let profile = mig.profile.as_deref().or_else(|| listed.map(|i| i.profile.as_str())).unwrap_or_default();
    let compute = gpu.compute_of(profile, listed.and_then(|i| i.compute_slices), start, geometry);
    Some(MigSlices { placement, compute })
}

/// The holds on one GPU that last longer than an instant.
pub(crate) fn held_on<'a>(
    units: &[Unit<'a>],
    facts: &Facts<'a>,
    gpu: &Gpu<'_>,
    life: &Life,
    settings: &Settings,
) -> Vec<Hold<'a>> {
    let mut holds = Vec::new();
    for unit in units {
        let Some(allocation) = facts.allocations.get(unit.allocation) else { continue };
        let start = allocation.fact.at;
        let said = facts.end_in_words(allocation, |nodes, at| nodes.contains(gpu.sight(at).node));
        let ends_in_words = said.is_some();
        let end = said.unwrap_or_else(|| end_by_life(start, facts.as_of, gpu, life, settings));
        let closed = gpu.closes.iter().find(|close| **close >= start);
        let end = closed.map_or(end, |close| end.min(*close));
        if start < end {
            let owners = owners(unit.allocation, allocation, facts);
            holds.push(Hold { unit: unit.clone(), start, end, ends_in_words, owners });
        }
    }
    holds
}

/// When a unit on this GPU ends that nobody ended: at the horizon, or at the last proof of life of its node if the horizon is
/// further past it than the lease.
fn end_by_life(start: Instant, as_of: Instant, gpu: &Gpu<'_>, life: &Life, settings: &Settings) -> Instant {
    let proof = life.last_proof(gpu.sight(as_of).node).unwrap_or(start);
    if as_of.since(proof) > settings.lease_us { proof } else { as_of }
}
