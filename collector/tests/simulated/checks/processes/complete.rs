//! That nothing is missing where nothing stood in the way.

use super::has;
use crate::checks::{Findings, PERIOD_US, Slot, count};
use crate::node::Outing;
use crate::oracle::{Spans, Who, contexts, everybody, listed, memory_unknown_of};
use gpuledger_nvml_sim::scenario::{Action, Namespace, Privilege};
use gpuledger_nvml_sim::world::{Context, World};
use gpuledger_wire::bodies::ProcessReading;
use std::collections::BTreeMap;

/// Every process that lived through a quiet window has a row with its readings, and is covered but for its edges.
pub(super) fn check(
    outing: &Outing,
    slot: &Slot,
    rows: &BTreeMap<Who, Vec<&ProcessReading>>,
    findings: &mut Findings,
) {
    let world = &outing.world;
    if world.scenario().namespace == Namespace::Container {
        return;
    }
    for who in everybody(world).into_iter().filter(|who| slot.is_quiet(outing, who.place.gpu)) {
        let contexts = contexts(world, who);
        let works = working(outing, &contexts).minus(&shared(outing, who));
        let lived = slot.times.and(&works);
        let is_throughout = works.contains(&slot.times.widened(2 * PERIOD_US, 2 * PERIOD_US));
        let may_be_placed = who.place.slices.is_none() || world.scenario().privilege == Privilege::Root;
        if lived.is_empty() || !may_be_placed {
            continue;
        }
        let name =
            || format!("{}: PID {} on GPU {} {:?}", slot.name, who.pid, who.place.gpu, who.place.slices);
        let rows = rows.get(&who).map_or(&[][..], |rows| rows);
        findings.check(!is_throughout || !rows.is_empty(), || format!("{} is missing", name()));
        let unknown = memory_unknown_of(world, who.place.gpu, &contexts).widened(0, PERIOD_US);
        let edges_us = if is_throughout && !slot.is_last { 0 } else { 4 * PERIOD_US };
        for (reading, lost_us) in [("sm_active_us", 0), ("memory_byte_us", lived.and(&unknown).length_us())] {
            let with: Vec<_> = rows.iter().filter(|row| has(row, reading)).collect();
            let covered_us: u64 = with.iter().map(|row| count(row.covered_us_of(reading))).sum();
            let is_unaccounted = reading == "sm_active_us" && accounting(world, who.place.gpu).meets(&works);
            let is_shared = reading == "sm_active_us" && who.place.slices.is_some();
            let may_lack = !is_throughout || slot.is_last || lost_us > 0 || is_shared || is_unaccounted;
            findings.check(may_lack || !with.is_empty(), || format!("{}: {reading} is absent", name()));
            findings.check(with.is_empty() || covered_us + edges_us + lost_us >= lived.length_us(), || {
                format!(
                    "{}: {reading} covers {covered_us} of {} us, and nothing stood in the way",
                    name(),
                    lived.length_us()
                )
            });
        }
    }
}

/// When accounting of a GPU was cleared or switched: it knows no process that was there by then.
fn accounting(world: &World, gpu: usize) -> Spans {
    let steps = world.scenario().timeline.iter().filter(|step| match &step.action {
        Action::ClearAccounting(it) => it.gpu == gpu,
        Action::SetAccounting(it) => it.gpu == gpu,
        _ => false,
    });
    Spans::new(steps.map(|step| (step.at.0, step.at.0 + 1)).collect())
}

/// When other processes were in the same MIG instance: then nothing tells them apart.
fn shared(outing: &Outing, who: Who) -> Spans {
    let others =
        everybody(&outing.world).into_iter().filter(|other| *other != who && other.place == who.place);
    let lives = others
        .filter(|other| other.place.slices.is_some())
        .map(|other| listed(&contexts(&outing.world, other)));
    lives.fold(Spans::default(), |all, one| all.or(&one)).widened(PERIOD_US, 2 * PERIOD_US)
}

/// When processes were there, and neither dead nor without an entry in `/proc`.
fn working(outing: &Outing, contexts: &[(usize, &Context)]) -> Spans {
    let pieces = contexts
        .iter()
        .filter(|(_, context)| !context.is_hidden && !outing.world.process(context.process).has_no_proc);
    Spans::new(pieces.map(|(_, context)| (context.from_us, context.until_us)).collect())
}
