//! States and scrubs of a GPU's scopes: the GPU itself and exact placements.

use crate::fact::{Cause, Fact, FactBody, Placement, State};
use crate::ids::{GpuId, ScrubId};
use crate::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// A stretch in which a scope is taken from tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) window: Window,
    /// None: the whole GPU.
    pub(super) placement: Option<Placement>,
    pub(super) why: Why,
}

/// Why a scope is taken, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    Fault,
    Maintenance,
    Scrub,
}

/// All taken scopes by GPU.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    by_gpu: BTreeMap<GpuId, Vec<Taken>>,
}

impl Scopes {
    /// Reads states and scrubs from facts in the order of A-18.
    pub(super) fn new(facts: &[&Fact], as_of: Instant) -> Self {
        let mut scopes = Self::default();
        for (gpu, events) in state_events(facts) {
            let placements: BTreeSet<Option<Placement>> = events.iter().map(|e| e.placement).collect();
            for placement in placements {
                scopes
                    .by_gpu
                    .entry(gpu.clone())
                    .or_default()
                    .extend(taken_by_state(&events, placement, as_of));
            }
        }
        for (gpu, taken) in scrubs(facts, as_of) {
            scopes.by_gpu.entry(gpu.clone()).or_default().push(taken);
        }
        scopes
    }

    /// Taken scopes of one GPU.
    pub(super) fn of(&self, gpu: &GpuId) -> &[Taken] {
        self.by_gpu.get(gpu).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the slices (none: the whole GPU) were in fault just before `at`.
    pub(super) fn broken_before(&self, gpu: &GpuId, placement: Option<Placement>, at: Instant) -> bool {
        self.of(gpu).iter().any(|taken| {
            let touches = match (taken.placement, placement) {
                (Some(a), Some(b)) => a.start < b.start + b.size && b.start < a.start + a.size,
                _ => true,
            };
            taken.why == Why::Fault && touches && taken.window.contains(at.plus(-1))
        })
    }
}

struct StateEvent<'a> {
    at: Instant,
    placement: Option<Placement>,
    state: &'a State,
}

fn state_events<'a>(facts: &[&'a Fact]) -> BTreeMap<&'a GpuId, Vec<StateEvent<'a>>> {
    let mut by_gpu: BTreeMap<&GpuId, Vec<StateEvent<'_>>> = BTreeMap::new();
    for fact in facts {
        if let FactBody::UnitState(unit) = &fact.body {
            let event = StateEvent { at: fact.at, placement: unit.placement, state: &unit.state };
            by_gpu.entry(&unit.gpu).or_default().push(event);
        }
    }
    by_gpu
}

/// A state of one scope with the fault episode it belongs to.
#[derive(Clone)]
struct Stretch {
    since: Instant,
    state: State,
}

/// One state per scope, replaced by the next of that scope; a GPU-wide `ok` clears placements too. A definite cause at the time of
/// an unknown one, or after it without an `ok` between, holds from that fault's start.
fn taken_by_state(events: &[StateEvent<'_>], scope: Option<Placement>, as_of: Instant) -> Vec<Taken> {
    let of_scope =
        events.iter().filter(|e| e.placement == scope || (e.placement.is_none() && *e.state == State::Ok));
    let mut stretches: Vec<Stretch> = Vec::new();
    for event in of_scope {
        let mut state = event.state.clone();
        let episode = stretches.iter().rposition(|s| s.state == State::Ok).map_or(0, |ok| ok + 1);
        if let State::Fault(cause) = &state {
            if *cause == Cause::Unknown {
                let same_time =
                    stretches[episode..].iter().rev().find(|s| s.since == event.at && is_definite(&s.state));
                state = same_time.map_or(state.clone(), |s| s.state.clone());
            } else if let Some(first) =
                stretches[episode..].iter().position(|s| s.state == State::Fault(Cause::Unknown))
            {
                for stretch in
                    stretches[episode + first..].iter_mut().filter(|s| matches!(s.state, State::Fault(_)))
                {
                    stretch.state = state.clone();
                }
            }
        }
        stretches.push(Stretch { since: event.at, state });
    }
    let ends = stretches.iter().skip(1).map(|s| s.since).chain([as_of]);
    let taken = stretches.iter().zip(ends).filter_map(|(stretch, end)| {
        let why = match &stretch.state {
            State::Ok | State::Fault(Cause::Application) => return None,
            State::Fault(_) => Why::Fault,
            State::Maintenance => Why::Maintenance,
        };
        Some(Taken { window: Window::new(stretch.since, end)?, placement: scope, why })
    });
    taken.collect()
}

fn is_definite(state: &State) -> bool {
    matches!(state, State::Fault(cause) if *cause != Cause::Unknown)
}

/// A scrub takes its slices from its start to its end; one that never ended, to the horizon.
fn scrubs<'a>(facts: &[&'a Fact], as_of: Instant) -> Vec<(&'a GpuId, Taken)> {
    let finished: BTreeSet<(&GpuId, &ScrubId)> = facts
        .iter()
        .filter_map(|fact| match &fact.body {
            FactBody::ScrubFinished { scrub, gpu, .. } => Some((gpu, scrub)),
            _ => None,
        })
        .collect();
    let windows = facts.iter().filter_map(|fact| {
        let (gpu, placement, window) = match &fact.body {
            FactBody::ScrubFinished { gpu, placement, started_at, .. } => {
                (gpu, placement, Window::new(*started_at, fact.at)?)
            }
            FactBody::ScrubStarted { scrub, gpu, placement } if !finished.contains(&(gpu, scrub)) => {
                (gpu, placement, Window::new(fact.at, as_of)?)
            }
            _ => return None,
        };
        Some((gpu, Taken { window, placement: *placement, why: Why::Scrub }))
    });
    windows.collect()
}
