//! States of GPUs, the inventory, and placements.

use super::{Findings, PERIOD_US, reading_us};
use crate::node::Outing;
use crate::oracle::{Place, Spans, broken, disturbed, gone, life, place_of, places, revoked, times};
use gpuledger_domain::time::Instant;
use gpuledger_nvml_sim::scenario::{Action, Privilege};
use gpuledger_wire::EventData;
use gpuledger_wire::bodies::{AllocationPlaced, InventoryGpu, PlacedUnit, State, UnitState};
use std::collections::BTreeMap;

/// First memory slice, number of them.
type Slices = (i64, i64);
/// What was said of a unit, and when on the timeline.
type Said<'a> = Vec<(u64, &'a UnitState)>;

pub(super) fn check(outing: &Outing, findings: &mut Findings) {
    let events = on_timeline(outing);
    states(outing, &events, findings);
    inventories(outing, &events, findings);
    for (at, placed) in outing.output.placements() {
        let last = times(&outing.world, at, at.plus(1)).pieces().last().map_or(0, |(from, _)| *from);
        placement(outing, last, placed, findings);
    }
    findings.case("placements", u64::try_from(outing.output.placements().count()).unwrap_or(0));
}

/// How late something may be seen at an instant.
fn slow_us(outing: &Outing, at_us: u64) -> u64 {
    PERIOD_US + reading_us(outing, &Spans::one(at_us, at_us + 10 * PERIOD_US))
}

/// Where on the timeline each event is that is no window. Where UTC was set back an instant comes twice: events come in order, and windows after
/// their end, so it is the first one that is not before what came before it.
fn on_timeline(outing: &Outing) -> Vec<(u64, &EventData)> {
    let mut last_us = 0;
    let mut place = |at: Instant, is_window: bool| {
        let late_us = if is_window { 10 * PERIOD_US + slow_us(outing, last_us) } else { 5 * PERIOD_US };
        let times = times(&outing.world, at, at.plus(1));
        let mut candidates = times.pieces().iter().map(|(from, _)| *from);
        let next = candidates.clone().find(|from| from + late_us >= last_us).or(candidates.next_back());
        let at_us = next.unwrap_or(last_us);
        last_us = at_us.max(last_us);
        at_us
    };
    let mut placed = Vec::new();
    for event in &outing.output.events {
        match &event.data {
            EventData::TelemetryWindow(window) => drop(place(window.end.get().plus(-1), true)),
            data => placed.push((place(event.time, false), data)),
        }
    }
    placed
}

fn states(outing: &Outing, events: &[(u64, &EventData)], findings: &mut Findings) {
    let mut said: BTreeMap<(usize, Option<Slices>), Said<'_>> = BTreeMap::new();
    for (at_us, data) in events {
        let EventData::UnitState(state) = data else { continue };
        let slices = state.placement.map(|it| (i64::from(it.start.get()), i64::from(it.size.get())));
        said.entry((outing.gpu(&state.gpu), slices)).or_default().push((*at_us, state));
    }
    for ((gpu, slices), said) in &said {
        let mut is_fault = false;
        for (at_us, state) in said {
            let is_news = if is_fault {
                state.cause.is_some() || state.state == State::Ok
            } else {
                state.state == State::Fault
            };
            findings.check(is_news, || {
                format!("GPU {gpu} {slices:?} at {at_us} us: {:?} after {is_fault}", state.state)
            });
            is_fault = state.state == State::Fault;
            findings.check(!is_fault || has_cause(outing, *gpu, *at_us), || {
                format!("GPU {gpu} {slices:?} at {at_us} us: a fault without a cause: {:?}", state.detail)
            });
            findings.case("faults said", u64::from(is_fault));
        }
    }
    for gpu in 0..outing.world.gpu_count() {
        let said = said.get(&(gpu, None)).map_or(&[][..], |said| said);
        for (from, to) in broken(&outing.world, gpu).pieces() {
            break_is_told(outing, gpu, (*from, (*to).min(outing.until_us)), said, findings);
        }
    }
}

/// Something on the timeline, or a failure that was injected, that a fault may be said for.
fn has_cause(outing: &Outing, gpu: usize, at_us: u64) -> bool {
    let before = Spans::one(at_us.saturating_sub(12 * PERIOD_US + slow_us(outing, at_us)), at_us + 1);
    let is_broken = broken(&outing.world, gpu).meets(&before);
    let happened = outing.world.scenario().timeline.iter().any(|step| {
        let lately = before.meets(&Spans::one(step.at.0, step.at.0 + 1));
        match &step.action {
            Action::Xid(it) => lately && it.gpu == gpu,
            Action::DoubleBit(it) => lately && it.gpu == gpu,
            Action::SetGpu(it) => lately && it.gpu == gpu,
            Action::Fail(it) => {
                step.at.0 <= at_us && it.gpu.is_none_or(|of| of == gpu) && matches!(it.returns.0, 15 | 16)
            }
            _ => false,
        }
    });
    is_broken || happened
}

/// A GPU that breaks is in fault a period later, and no longer once it is back.
fn break_is_told(
    outing: &Outing,
    gpu: usize,
    (from, to): (u64, u64),
    said: &[(u64, &UnitState)],
    findings: &mut Findings,
) {
    let lag_us = slow_us(outing, from);
    let state_at =
        |at_us: u64| said.iter().rev().find(|(said_us, _)| *said_us <= at_us).map(|(_, state)| state.state);
    let reloads =
        outing.world.scenario().timeline.iter().filter(|step| matches!(step.action, Action::ReloadDriver(_)));
    let reloads = Spans::new(reloads.map(|step| (step.at.0, step.at.0 + 1)).collect());
    let gaps = Spans::new(outing.world.driver_gaps().collect());
    let hidden = revoked(&outing.world, gpu).or(&gaps).or(&reloads);
    let seen = Spans::one(from, to).minus(&hidden.widened(0, 60 * PERIOD_US));
    let just_after = Spans::one(from, from + lag_us);
    if seen.length_us() > lag_us
        && to > from + lag_us
        && !hidden.widened(0, 65 * PERIOD_US).meets(&just_after)
    {
        findings.check(state_at(from + lag_us) == Some(State::Fault), || {
            format!("GPU {gpu} broke at {from} us, and no fault was said by {}", from + lag_us)
        });
        findings.case("GPUs that broke", 1);
    }
    // Errors of hardware besides are over when the driver has said for fifteen seconds that it wants nothing; it is asked every ten. One that could not be
    // opened when the library was loaded is tried again within a minute.
    let is_loaded_anew = hidden.meets(&Spans::one(0, to)) || outing.ended.len() > 1;
    let late_us = if is_loaded_anew { 75 * PERIOD_US } else { 40 * PERIOD_US } + lag_us;
    let back = Spans::one(to, to + late_us);
    let is_calm = !back.meets(&hidden.or(&broken(&outing.world, gpu).minus(&Spans::one(from, to))));
    if is_calm && !has_other_cause(outing, gpu, &back) && to + late_us < outing.until_us {
        let at_us = to + late_us;
        findings.check(state_at(at_us) != Some(State::Fault), || {
            format!("GPU {gpu} came back at {to} us, and is in fault at {at_us} still")
        });
    }
}

fn has_other_cause(outing: &Outing, gpu: usize, within: &Spans) -> bool {
    outing.world.scenario().timeline.iter().any(|step| match &step.action {
        Action::Xid(it) => it.gpu == gpu && within.meets(&Spans::one(step.at.0, step.at.0 + 1)),
        Action::DoubleBit(it) => it.gpu == gpu && within.meets(&Spans::one(step.at.0, step.at.0 + 1)),
        Action::Fail(it) => it.gpu.is_none_or(|of| of == gpu),
        _ => false,
    })
}

fn inventories(outing: &Outing, events: &[(u64, &EventData)], findings: &mut Findings) {
    let mut last_us = 0;
    for (at_us, data) in events {
        let EventData::NodeInventory(inventory) = data else { continue };
        let at_us = *at_us;
        for gpu in &inventory.gpus {
            layout(outing, at_us, gpu, findings);
        }
        let is_late = at_us.saturating_sub(last_us) > 61 * PERIOD_US + slow_us(outing, at_us);
        let is_excused = outing.ended.len() > 1
            || outing.world.has_clock_jumps()
            || outing.world.driver_gaps().next().is_some();
        findings.check(!is_late || is_excused, || format!("no inventory from {last_us} to {at_us} us"));
        last_us = at_us;
    }
    findings.check(outing.output.inventories().next().is_some(), || "no inventory at all".to_owned());
}

/// The inventory shows instances that were there a moment ago, and all that have been there for a while.
fn layout(outing: &Outing, at_us: u64, entry: &InventoryGpu, findings: &mut Findings) {
    let world = &outing.world;
    let gpu = outing.gpu(&entry.uuid);
    let lag_us = slow_us(outing, at_us);
    let lately = Spans::one(at_us.saturating_sub(lag_us), at_us + 1);
    let hidden = disturbed(world, gpu).or(&gone(world, gpu)).or(&revoked(world, gpu));
    if lately.widened(60 * PERIOD_US, 0).meets(&hidden) {
        return;
    }
    let mut shown = Vec::new();
    for instance in &entry.instances {
        let slices = instance.placement.map(|it| (u32::from(it.start.get()), u32::from(it.size.get())));
        let is_true = slices.is_none() || life(world, Place { gpu, slices }).meets(&lately);
        findings.check(is_true, || format!("the inventory at {at_us} us shows {slices:?} of GPU {gpu}"));
        shown.push(slices);
    }
    for place in places(world).into_iter().filter(|place| place.gpu == gpu && place.slices.is_some()) {
        let is_there = life(world, place).contains(&lately);
        let may_place = world.scenario().privilege == Privilege::Root;
        findings.check(!is_there || !may_place || shown.contains(&place.slices), || {
            format!("the inventory at {at_us} us lacks {:?} of GPU {gpu}", place.slices)
        });
    }
}

/// A job or a pod is placed on what one of its processes has open.
fn placement(outing: &Outing, at_us: u64, placed: &AllocationPlaced, findings: &mut Findings) {
    let Some(runtime) = &placed.runtime else { return };
    let marks: Vec<String> = runtime
        .slurm_job
        .iter()
        .map(|job| format!("job_{job}/"))
        .chain(
            runtime
                .pod_uid
                .iter()
                .flat_map(|uid| [format!("pod{uid}"), format!("pod{}", uid.as_str().replace('-', "_"))]),
        )
        .collect();
    // Each says all that the holder had up to then (A-20: they add up).
    let lately = Spans::one(0, at_us + PERIOD_US);
    for unit in &placed.units {
        let is_true = outing.world.contexts().iter().any(|context| {
            let process = outing.world.process(context.process);
            let is_its = marks.iter().any(|mark| process.cgroup.contains(mark));
            is_its
                && is_on(outing, unit, place_of(&outing.world, context))
                && lately.meets(&Spans::one(context.from_us, context.gone_us))
        });
        findings.check(is_true, || {
            format!("{marks:?} is placed on {unit:?} at {at_us} us, which it did not hold")
        });
    }
}

fn is_on(outing: &Outing, unit: &PlacedUnit, place: Place) -> bool {
    let slices = unit
        .mig
        .as_ref()
        .and_then(|mig| mig.placement)
        .map(|it| (u32::from(it.start.get()), u32::from(it.size.get())));
    outing.gpu(&unit.gpu) == place.gpu
        && (unit.mig.is_some() == place.slices.is_some())
        && (slices.is_none() || slices == place.slices)
}
