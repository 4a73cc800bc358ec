//! Floors: the full hours from which on GPUs are read.

use super::News;
use super::reading::Reading;
use gpuledger_domain::attribution::Changes;
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::time::{CELL_US, HOUR_US, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// No fact is as old; before it floors are not kept apart.
const ANCIENT: Instant = Instant::from_micros(0);

/// The last full hour before `at`, so that nothing differs at the floor itself: what stands there goes on over it.
pub fn floor_before(at: Instant) -> Instant {
    if at <= ANCIENT { Instant::MIN } else { at.plus(-1).floor(HOUR_US) }
}

/// Where the news lead to, each from the earliest time they speak of.
pub(super) fn first(reading: &Reading<'_>, news: &News) -> BTreeMap<GpuId, Instant> {
    let mut times: BTreeMap<String, Instant> = BTreeMap::new();
    let mut note = |subject: String, at: Instant| {
        let standing = times.entry(subject).or_insert(at);
        *standing = at.min(*standing);
    };
    for fact in news.facts.values() {
        let since = speaks_from(fact);
        for subject in reading.subjects_of(fact) {
            note(subject, since);
        }
    }
    let mut floors = BTreeMap::new();
    for (gpu, from) in reading.gpus_from(times) {
        lower_to(&mut floors, gpu, news.floor(from));
    }
    for (gpu, from) in &news.gpus {
        lower_to(&mut floors, gpu.clone(), news.floor(*from));
    }
    floors
}

/// The earliest instant a fact speaks of.
fn speaks_from(fact: &Fact) -> Instant {
    match &fact.body {
        FactBody::ScrubFinished { started_at, .. } => fact.at.min(*started_at),
        FactBody::Work(work) => fact.at.min(work.start.floor(CELL_US)),
        _ => fact.at,
    }
}

fn lower_to(floors: &mut BTreeMap<GpuId, Instant>, gpu: GpuId, to: Instant) -> bool {
    match floors.get_mut(&gpu) {
        Some(standing) if *standing <= to => false,
        Some(standing) => {
            *standing = to;
            true
        }
        None => {
            floors.insert(gpu, to);
            true
        }
    }
}

/// Lowers floors to where something differs, and adds GPUs that differ, and those of allocations that do: what is known of them must be all
/// there is. Whether anything was lowered or added.
pub(super) fn lower(
    floors: &mut BTreeMap<GpuId, Instant>,
    changes: &Changes,
    news: &News,
    reading: &Reading<'_>,
) -> bool {
    let mut lowered = false;
    for (gpu, at) in &changes.gpus {
        lowered |= lower_to(floors, gpu.clone(), news.floor(*at));
    }
    for allocation in &changes.moved {
        // Whatever names it proves now that the nodes of these GPUs lived then.
        let Some(first) = reading.first_named(allocation.as_str()) else { continue };
        for gpu in reading.gpus_of(allocation.as_str()) {
            lowered |= lower_to(floors, gpu, news.floor(first));
        }
    }
    for allocation in &changes.allocations {
        let gpus: BTreeSet<GpuId> = reading.gpus_of(allocation.as_str());
        let known = gpus.iter().filter_map(|gpu| floors.get(gpu)).min().copied();
        let floor = known.unwrap_or_else(|| news.floor(reading.now()));
        for gpu in gpus {
            if !floors.contains_key(&gpu) {
                lowered |= lower_to(floors, gpu, floor);
            }
        }
    }
    lowered
}
