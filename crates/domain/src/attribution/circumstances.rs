//! What the sweep over each GPU rests on, and from which instant on it differs between two looks at the ledger.
//!
//! A fact that comes late, and a horizon that moves, change little: what is painted anew, and from when on, is found by comparing what
//! painting reads, instead of by rules of how far each kind of fact reaches back. Whatever only the horizon ends is taken to go on, so that a
//! horizon that moves over nothing changes nothing.

use super::World;
use super::allocations::Allocation;
use super::states::Why;
use super::units::{Place, Unit};
use crate::fact::{Class, Fact, FactBody, InventoryGpu, Mode, Placement, Runtime};
use crate::finding::Findings;
use crate::ids::{AllocationId, GpuId, NodeId, ProjectId, SkuId, Source, TenantId};
use crate::pool::{Idle, Policy};
use crate::share::Share;
use crate::time::{CELL_US, Instant};
use crate::usage::AllocationView;
use std::collections::{BTreeMap, BTreeSet};

/// Facts, and the horizon they are looked at from.
#[derive(Clone, Debug)]
pub struct Look<'f> {
    /// In any order.
    pub facts: Vec<&'f Fact>,
    /// The horizon.
    pub as_of: Instant,
}

/// What differs between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// GPUs that are painted otherwise, each with the earliest instant from which on they may be.
    pub gpus: BTreeMap<GpuId, Instant>,
    /// Allocations that are reported otherwise, or whose unplaced units are.
    pub allocations: BTreeSet<AllocationId>,
    /// Allocations with a unit that stands elsewhere: whatever names them proves that other nodes lived, from its own time on.
    pub moved: BTreeSet<AllocationId>,
}

/// Compares two looks. Of the facts both are given, each must hold what acts on a GPU or allocation, or neither.
pub fn changes(before: Look<'_>, after: Look<'_>, context: &super::Context<'_>) -> Changes {
    let mut findings = Findings::default();
    let before = World::new(before.facts, context, before.as_of, &mut findings);
    let after = World::new(after.facts, context, after.as_of, &mut findings);
    let (old, new) = (Circumstances::of(&before), Circumstances::of(&after));
    let (allocations, moved) = (otherwise(&old.views, &new.views), otherwise(&old.places, &new.places));
    let mut changes = Changes { gpus: BTreeMap::new(), allocations, moved };
    let spots: BTreeSet<Spot<'_>> = old.spots.keys().chain(new.spots.keys()).copied().collect();
    for spot in spots {
        let none = Items::default();
        let (old, new) = (old.spots.get(&spot).unwrap_or(&none), new.spots.get(&spot).unwrap_or(&none));
        match (spot, old.differ_from(new)) {
            (_, None) => {}
            (Spot::Gpu(gpu), Some(at)) => drop(changes.gpus.insert(gpu.clone(), at)),
            (Spot::Unplaced(allocation), Some(_)) => drop(changes.allocations.insert(allocation.clone())),
        }
    }
    changes
}

/// Where something stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spot<'w> {
    Gpu(&'w GpuId),
    /// Units without a device.
    Unplaced(&'w AllocationId),
}

/// One thing that painting reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What<'w> {
    Capacity {
        compute_slices: u8,
        memory_slices: u8,
    },
    Seen(&'w NodeId, &'w InventoryGpu),
    Silent,
    Taken(Why, Option<Placement>),
    Held(Hold<'w>),
    Owned(&'w AllocationId, &'w TenantId, Option<&'w ProjectId>),
    State(&'w AllocationId, usize, &'w str),
    Work(&'w Source, &'w str),
    /// The last cell of a pool is divided by what there is of it at the horizon.
    Cell(&'w AllocationId, Instant),
}

/// A unit as the grant has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hold<'w> {
    start: Instant,
    allocation: &'w AllocationId,
    unit: u32,
    count: u32,
    placement: Option<Placement>,
    compute_slices: u8,
    share: Option<Share>,
    weight: Share,
    sku: &'w SkuId,
    mode: Mode,
    class: Class,
    pool: Option<&'w str>,
    runtime: &'w Runtime,
}

/// What is read at one spot: how often each thing stands, from when to when.
#[derive(Default)]
struct Items<'w> {
    /// Ends by what and since when, and which one of several equal ones.
    ends: BTreeMap<(What<'w>, Instant), Vec<Instant>>,
    /// Where there is capacity at all; none for units without a device.
    first_capacity: Option<Instant>,
}

struct Circumstances<'w> {
    spots: BTreeMap<Spot<'w>, Items<'w>>,
    views: BTreeMap<&'w AllocationId, AllocationView>,
    /// GPUs of each allocation, and where they were when it was named first.
    places: BTreeMap<&'w AllocationId, BTreeSet<(&'w GpuId, Option<&'w NodeId>)>>,
}

impl<'w> Items<'w> {
    fn add(&mut self, what: What<'w>, from: Instant, until: Instant) {
        self.ends.entry((what, from)).or_default().push(until);
    }

    /// The earliest instant at which the two differ.
    fn differ_from(&self, other: &Self) -> Option<Instant> {
        let keys = self.ends.keys().chain(other.ends.keys());
        let at = keys.filter_map(|key| differ(key.1, self.ends.get(key), other.ends.get(key))).min()?;
        let first = [self.first_capacity, other.first_capacity].into_iter().flatten().min();
        Some(at.max(first.unwrap_or(Instant::MIN)))
    }
}

/// From when on one thing differs that begins at `from` in both and ends, as often as it stands, at these instants.
fn differ(from: Instant, one: Option<&Vec<Instant>>, other: Option<&Vec<Instant>>) -> Option<Instant> {
    let (Some(one), Some(other)) = (one, other) else { return Some(from) };
    if one == other {
        return None;
    }
    let sorted = |ends: &Vec<Instant>| {
        let mut ends = ends.clone();
        ends.sort_unstable();
        ends
    };
    let (one, other) = (sorted(one), sorted(other));
    if one.len() != other.len() {
        return Some(from);
    }
    one.iter().zip(&other).filter(|(a, b)| a != b).map(|(a, b)| *a.min(b)).min()
}

impl<'w> Circumstances<'w> {
    fn of(world: &'w World<'w>) -> Self {
        let mut all = Self { spots: BTreeMap::new(), views: BTreeMap::new(), places: BTreeMap::new() };
        for (gpu, device) in world.devices.iter() {
            all.device(world, gpu, device);
        }
        let mut work: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
        for fact in &world.facts {
            if let FactBody::Work(report) = &fact.body {
                work.entry(report.pool.as_str()).or_default().push(fact);
            }
        }
        for allocation in &world.allocations {
            all.views.insert(allocation.id, allocation.view(&world.states));
            let named = allocation.named_at.iter().min().copied().unwrap_or(allocation.start);
            let place = |gpu| (gpu, world.devices.node_of(gpu, named));
            all.places.insert(allocation.id, allocation.gpus().into_iter().map(place).collect());
            for unit in &allocation.units {
                all.unit(world, allocation, unit, &work);
            }
        }
        all
    }

    fn device(&mut self, world: &World<'w>, gpu: &'w GpuId, device: &'w super::devices::Device<'w>) {
        let going = |end: Instant| if end == world.as_of { Instant::MAX } else { end };
        let items = self.spots.entry(Spot::Gpu(gpu)).or_default();
        items.first_capacity = device.capacity.first().map(|window| window.start());
        let (compute_slices, memory_slices) = device.slices();
        for window in &device.capacity {
            items.add(What::Capacity { compute_slices, memory_slices }, window.start(), going(window.end()));
        }
        let mut from = Instant::MIN;
        let mut sightings = device.sightings().iter().peekable();
        while let Some(sighting) = sightings.next() {
            let same = |next: &&super::devices::Sighting<'_>| {
                (next.node, next.listed) == (sighting.node, sighting.listed)
            };
            while sightings.next_if(same).is_some() {}
            let until = sightings.peek().map_or(Instant::MAX, |next| next.at);
            items.add(What::Seen(sighting.node, sighting.listed), from, until);
            from = until;
        }
        for window in world.scene(gpu, device, &[]).silences(world.as_of) {
            items.add(What::Silent, window.start(), going(window.end()));
        }
        for taken in world.states.of(gpu) {
            items.add(
                What::Taken(taken.why, taken.placement),
                taken.window.start(),
                going(taken.window.end()),
            );
        }
    }

    fn unit(
        &mut self,
        world: &World<'w>,
        allocation: &'w Allocation<'w>,
        unit: &'w Unit,
        work: &BTreeMap<&str, Vec<&'w Fact>>,
    ) {
        let (spot, placement, compute_slices) = match &unit.place {
            Place::Slices { gpu, placement, compute_slices } => (Spot::Gpu(gpu), *placement, *compute_slices),
            Place::Unplaced => (Spot::Unplaced(allocation.id), None, 0),
            Place::Waiting => return,
        };
        let (start, end) = (allocation.start, if unit.open { Instant::MAX } else { unit.end });
        if end <= start {
            return;
        }
        let items = self.spots.entry(spot).or_default();
        let grant = allocation.grant;
        let hold = Hold {
            start,
            allocation: allocation.id,
            unit: unit.index,
            count: unit.count,
            placement,
            compute_slices,
            share: unit.share,
            weight: unit.weight,
            sku: &unit.sku,
            mode: grant.mode,
            class: grant.class,
            pool: grant.pool.as_deref(),
            runtime: &grant.runtime,
        };
        items.add(What::Held(hold), start, end);
        let nexts = allocation.owners.iter().skip(1).map(|owner| owner.since).chain([Instant::MAX]);
        for (owner, next) in allocation.owners.iter().zip(nexts) {
            items.add(What::Owned(allocation.id, owner.tenant, owner.project), owner.since, next);
        }
        for (position, (at, state)) in allocation.states.iter().enumerate() {
            items.add(What::State(allocation.id, position, state), *at, Instant::MAX);
        }
        let pool = grant.pool.as_deref().and_then(|name| Some((name, world.context.pools.get(name)?)));
        let Some((name, pool)) = pool else { return };
        if pool.policy == Policy::Entitlement && pool.idle == Idle::Provider {
            return;
        }
        // A pool's windows divide a cell, so what begins in a cell is told from its begin on.
        if unit.open {
            items.add(What::Cell(allocation.id, world.as_of), world.as_of.floor(CELL_US), Instant::MAX);
        }
        for fact in work.get(name).map(Vec::as_slice).unwrap_or_default() {
            if let FactBody::Work(report) = &fact.body {
                items.add(What::Work(&fact.source, &fact.id), report.start.floor(CELL_US), Instant::MAX);
            }
        }
    }
}

/// Allocations of which the two say something else, or only one anything.
fn otherwise<T: PartialEq>(
    one: &BTreeMap<&AllocationId, T>,
    other: &BTreeMap<&AllocationId, T>,
) -> BTreeSet<AllocationId> {
    let ids: BTreeSet<&AllocationId> = one.keys().chain(other.keys()).copied().collect();
    ids.into_iter().filter(|id| one.get(*id) != other.get(*id)).cloned().collect()
}
