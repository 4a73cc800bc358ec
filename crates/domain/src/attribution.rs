//! Attribution: from facts to who held which slice of which GPU, when (rules ).
//!
//! [`attribute`] reads top down: facts in the order of A-18, devices and their capacity, allocations and their units, proof of life,
//! ends of holds, one sweep over each GPU, and what pools make of it. It is a function of the facts, the geometry, the settings and the horizon, and of
//! nothing else: the order in which facts are given, and how often, changes nothing.

mod allocations;
mod circumstances;
mod devices;
mod ends;
mod free;
mod life;
mod order;
mod paint;
mod pools;
mod profiles;
mod spans;
mod states;
mod timeline;
mod units;

pub use circumstances::{Changes, Look, changes};
pub use timeline::{GpuTimeline, Holder, Piece, Segment};

use crate::fact::{Fact, Settings};
use crate::finding::{Finding, Findings};
use crate::geometry::Geometry;
use crate::ids::{GpuId, NodeId};
use crate::measured::Rollup;
use crate::pool::Pools;
use crate::residue::Hold;
use crate::sku::SkuBook;
use crate::time::Instant;
use crate::usage::{AllocationView, UsageSpan};
use std::collections::{BTreeMap, BTreeSet};

/// What attribution knows besides the facts.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What models can be cut into.
    pub geometry: &'a Geometry,
    /// Names of products.
    pub skus: &'a SkuBook,
    /// Times after which silence counts.
    pub settings: Settings,
    /// By what pools are divided.
    pub pools: &'a Pools,
    /// Measured time of the GPUs that measured pools hold; none elsewhere.
    pub measured: &'a [Rollup],
}

/// The ledger at a horizon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// What stands where on each GPU.
    pub gpus: BTreeMap<GpuId, GpuTimeline>,
    /// What each tenant held, placed and unplaced, in order of allocation, unit and time.
    pub spans: Vec<UsageSpan>,
    /// Every allocation that has a grant.
    pub allocations: Vec<AllocationView>,
    /// What a person should look at.
    pub findings: Vec<Finding>,
    /// The last proof of life of each node that has capacity at the horizon.
    pub heard: BTreeMap<NodeId, Instant>,
}

/// Attributes the GPU-time of all GPUs in `facts` up to `as_of`. Facts later than `as_of` do not act yet.
pub fn attribute(facts: &[Fact], context: &Context<'_>, as_of: Instant) -> Attribution {
    attribute_gpus(facts, context, as_of, None)
}

/// Like [`attribute`], painting only the GPUs in `only` (all where none is given). The facts must hold whatever touches those GPUs, their nodes
/// and the allocations on them.
pub fn attribute_gpus(
    facts: &[Fact],
    context: &Context<'_>,
    as_of: Instant,
    only: Option<&BTreeSet<GpuId>>,
) -> Attribution {
    let mut findings = Findings::default();
    let world = World::new(facts.iter().collect(), context, as_of, &mut findings);
    let floor = |gpu: &GpuId| only.is_none_or(|wanted| wanted.contains(gpu)).then_some(Instant::MIN);
    world.attribute(&floor, findings)
}

/// Like [`attribute_gpus`], painting each GPU of `floors` from its floor on, a full UTC hour, and no other. What stands from there on is
/// the same as in the whole ledger but for spans that begin at a floor: they may have begun before it.
pub fn attribute_from(
    facts: Vec<&Fact>,
    context: &Context<'_>,
    as_of: Instant,
    floors: &BTreeMap<GpuId, Instant>,
) -> Attribution {
    let mut findings = Findings::default();
    let world = World::new(facts, context, as_of, &mut findings);
    world.attribute(&|gpu: &GpuId| floors.get(gpu).copied(), findings)
}

/// Every unit's hold on slices of a GPU, up to `as_of`: what the rules of residue look at. Contested units are among them.
pub fn holds(facts: Vec<&Fact>, context: &Context<'_>, as_of: Instant) -> Vec<Hold> {
    let world = World::new(facts, context, as_of, &mut Findings::default());
    world.allocations.iter().flat_map(allocations::Allocation::holds).collect()
}

/// Everything that painting rests on.
struct World<'a> {
    facts: Vec<&'a Fact>,
    context: &'a Context<'a>,
    as_of: Instant,
    devices: devices::Devices<'a>,
    allocations: Vec<allocations::Allocation<'a>>,
    life: life::Life<'a>,
    states: states::Scopes,
}

impl<'a> World<'a> {
    fn new(facts: Vec<&'a Fact>, context: &'a Context<'a>, as_of: Instant, findings: &mut Findings) -> Self {
        let facts = order::acting(facts, as_of);
        let devices = devices::Devices::new(&facts, as_of);
        profiles::note_unknown(&devices, context.geometry, findings);
        let mut allocations = allocations::resolve(&facts, &devices, context, as_of, findings);
        let life = life::Life::new(&facts, &devices, &allocations, context.settings, as_of);
        ends::settle(&mut allocations, &devices, &life, as_of, findings);
        let states = states::Scopes::new(&facts, as_of);
        Self { facts, context, as_of, devices, allocations, life, states }
    }

    fn scene<'s>(
        &'s self,
        gpu: &'s GpuId,
        device: &'s devices::Device<'a>,
        allocations: &'s [&'s allocations::Allocation<'a>],
    ) -> paint::Scene<'s, 'a> {
        let Self { life, states, context, as_of, .. } = self;
        paint::Scene { gpu, device, allocations, life, states, context, as_of: *as_of }
    }

    /// Allocations by the GPUs they have units on.
    fn allocations_by_gpu(&self) -> BTreeMap<&GpuId, Vec<&allocations::Allocation<'a>>> {
        let mut by_gpu: BTreeMap<&GpuId, Vec<&allocations::Allocation<'a>>> = BTreeMap::new();
        for allocation in &self.allocations {
            for gpu in allocation.gpus() {
                by_gpu.entry(gpu).or_default().push(allocation);
            }
        }
        by_gpu
    }

    /// Paints the GPUs that have a floor, from it on.
    fn attribute(&self, floor: &dyn Fn(&GpuId) -> Option<Instant>, mut findings: Findings) -> Attribution {
        let mut pooling = pools::Pooling::new(&self.facts, &self.allocations, self.context);
        let by_gpu = self.allocations_by_gpu();
        let mut gpus = BTreeMap::new();
        for (gpu, device) in self.devices.iter() {
            if let Some(from) = floor(gpu) {
                let here = by_gpu.get(gpu).map(Vec::as_slice).unwrap_or_default();
                let timeline = paint::paint(&self.scene(gpu, device, here), from, self.as_of, &mut findings);
                gpus.insert(gpu.clone(), pooling.divide(gpu, timeline));
            }
        }
        let spans = spans::collect(&gpus, &self.allocations, &mut pooling);
        let views = self.allocations.iter().map(|a| a.view(&self.states)).collect();
        let findings = findings.into_vec();
        Attribution { gpus, spans, allocations: views, findings, heard: self.heard() }
    }

    fn heard(&self) -> BTreeMap<NodeId, Instant> {
        let nodes = self.devices.iter().filter_map(|(_, device)| {
            let node = device.seen(self.as_of)?.node;
            Some((node.clone(), self.life.last_proof(node)?)).filter(|_| device.is_there(node, self.as_of))
        });
        nodes.collect()
    }
}
