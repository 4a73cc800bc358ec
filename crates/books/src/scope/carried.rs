//! What stands after the news in the table of reach, and the way from subjects to GPUs.

use super::News;
use super::follow::subject_of_scrub;
use super::places::{Places, runtime_subjects};
use super::reading::Reading;
use gpuledger_domain::fact::{Fact, FactBody, PlacedOf};
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::time::Instant;
use gpuledger_storage::reach::{OPEN, ReachRow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Reading<'_> {
    /// Subjects that a fact may change: what it names, and what a snapshot may end.
    pub(super) fn subjects_of(&self, fact: &Fact) -> Vec<String> {
        let mut subjects: Vec<String> =
            fact.body.gpus().into_iter().map(|gpu| format!("gpu:{gpu}")).collect();
        match &fact.body {
            FactBody::Inventory(inventory) => subjects.push(format!("node:{}", inventory.node)),
            FactBody::NodeDecommissioned(node) | FactBody::NodeAlive(node) => {
                subjects.push(format!("node:{node}"))
            }
            FactBody::Granted(grant) => subjects.push(format!("alloc:{}", grant.allocation)),
            FactBody::Placed(placed) => match &placed.of {
                PlacedOf::Allocation(allocation) => subjects.push(format!("alloc:{allocation}")),
                PlacedOf::Runtime(runtime) => subjects.extend(runtime_subjects(runtime)),
            },
            FactBody::AllocationState { allocation, .. }
            | FactBody::Transferred { allocation, .. }
            | FactBody::Released { allocation, .. } => subjects.push(format!("alloc:{allocation}")),
            FactBody::Snapshot { allocations, .. } => {
                subjects.extend(allocations.iter().map(|allocation| format!("alloc:{allocation}")));
                subjects.extend(self.open_of.get(&fact.source).into_iter().flatten().cloned());
            }
            FactBody::Work(work) => subjects.push(format!("pool:{}", work.pool)),
            FactBody::UnitState(_)
            | FactBody::ScrubStarted { .. }
            | FactBody::ScrubFinished { .. }
            | FactBody::QuarantineReleased { .. }
            | FactBody::GpuDecommissioned(_)
            | FactBody::Other => {}
        }
        subjects
    }

    /// GPUs that subjects lead to, each with the earliest of their instants. Allocations lead to their GPUs, and through jobs and pods to other
    /// allocations; GPUs lead nowhere.
    pub(super) fn gpus_from(&self, times: BTreeMap<String, Instant>) -> Vec<(GpuId, Instant)> {
        let mut times = times;
        let mut queue: Vec<String> = times.keys().cloned().collect();
        while let Some(subject) = queue.pop() {
            let Some(at) = times.get(&subject).copied() else { continue };
            for next in self.led_to(&subject) {
                if times.get(&next).is_none_or(|standing| at < *standing) {
                    times.insert(next.clone(), at);
                    queue.push(next);
                }
            }
        }
        let gpu = |(subject, at): (String, Instant)| Some((GpuId::new(subject.strip_prefix("gpu:")?), at));
        times.into_iter().filter_map(gpu).collect()
    }

    fn led_to(&self, subject: &str) -> Vec<String> {
        let gpu = |gpu: &GpuId| format!("gpu:{gpu}");
        match subject.split_once(':') {
            Some(("alloc", id)) => {
                let runtimes = self.places.allocations.get(id).into_iter().flat_map(|named| &named.runtimes);
                runtimes.cloned().chain(self.gpus_of(id).iter().map(gpu)).collect()
            }
            Some(("job" | "pod", _)) => {
                let allocations = self.places.of_runtime(subject).map(|id| format!("alloc:{id}"));
                allocations.chain(self.places.gpus_of_runtime(subject).map(gpu)).collect()
            }
            Some(("pool", pool)) => {
                let members = self.places.allocations.iter().filter(|(_, named)| named.pools.contains(pool));
                members.map(|(id, _)| format!("alloc:{id}")).collect()
            }
            // All GPUs around lie on the nodes that were asked for.
            Some(("node", node)) => self.gpus_on(node).map(gpu).collect(),
            _ => Vec::new(),
        }
    }

    /// Rows of every allocation and scrub that the news are about.
    pub(super) fn reach(&self, news: &News) -> BTreeMap<String, Vec<ReachRow>> {
        let mut subjects = BTreeSet::new();
        let mut rows = BTreeMap::new();
        for fact in news.facts.values() {
            match &fact.body {
                FactBody::Snapshot { .. } => {}
                FactBody::ScrubStarted { scrub, gpu, .. } | FactBody::ScrubFinished { scrub, gpu, .. } => {
                    let subject = subject_of_scrub(gpu, scrub);
                    rows.insert(subject.clone(), self.reach_of_scrub(&subject));
                }
                _ => subjects.extend(self.subjects_of(fact)),
            }
        }
        let mut allocations = BTreeSet::new();
        for subject in &subjects {
            match subject.split_once(':') {
                Some(("alloc", id)) => drop(allocations.insert(id.to_owned())),
                Some(("job" | "pod", _)) => allocations.extend(self.places.of_runtime(subject).cloned()),
                _ => {}
            }
        }
        for id in allocations {
            rows.insert(format!("alloc:{id}"), self.reach_of_allocation(&id));
        }
        rows
    }

    /// Rows of one allocation, which was read whole.
    pub(super) fn reach_of_allocation(&self, id: &str) -> Vec<ReachRow> {
        let listed = self.narrowed.values().filter_map(|fact| match &fact.body {
            FactBody::Snapshot { allocations, .. } if allocations.iter().any(|a| a.as_str() == id) => {
                Some(fact.at)
            }
            _ => None,
        });
        let listed = listed.map(|at| (at, at)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        rows_of_allocation(&self.places, id, listed, self.now())
    }

    fn reach_of_scrub(&self, subject: &str) -> Vec<ReachRow> {
        let mut scrubs = Scrubs::default();
        self.read.values().for_each(|fact| scrubs.note(fact, self.now()));
        scrubs.rows().into_iter().filter(|row| row.subject == subject).collect()
    }
}

/// Rows of one allocation; `listed`: the first and the last snapshot that name it.
fn rows_of_allocation(
    places: &Places,
    id: &str,
    listed: Option<(Instant, Instant)>,
    now: Instant,
) -> Vec<ReachRow> {
    let row =
        |gpu: String, source: String, until_us: i64, first: Option<Instant>, pools: &[String]| ReachRow {
            gpu,
            subject: format!("alloc:{id}"),
            source,
            until_us,
            first_us: first.unwrap_or(now).as_micros(),
            pools: pools.to_vec(),
        };
    let granted = places.allocations.get(id).and_then(|named| Some((named, named.sources.first()?)));
    let Some((named, source)) = granted else {
        let first = listed.map(|(first, _)| first);
        return first.iter().map(|_| row(String::new(), String::new(), OPEN, first, &[])).collect();
    };
    let first = listed.map(|(first, _)| first).into_iter().chain(named.first).min();
    let until_us = match listed.map(|(_, last)| last).max(named.last) {
        Some(last) if named.is_released(now) => last.as_micros(),
        _ => OPEN,
    };
    let mut gpus: BTreeSet<String> = places.gpus_of(id).iter().map(ToString::to_string).collect();
    if gpus.is_empty() || named.unplaced {
        gpus.insert(String::new());
    }
    let pools: Vec<String> = named.pools.iter().cloned().collect();
    gpus.into_iter().map(|gpu| row(gpu, source.to_string(), until_us, first, &pools)).collect()
}

/// Scrubs by what they are found by and GPU: whether they ended, and what was said last.
#[derive(Default)]
struct Scrubs(BTreeMap<(String, GpuId), (bool, Instant)>);

impl Scrubs {
    fn note(&mut self, fact: &Fact, now: Instant) {
        let (scrub, gpu, ended) = match &fact.body {
            FactBody::ScrubStarted { scrub, gpu, .. } => (scrub, gpu, false),
            FactBody::ScrubFinished { scrub, gpu, .. } => (scrub, gpu, fact.at <= now),
            _ => return,
        };
        let key = (subject_of_scrub(gpu, scrub), gpu.clone());
        let standing = self.0.entry(key).or_insert((false, fact.at));
        *standing = (standing.0 || ended, fact.at.max(standing.1));
    }

    fn rows(self) -> Vec<ReachRow> {
        let row = |((subject, gpu), (ended, last)): ((String, GpuId), (bool, Instant))| ReachRow {
            gpu: gpu.to_string(),
            subject,
            source: String::new(),
            until_us: if ended { last.as_micros() } else { OPEN },
            first_us: last.as_micros(),
            pools: Vec::new(),
        };
        self.0.into_iter().map(row).collect()
    }
}

/// Rows of all allocations and scrubs, from all facts.
pub fn reach_of_all(facts: &[Arc<Fact>], now: Instant) -> Vec<ReachRow> {
    let (mut places, mut scrubs) = (Places::default(), Scrubs::default());
    let mut listed: BTreeMap<&str, (Instant, Instant)> = BTreeMap::new();
    for fact in facts {
        places.note(fact);
        scrubs.note(fact, now);
        if let FactBody::Snapshot { allocations, .. } = &fact.body {
            for allocation in allocations {
                let times = listed.entry(allocation.as_str()).or_insert((fact.at, fact.at));
                *times = (fact.at.min(times.0), fact.at.max(times.1));
            }
        }
    }
    let mut rows = scrubs.rows();
    let ids: BTreeSet<&str> =
        places.allocations.keys().map(String::as_str).chain(listed.keys().copied()).collect();
    for id in ids {
        rows.extend(rows_of_allocation(&places, id, listed.get(id).copied(), now));
    }
    rows
}
