//! A small reference allocator: it puts requests on what is free, first come, first served, first fit.
//!
//! A request that fits nowhere takes spot GPUs back, or has a GPU cut anew where nobody holds what is cut away, or waits.

use super::fleet::{Gpu, Model, Part, Use};
use super::maintenance;
use super::requests::{Asks, Request};
use anyhow::{Result, ensure};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, MINUTE_US, Window};
use gpuledger_wire::bodies::Class;
use gpuledger_wire::geometry::geometry;
use std::collections::{BTreeMap, BTreeSet};

/// How long it takes to cut a GPU anew.
const CUTTING_US: i64 = MINUTE_US;

/// What was granted, on which units, for how long.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// What was asked for.
    pub(crate) request: &'static Request,
    /// What was given.
    pub(crate) units: Vec<Unit>,
    /// From grant to release.
    pub(crate) window: Window,
    /// Taken back for somebody else.
    pub(crate) is_preempted: bool,
}

/// A device or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Which GPU.
    pub(crate) gpu: Gpu,
    /// None: all slices.
    pub(crate) part: Option<Part>,
    /// None: alone.
    pub(crate) share: Option<Share>,
}

/// A GPU that is cut anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// When.
    pub(crate) at: Instant,
    /// Which.
    pub(crate) gpu: Gpu,
    /// Instances that go.
    pub(crate) removed: Vec<Part>,
    /// The instance that comes.
    pub(crate) made: Part,
}

/// What the allocator did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// In order of their grants.
    pub(crate) holds: Vec<Hold>,
    /// In order of time.
    pub(crate) cuts: Vec<Cut>,
}

struct Allocator {
    geometry: Geometry,
    /// MIG instances as they stand.
    cut: BTreeMap<Gpu, BTreeSet<Part>>,
    waiting: Vec<&'static Request>,
    plan: Plan,
}

/// Places all requests, which stand in order of time.
///
/// # Errors
/// A request that the fleet can never fulfil.
pub(crate) fn place(requests: &'static [Request]) -> Result<Plan> {
    let mut allocator = Allocator::new();
    let mut coming = requests.iter().peekable();
    let mut now = Instant::MIN;
    loop {
        let arrival = coming.peek().map(|request| request.at);
        let Some(next) = [arrival, allocator.next_end(now)].into_iter().flatten().min() else { break };
        now = next;
        while let Some(request) = coming.next_if(|request| request.at <= now) {
            allocator.waiting.push(request);
        }
        for request in std::mem::take(&mut allocator.waiting) {
            if !allocator.try_to_place(request, now) {
                allocator.waiting.push(request);
            }
        }
    }
    let left: Vec<&str> = allocator.waiting.iter().map(|request| request.id).collect();
    ensure!(left.is_empty(), "the fleet has no room for {}", left.join(", "));
    let mut plan = allocator.plan;
    plan.holds.sort_by_key(|hold| (hold.window.start(), hold.request.id));
    Ok(plan)
}

impl Allocator {
    fn new() -> Self {
        let cut = Gpu::all().filter_map(|(gpu, used)| match used {
            Use::Cut(parts) => Some((gpu, parts.iter().copied().collect())),
            Use::Whole | Use::Shared => None,
        });
        Self { geometry: geometry(), cut: cut.collect(), waiting: Vec::new(), plan: Plan::default() }
    }

    /// When the next hold ends after `now`, as it stands.
    fn next_end(&self, now: Instant) -> Option<Instant> {
        self.plan.holds.iter().map(|hold| hold.window.end()).filter(|end| *end > now).min()
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = &Hold> {
        self.plan.holds.iter().filter(move |hold| hold.window.end() > now)
    }

    /// Units of a GPU that somebody has.
    fn held(&self, gpu: Gpu, now: Instant) -> impl Iterator<Item = &Unit> {
        self.live(now).flat_map(|hold| &hold.units).filter(move |unit| unit.gpu == gpu)
    }

    fn try_to_place(&mut self, request: &'static Request, now: Instant) -> bool {
        let placed = match request.asks {
            Asks::Whole(model, count) => self.whole(request, model, count, now).map(|units| (units, now)),
            Asks::Instance(model, profile) => {
                self.instance(model, profile, now).map(|(unit, from)| (vec![unit], from))
            }
            Asks::Share(model, parts) => {
                self.share(model, Share::new(1, parts), now).map(|unit| (vec![unit], now))
            }
        };
        let hold = placed.and_then(|(units, from)| {
            let window = Window::new(from, from.plus(request.lasts_us))?;
            Some(Hold { request, units, window, is_preempted: false })
        });
        let is_placed = hold.is_some();
        self.plan.holds.extend(hold);
        is_placed
    }

    fn whole(&mut self, request: &Request, model: Model, count: usize, now: Instant) -> Option<Vec<Unit>> {
        let stay = Window::new(now, now.plus(request.lasts_us))?;
        let whole = Gpu::all().filter(|(_, used)| *used == Use::Whole).map(|(gpu, _)| gpu);
        let fits = |gpu: &Gpu| gpu.node().model == model && !is_drained(*gpu, stay);
        let candidates: Vec<Gpu> = whole.filter(fits).collect();
        let is_free = |plan: &Self, gpu: Gpu| plan.held(gpu, now).next().is_none();
        let free = candidates.iter().filter(|gpu| is_free(self, **gpu)).count();
        if free < count && !(request.class != Class::Spot && self.take_back(&candidates, count - free, now)) {
            return None;
        }
        let taken = candidates.into_iter().filter(|gpu| is_free(self, *gpu)).take(count);
        Some(taken.map(|gpu| Unit { gpu, part: None, share: None }).collect())
    }

    /// Ends spot holds, the youngest first, until so many of these GPUs are free; ends none where that is not enough.
    fn take_back(&mut self, candidates: &[Gpu], missing: usize, now: Instant) -> bool {
        let is_spot = |hold: &&mut Hold| {
            hold.request.class == Class::Spot
                && hold.window.start() < now
                && hold.window.end() > now
                && hold.units.iter().all(|unit| candidates.contains(&unit.gpu))
        };
        let mut spot: Vec<&mut Hold> = self.plan.holds.iter_mut().filter(is_spot).collect();
        spot.sort_by_key(|hold| std::cmp::Reverse(hold.window.start()));
        if spot.iter().map(|hold| hold.units.len()).sum::<usize>() < missing {
            return false;
        }
        let mut freed = 0;
        for hold in spot {
            let Some(shorter) = Window::new(hold.window.start(), now).filter(|_| freed < missing) else {
                break;
            };
            freed += hold.units.len();
            hold.window = shorter;
            hold.is_preempted = true;
        }
        true
    }

    /// An instance, and from when on it is there.
    fn instance(&mut self, model: Model, profile: &'static str, now: Instant) -> Option<(Unit, Instant)> {
        let free = self.cut.iter().filter(|(gpu, _)| gpu.node().model == model).find_map(|(gpu, parts)| {
            let fits = |part: &&Part| part.profile == profile && self.is_free(*gpu, **part, now);
            Some((*gpu, *parts.iter().find(fits)?))
        });
        let unit = |gpu, part| Unit { gpu, part: Some(part), share: None };
        if let Some((gpu, part)) = free {
            return Some((unit(gpu, part), now));
        }
        let (gpu, part) = self.room_for(model, profile, now)?;
        self.cut_anew(gpu, part, now);
        Some((unit(gpu, part), now.plus(CUTTING_US)))
    }

    fn is_free(&self, gpu: Gpu, part: Part, now: Instant) -> bool {
        !self.held(gpu, now).any(|unit| unit.part.is_none_or(|held| held.overlaps(part)))
    }

    /// A legal placement that touches nothing held.
    fn room_for(&self, model: Model, profile: &'static str, now: Instant) -> Option<(Gpu, Part)> {
        let shape = self.geometry.of(model.nvml_name())?.profile(profile)?;
        let of_model = self.cut.keys().copied().filter(|gpu| gpu.node().model == model);
        let places = of_model.flat_map(|gpu| {
            shape.starts.iter().map(move |start| (gpu, Part::new(profile, *start, shape.memory_slices)))
        });
        places.into_iter().find(|(gpu, part)| self.is_free(*gpu, *part, now))
    }

    fn cut_anew(&mut self, gpu: Gpu, made: Part, at: Instant) {
        let Some(parts) = self.cut.get_mut(&gpu) else { return };
        let removed: Vec<Part> = parts.iter().copied().filter(|part| part.overlaps(made)).collect();
        parts.retain(|part| !part.overlaps(made));
        parts.insert(made);
        self.plan.cuts.push(Cut { at, gpu, removed, made });
    }

    fn share(&self, model: Model, share: Share, now: Instant) -> Option<Unit> {
        let mut shared = Gpu::all().filter(|(gpu, used)| *used == Use::Shared && gpu.node().model == model);
        let has_room = |gpu: Gpu| {
            let given: Share = self.held(gpu, now).filter_map(|unit| unit.share).sum();
            given + share <= Share::from_integer(1)
        };
        let (gpu, _) = shared.find(|(gpu, _)| has_room(*gpu))?;
        Some(Unit { gpu, part: None, share: Some(share) })
    }
}

/// Whether the operator takes the GPU within this time.
fn is_drained(gpu: Gpu, stay: Window) -> bool {
    let (drained, window) = maintenance();
    gpu == drained && window.intersect(stay).is_some()
}
