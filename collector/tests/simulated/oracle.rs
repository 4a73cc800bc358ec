//! What was true: plain questions to the worked-out timeline. Nothing here knows how a collector samples.

use gpuledger_domain::time::Instant;
use gpuledger_nvml_sim::scenario::Action;
use gpuledger_nvml_sim::world::{Context, Presence, Track, World};

/// How long it may take until a device is opened that could not be.
const UNOPENED_US: u64 = 65_000_000;

/// Disjoint pieces of the timeline in order, in microseconds since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    pub(crate) fn new(mut pieces: Vec<(u64, u64)>) -> Self {
        pieces.retain(|(from, to)| from < to);
        pieces.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in pieces {
            match joined.last_mut() {
                Some(last) if last.1 >= from => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined)
    }

    pub(crate) fn one(from_us: u64, to_us: u64) -> Self {
        Self::new(vec![(from_us, to_us)])
    }

    pub(crate) fn pieces(&self) -> &[(u64, u64)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn length_us(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        let both = self.0.iter().flat_map(|(from, to)| {
            other.0.iter().map(move |(other_from, other_to)| (*from.max(other_from), *to.min(other_to)))
        });
        Self::new(both.collect())
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        for (from, to) in &self.0 {
            let mut at = *from;
            for (other_from, other_to) in other.0.iter().filter(|(a, b)| a < to && from < b) {
                left.push((at, (*other_from).min(*to)));
                at = at.max(*other_to);
            }
            left.push((at, *to));
        }
        Self::new(left)
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        !self.and(other).is_empty()
    }

    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.minus(self).is_empty()
    }

    /// Each piece begins so much earlier and ends so much later.
    pub(crate) fn widened(&self, before_us: u64, after_us: u64) -> Self {
        let wide =
            self.0.iter().map(|(from, to)| (from.saturating_sub(before_us), to.saturating_add(after_us)));
        Self::new(wide.collect())
    }
}

/// A unit: a GPU by its place in the scenario, or memory slices (first, number) of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) gpu: usize,
    pub(crate) slices: Option<(u32, u32)>,
}

/// A process on a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) place: Place,
    pub(crate) pid: u32,
    /// Unix microseconds, as exactly as `/proc` tells it.
    pub(crate) started_us: i64,
}

/// All of a timeline.
pub(crate) fn ever() -> Spans {
    Spans::one(0, u64::MAX)
}

/// The times of the timeline that the node's clock called `[start, end)`: several where it was set back, parts where it was set forward.
pub(crate) fn times(world: &World, start: Instant, end: Instant) -> Spans {
    let jumps = world.scenario().timeline.iter().filter(|step| matches!(step.action, Action::JumpClock(_)));
    let mut edges: Vec<u64> = jumps.map(|step| step.at.0).collect();
    edges.insert(0, 0);
    edges.push(u64::MAX);
    let pieces = edges.windows(2).map(|edge| {
        let zero_us = world.scenario().start.0 + world.clock_offset_us(edge[0]);
        let on_timeline = |at: Instant| u64::try_from(at.as_micros() - zero_us).unwrap_or(0);
        (on_timeline(start).max(edge[0]), on_timeline(end).min(edge[1]))
    });
    Spans::new(pieces.collect())
}

/// When a GPU was gone: lost, in want of a reset, or without a driver.
pub(crate) fn gone(world: &World, gpu: usize) -> Spans {
    let away = in_state(world, gpu, |state| state.presence != Presence::Present);
    away.or(&Spans::new(world.driver_gaps().collect()))
}

/// When a GPU was lost or wanted a reset.
pub(crate) fn broken(world: &World, gpu: usize) -> Spans {
    in_state(world, gpu, |state| state.presence != Presence::Present)
}

/// When access to a GPU was revoked.
pub(crate) fn revoked(world: &World, gpu: usize) -> Spans {
    in_state(world, gpu, |state| state.is_revoked)
}

fn in_state(
    world: &World,
    gpu: usize,
    holds: impl Fn(&gpuledger_nvml_sim::world::GpuState) -> bool,
) -> Spans {
    let states = world.states(gpu);
    let pieces = states
        .iter()
        .enumerate()
        .filter(|(_, state)| holds(state))
        .map(|(i, state)| (state.from_us, states.get(i + 1).map_or(u64::MAX, |next| next.from_us)));
    Spans::new(pieces.collect())
}

/// When a unit existed.
pub(crate) fn life(world: &World, place: Place) -> Spans {
    match place.slices {
        None => ever(),
        Some(_) => Spans::new(instances(world, place).map(|it| (it.from_us, it.until_us)).collect()),
    }
}

/// Its lives, each for itself.
pub(crate) fn lives(world: &World, place: Place) -> Vec<(u64, u64)> {
    instances(world, place).map(|it| (it.from_us, it.until_us)).collect()
}

fn instances(world: &World, place: Place) -> impl Iterator<Item = &gpuledger_nvml_sim::world::GpuInstance> {
    world
        .gpu_instances()
        .iter()
        .filter(move |it| it.gpu == place.gpu && Some((it.start, it.profile.memory_slices)) == place.slices)
}

/// Every unit that ever was, GPUs first.
pub(crate) fn places(world: &World) -> Vec<Place> {
    let gpus = (0..world.gpu_count()).map(|gpu| Place { gpu, slices: None });
    let cut = world
        .gpu_instances()
        .iter()
        .map(|it| Place { gpu: it.gpu, slices: Some((it.start, it.profile.memory_slices)) });
    let mut all: Vec<Place> = gpus.chain(cut).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Busy time of a unit, in parts per million of a microsecond.
pub(crate) fn busy(world: &World, place: Place, over: &Spans) -> u128 {
    let sum = |track: &Track, within: &Spans| -> u128 {
        within.pieces().iter().map(|(from, to)| track.between(*from, *to)).sum()
    };
    match place.slices {
        None => sum(world.device_busy(place.gpu), over),
        Some(_) => instances(world, place)
            .map(|it| sum(&it.busy, &over.and(&Spans::one(it.from_us, it.until_us))))
            .sum(),
    }
}

/// Memory of a unit over time, in bytes times microseconds, without what the driver keeps for itself.
pub(crate) fn memory(world: &World, place: Place, over: &Spans) -> u128 {
    let mut sum = 0;
    let mut at_us = None;
    for (from, to) in over.pieces() {
        for edge in changes(world, place.gpu, *from, *to).chain([*to]) {
            let begin = at_us.replace(edge).filter(|at| at >= from).unwrap_or(*from);
            sum += u128::from(memory_at(world, place, begin)) * u128::from(edge - begin);
        }
        at_us = None;
    }
    sum
}

/// Memory of a unit at an instant.
pub(crate) fn memory_at(world: &World, place: Place, at_us: u64) -> u64 {
    match place.slices {
        None => world.device_memory(place.gpu).at(at_us),
        Some(_) => {
            let alive = instances(world, place).find(|it| it.from_us <= at_us && at_us < it.until_us);
            alive.map_or(0, |it| it.memory.at(at_us))
        }
    }
}

/// By how much the memory of a unit changed, up and down together, and the most there was.
pub(crate) fn memory_moves(world: &World, place: Place, over: &Spans) -> (u128, u64) {
    moves(world, place.gpu, over, |at_us| memory_at(world, place, at_us))
}

fn moves(world: &World, gpu: usize, over: &Spans, at: impl Fn(u64) -> u64) -> (u128, u64) {
    let (mut moved, mut most) = (0, 0);
    for (from, to) in over.pieces() {
        most = most.max(at(*from));
        for edge in changes(world, gpu, *from, *to) {
            let (before, after) = (at(edge - 1), at(edge));
            moved += u128::from(before.abs_diff(after));
            most = most.max(after);
        }
    }
    (moved, most)
}

/// Instants after `from` and before `to` at which anything of a GPU changes.
fn changes(world: &World, gpu: usize, from_us: u64, to_us: u64) -> impl Iterator<Item = u64> {
    let states = world.states(gpu);
    let first = states.partition_point(|state| state.from_us <= from_us);
    states[first..].iter().map(|state| state.from_us).take_while(move |at| *at < to_us)
}

/// The contexts of a process on a unit.
pub(crate) fn contexts(world: &World, who: Who) -> Vec<(usize, &Context)> {
    let all = world.contexts().iter().enumerate();
    let is_its = |context: &Context| {
        let process = world.process(context.process);
        place_of(world, context) == who.place
            && process.pid == who.pid
            && process.started_us(world.boot_us()) == who.started_us
    };
    all.filter(|(_, context)| is_its(context)).collect()
}

/// Every process on every unit.
pub(crate) fn everybody(world: &World) -> Vec<Who> {
    let mut all: Vec<Who> = world
        .contexts()
        .iter()
        .map(|context| {
            let process = world.process(context.process);
            let started_us = process.started_us(world.boot_us());
            Who { place: place_of(world, context), pid: process.pid, started_us }
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// On which unit a context is.
pub(crate) fn place_of(world: &World, context: &Context) -> Place {
    let slices = context.gpu_instance.map(|index| {
        let it = world.gpu_instance(index);
        (it.start, it.profile.memory_slices)
    });
    Place { gpu: context.gpu, slices }
}

/// When a list may name a process on a unit: until what it left behind is gone.
pub(crate) fn listed(contexts: &[(usize, &Context)]) -> Spans {
    Spans::new(
        contexts.iter().filter(|(_, it)| !it.is_hidden).map(|(_, it)| (it.from_us, it.gone_us)).collect(),
    )
}

/// Busy time of a process on a unit, in parts per million of a microsecond.
pub(crate) fn busy_of(contexts: &[(usize, &Context)], over: &Spans) -> u128 {
    let one =
        |it: &Context| -> u128 { over.pieces().iter().map(|(from, to)| it.busy.between(*from, *to)).sum() };
    contexts.iter().map(|(_, it)| one(it)).sum()
}

/// Its memory over time.
pub(crate) fn memory_of(contexts: &[(usize, &Context)], over: &Spans) -> u128 {
    let one =
        |it: &Context| -> u128 { over.pieces().iter().map(|(from, to)| it.memory.byte_us(*from, *to)).sum() };
    contexts.iter().map(|(_, it)| one(it)).sum()
}

/// By how much it changed, and the most there was.
pub(crate) fn memory_moves_of(
    world: &World,
    gpu: usize,
    contexts: &[(usize, &Context)],
    over: &Spans,
) -> (u128, u64) {
    moves(world, gpu, over, |at_us| contexts.iter().map(|(_, it)| it.memory.at(at_us)).sum())
}

/// When NVML did not know it.
pub(crate) fn memory_unknown_of(world: &World, gpu: usize, contexts: &[(usize, &Context)]) -> Spans {
    in_state(world, gpu, |state| {
        state
            .contexts
            .iter()
            .any(|entry| entry.is_memory_unknown && contexts.iter().any(|(index, _)| *index == entry.context))
    })
}

/// When something on the timeline may have kept a GPU from being read as it should: failures, delays, lies, revoked access, a lost device,
/// another driver or mode. How long an injected failure waits for its call is not known here: to the end, where it does not say.
pub(crate) fn disturbed(world: &World, gpu: usize) -> Spans {
    let lasts = |span: Option<gpuledger_nvml_sim::scenario::Span>| span.map_or(u64::MAX, |span| span.0);
    let steps = world.scenario().timeline.iter().filter_map(|step| {
        let of = |which: Option<usize>| which.is_none_or(|which| which == gpu);
        let (is_meant, lasts_us) = match &step.action {
            Action::Fail(it) => (of(it.gpu), lasts(it.lasts)),
            // The clock of the node goes on for everybody.
            Action::Delay(it) => (true, lasts(it.lasts)),
            Action::WrongEcho(it) => (it.gpu == gpu, lasts(it.lasts)),
            Action::GarbageRows(it) => (it.gpu == gpu, lasts(it.lasts)),
            Action::ChangeMig(it) => (it.gpu == gpu, 0),
            Action::ReloadDriver(it) => (true, it.down.0),
            Action::JumpClock(_) => (true, 0),
            Action::ClearAccounting(it) => (it.gpu == gpu, 0),
            Action::SetAccounting(it) => (it.gpu == gpu, 0),
            _ => (false, 0),
        };
        is_meant.then(|| (step.at.0, step.at.0.saturating_add(lasts_us).saturating_add(1)))
    });
    let reloads =
        world.scenario().timeline.iter().filter(|step| matches!(step.action, Action::ReloadDriver(_)));
    let reloads = Spans::new(reloads.map(|step| (step.at.0, step.at.0 + 1)).collect());
    // One that is away when the library is loaded cannot be opened; that is tried again within a minute.
    let away = broken(world, gpu);
    let unopened = away.pieces().iter().filter(|(from, to)| Spans::one(*from, *to).meets(&reloads));
    let unopened = Spans::new(unopened.copied().collect()).widened(0, UNOPENED_US);
    Spans::new(steps.collect()).or(&gone(world, gpu)).or(&revoked(world, gpu)).or(&unopened)
}

/// When the energy counter of a GPU was set.
pub(crate) fn energy_set(world: &World, gpu: usize) -> Spans {
    let steps = world
        .scenario()
        .timeline
        .iter()
        .filter(|step| matches!(&step.action, Action::SetEnergy(it) if it.gpu == gpu));
    Spans::new(steps.map(|step| (step.at.0, step.at.0 + 1)).collect())
}
