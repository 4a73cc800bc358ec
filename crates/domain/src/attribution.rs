//! Attribution: from facts to who held which slice of which GPU, when (rules ).
//!
//! [`attribute`] reads top down: facts in the order of A-18, devices and their capacity, allocations and their units, proof of life,
//! ends of holds, then one sweep over each GPU. It is a function of the facts, the geometry, the settings and the horizon, and of
//! nothing else: the order in which facts are given, and how often, changes nothing.

mod allocations;
mod devices;
mod ends;
mod free;
mod life;
mod order;
mod paint;
mod spans;
mod states;
mod timeline;
mod units;

pub use timeline::{GpuTimeline, Holder, Piece, Segment};

use crate::fact::{Fact, Settings};
use crate::finding::{Finding, Findings};
use crate::geometry::Geometry;
use crate::ids::GpuId;
use crate::measured::Rollup;
use crate::pool::Pools;
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
    let facts = order::acting(facts, as_of);
    let mut findings = Findings::default();
    let devices = devices::Devices::new(&facts, as_of);
    let mut allocations = allocations::resolve(&facts, &devices, context, as_of, &mut findings);
    let life = life::Life::new(&facts, &devices, &allocations, context.settings, as_of);
    ends::settle(&mut allocations, &devices, &life, as_of, &mut findings);
    let states = states::Scopes::new(&facts, as_of);
    let mut gpus = BTreeMap::new();
    for (gpu, device) in devices.iter() {
        if only.is_none_or(|wanted| wanted.contains(gpu)) {
            let scene = paint::Scene {
                gpu,
                device,
                allocations: &allocations,
                life: &life,
                states: &states,
                context,
                as_of,
            };
            gpus.insert(gpu.clone(), paint::paint(&scene, as_of, &mut findings));
        }
    }
    let spans = spans::collect(&gpus, &allocations);
    let views = allocations.iter().map(|a| a.view(&states)).collect();
    Attribution { gpus, spans, allocations: views, findings: findings.into_vec() }
}
