//! Units of an allocation: what a grant names, completed by inventories and by later placements.

use super::Context;
use super::allocations::Allocation;
use super::devices::{Device, Devices, Sighting};
use super::free::compute_slices_of;
use crate::fact::{Fact, GrantUnit, MigUnit, Placed, PlacedUnit, Placement};
use crate::finding::{Finding, Findings, Kind};
use crate::ids::{GpuId, SkuId};
use crate::share::Share;
use crate::sku::unplaced_weight;
use crate::time::Instant;
use std::collections::BTreeSet;

/// One unit of an allocation.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) share: Option<Share>,
    pub(super) sku: SkuId,
    pub(super) weight: Share,
    pub(super) place: Place,
    /// When its hold ends; set by `ends::settle`. Not after the start: nothing is held.
    pub(super) end: Instant,
    /// Whether only the horizon ends it.
    pub(super) open: bool,
}

impl Unit {
    /// The GPU it stands on, where that is known.
    pub(super) fn gpu(&self) -> Option<&GpuId> {
        match &self.place {
            Place::Slices { gpu, .. } => Some(gpu),
            Place::Waiting | Place::Unplaced => None,
        }
    }
}

/// Where a unit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On slices of a GPU; none of a placement: all of it.
    Slices { gpu: GpuId, placement: Option<Placement>, compute_slices: u8 },
    /// On a GPU or MIG instance that no inventory names yet: holds nothing.
    Waiting,
    /// Not known, outside the balance.
    Unplaced,
}

/// Builds the units of one allocation.
pub(super) struct Units<'u, 'a> {
    pub(super) allocation: &'u Allocation<'a>,
    pub(super) devices: &'u Devices<'a>,
    pub(super) context: &'u Context<'u>,
    pub(super) findings: &'u mut Findings,
    pub(super) units: Vec<Unit>,
}

impl<'a> Units<'_, 'a> {
    /// The units in the order of the grant; `placed` are the placements that name it, in the order of A-20.
    pub(super) fn build(mut self, placed: &[(&'a Fact, &'a Placed)]) -> Vec<Unit> {
        let mut devices: Vec<(&Fact, &PlacedUnit)> = Vec::new();
        let mut seen: BTreeSet<_> = self.granted_devices().map(|unit| self.identity(unit)).collect();
        for (fact, placed) in placed {
            for unit in &placed.units {
                if seen.insert(self.identity(unit)) {
                    devices.push((fact, unit));
                }
            }
        }
        let mut devices = devices.into_iter();
        let mut index = 0;
        for unit in &self.allocation.grant.units {
            match unit {
                GrantUnit::Placed(placed) => {
                    self.placed(index, placed, placed.share, None);
                    index += 1;
                }
                GrantUnit::Unplaced { sku, count, share } => {
                    let sku = self.context.skus.unplaced(sku);
                    let mut filled = 0;
                    while filled < *count {
                        let Some((_, device)) = devices.next() else { break };
                        self.placed(index + filled, device, share.or(device.share), Some(sku.clone()));
                        filled += 1;
                    }
                    self.unplaced(index + filled, count - filled, *share, sku);
                    index += count;
                }
            }
        }
        if let Some((fact, device)) = devices.next() {
            let detail = format!("{} names {} beyond the count that was granted", fact.id, device.gpu);
            self.note(Kind::PlacementMismatch, fact.at, &detail);
        }
        self.units
    }

    /// Devices that the grant names itself: a node that confirms one fills no unplaced unit with it.
    fn granted_devices(&self) -> impl Iterator<Item = &'a PlacedUnit> + use<'a> {
        self.allocation.grant.units.iter().filter_map(|unit| match unit {
            GrantUnit::Placed(placed) => Some(placed),
            GrantUnit::Unplaced { .. } => None,
        })
    }

    fn unplaced(&mut self, index: u32, count: u32, share: Option<Share>, sku: SkuId) {
        if count > 0 {
            let weight = unplaced_weight(self.context.geometry, self.context.skus, &sku);
            self.push(index, count, share, sku, weight, Place::Unplaced);
        }
    }

    fn placed(&mut self, index: u32, unit: &PlacedUnit, share: Option<Share>, sku: Option<SkuId>) {
        let start = self.allocation.start;
        let Some(device) = self.devices.get(&unit.gpu) else {
            self.note(Kind::Waiting, start, &format!("no inventory has named {}", unit.gpu));
            return self.waiting(index, unit, share, sku);
        };
        let Some((placement, profile)) = self.slices(device, unit) else {
            self.note(
                Kind::Waiting,
                start,
                &format!("no inventory has named the MIG instance on {}", unit.gpu),
            );
            return self.waiting(index, unit, share, sku);
        };
        self.check_placement(device, unit, placement);
        let seen = device.seen(start);
        let model = seen.map_or("", |s| s.listed.model.as_str());
        let sku = sku.unwrap_or_else(|| self.context.skus.placed(model, profile.as_deref(), share.is_some()));
        let compute_slices = match (placement, &profile) {
            (Some(placement), Some(profile)) => {
                self.check_profile(device, placement, profile);
                self.compute_slices(device, placement, profile)
            }
            _ => seen.map_or(1, |s| s.listed.compute_slices),
        };
        let place = Place::Slices { gpu: unit.gpu.clone(), placement, compute_slices };
        self.push(index, 1, share, sku, Share::from_integer(1), place);
    }

    /// A device counts once however many sources name it, by placement or by UUID.
    fn identity(&self, unit: &PlacedUnit) -> (GpuId, Option<Placement>, Option<String>) {
        let Some(mig) = &unit.mig else { return (unit.gpu.clone(), None, None) };
        let resolved = || {
            self.devices
                .get(&unit.gpu)
                .and_then(|device| self.slices(device, unit))
                .and_then(|slices| slices.0)
        };
        let placement = mig.placement.or_else(resolved);
        let uuid = if placement.is_some() { None } else { mig.uuid.clone() };
        (unit.gpu.clone(), placement, uuid)
    }

    /// Placement and profile of a unit (none and none: the whole GPU); no answer where the inventory must name the instance first.
    fn slices(&self, device: &Device<'a>, unit: &PlacedUnit) -> Option<(Option<Placement>, Option<String>)> {
        let Some(mig) = &unit.mig else { return Some((None, None)) };
        let MigUnit { uuid, profile, placement } = mig;
        if let (Some(profile), Some(placement)) = (profile, placement) {
            return Some((Some(*placement), Some(profile.clone())));
        }
        let instance = device.instance(uuid.as_deref()?, self.allocation.start)?;
        let placement = placement.or(instance.placement)?;
        Some((Some(placement), Some(profile.clone().unwrap_or_else(|| instance.profile.clone()))))
    }

    fn compute_slices(&self, device: &Device<'a>, placement: Placement, profile: &str) -> u8 {
        let Some(seen) = device.seen(self.allocation.start) else { return 1 };
        let listed = listed_slices(seen, placement, profile);
        compute_slices_of(self.context.geometry, &seen.listed.model, profile, listed)
    }

    /// A profile that neither the table nor the inventory explains is taken by its name, aloud.
    fn check_profile(&mut self, device: &Device<'a>, placement: Placement, profile: &str) {
        let start = self.allocation.start;
        let Some(seen) = device.seen(start) else { return };
        let model = &seen.listed.model;
        let known = self.context.geometry.of(model).is_some_and(|m| m.profile(profile).is_some());
        if !known && listed_slices(seen, placement, profile).is_none() {
            let slices = compute_slices_of(self.context.geometry, model, profile, None);
            let detail = format!(
                "no table and no inventory explains {profile} on {model}: by its name it takes {slices} compute slices"
            );
            self.note(Kind::UnknownProfile, start, &detail);
        }
    }

    /// A grant is compared with the latest inventory at or before it, or the next one if that clears it.
    fn check_placement(&mut self, device: &Device<'a>, unit: &PlacedUnit, placement: Option<Placement>) {
        let (Some(placement), Some(mig)) = (placement, &unit.mig) else { return };
        let start = self.allocation.start;
        let agrees = |listed: &crate::fact::InventoryGpu| {
            listed.mig
                && listed.instances.iter().any(|instance| {
                    let same_profile = mig.profile.as_ref().is_none_or(|p| *p == instance.profile);
                    // Where the placement could not be read, the UUID tells the instance.
                    let same_place = match instance.placement {
                        Some(at) => at == placement,
                        None => mig.uuid.as_ref().is_none_or(|uuid| *uuid == instance.uuid),
                    };
                    same_place && same_profile
                })
        };
        let now = device.seen(start).is_some_and(|s| agrees(s.listed));
        let next = device.seen_next(start).is_some_and(|s| agrees(s.listed));
        if !now && !next {
            let detail = format!("no instance of {} is at {}+{}", unit.gpu, placement.start, placement.size);
            self.note(Kind::PlacementMismatch, start, &detail);
        }
    }

    fn waiting(&mut self, index: u32, unit: &PlacedUnit, share: Option<Share>, sku: Option<SkuId>) {
        let profile = unit.mig.as_ref().and_then(|m| m.profile.as_deref());
        let sku = sku.unwrap_or_else(|| self.context.skus.placed("", profile, share.is_some()));
        self.push(index, 1, share, sku, Share::from_integer(1), Place::Waiting);
    }

    fn push(
        &mut self,
        index: u32,
        count: u32,
        share: Option<Share>,
        sku: SkuId,
        weight: Share,
        place: Place,
    ) {
        let end = self.allocation.start;
        self.units.push(Unit { index, count, share, sku, weight, place, end, open: false });
    }

    fn note(&mut self, kind: Kind, since: Instant, detail: &str) {
        let subject = self.allocation.id.to_string();
        self.findings.add(Finding {
            kind,
            subject,
            since,
            until: None,
            detail: format!("allocation {}: {detail}", self.allocation.id),
        });
    }
}

/// Compute slices of the instance that the inventory lists exactly there under this profile, where it could be read.
fn listed_slices(seen: Sighting<'_>, placement: Placement, profile: &str) -> Option<u8> {
    let there = |i: &&crate::fact::Instance| i.placement == Some(placement) && i.profile == profile;
    seen.listed.instances.iter().find(there)?.compute_slices
}
