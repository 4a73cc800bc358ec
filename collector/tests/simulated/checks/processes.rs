//! Readings of processes.

mod complete;
mod whole;

use super::{Findings, PERIOD_US, Slot, count, label, place, plain, reading_us, seen_gone, slots, word};
use crate::node::Outing;
use crate::oracle::{
    Place, Spans, Who, busy, busy_of, contexts, disturbed, listed, memory_moves_of, memory_of,
    memory_unknown_of, revoked,
};
use gpuledger_nvml_sim::scenario::{Leaves, Namespace};
use gpuledger_nvml_sim::world::Context;
use gpuledger_wire::bodies::ProcessReading;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use whole::Whole;

/// What is seen once is held for two periods at most.
const HELD_US: u64 = 2 * PERIOD_US;
/// A question for the driver's samples goes back so far.
const RING_US: u64 = 10 * PERIOD_US;
/// The driver samples six times a second.
const SAMPLE_US: u64 = PERIOD_US / 6 + 1;

pub(super) fn check(outing: &Outing, findings: &mut Findings) {
    let mut wholes: BTreeMap<Who, Whole> = BTreeMap::new();
    for (slot, window) in slots(outing) {
        let mut rows: BTreeMap<Who, Vec<&ProcessReading>> = BTreeMap::new();
        for row in &window.processes {
            rows.entry(who(outing, row)).or_default().push(row);
        }
        for (who, rows) in &rows {
            let contexts = contexts(&outing.world, *who);
            let process = Process { outing, slot: &slot, who: *who, rows, contexts: &contexts };
            process.check(findings);
            wholes.entry(*who).or_default().add(&process);
        }
        sums(outing, &slot, &rows, findings);
        complete::check(outing, &slot, &rows, findings);
    }
    for (who, whole) in &wholes {
        whole.check(outing, *who, findings);
    }
    count_cases(outing, findings);
}

fn who(outing: &Outing, row: &ProcessReading) -> Who {
    let pid = u32::try_from(row.pid.get()).unwrap_or(u32::MAX);
    Who { place: place(outing, &row.gpu, row.placement), pid, started_us: row.started_at.get().as_micros() }
}

/// All rows of one process on one unit in one window: more than one where the unit came and went.
struct Process<'a> {
    outing: &'a Outing,
    slot: &'a Slot,
    who: Who,
    rows: &'a [&'a ProcessReading],
    contexts: &'a [(usize, &'a Context)],
}

impl Process<'_> {
    fn name(&self) -> String {
        let Who { place, pid, .. } = self.who;
        format!("{}, PID {pid} on GPU {} {:?}", self.slot.name, place.gpu, place.slices)
    }

    fn lived(&self) -> Spans {
        self.slot.times.and(&listed(self.contexts))
    }

    fn is_disturbed(&self) -> bool {
        self.slot
            .times
            .widened(5 * PERIOD_US, 5 * PERIOD_US)
            .meets(&disturbed(&self.outing.world, self.who.place.gpu))
    }

    /// How far the last look may lie back: a period, or what it is held for where one may have failed.
    fn held_us(&self) -> u64 {
        if self.is_disturbed() { HELD_US } else { PERIOD_US }
    }

    /// What a reading covers; nothing where it is absent.
    fn covered_us(&self, reading: &str) -> u64 {
        self.rows.iter().filter(|row| has(row, reading)).map(|row| count(row.covered_us_of(reading))).sum()
    }

    fn check(&self, findings: &mut Findings) {
        let name = self.name();
        findings.check(!self.contexts.is_empty(), || {
            format!("{name}: there was no such process, started at {}", self.who.started_us)
        });
        if self.contexts.is_empty() {
            return;
        }
        let after_us =
            if self.is_disturbed() { RING_US.max(reading_us(self.outing, &self.slot.times)) } else { 0 };
        findings
            .check(self.slot.times.widened(self.held_us(), after_us).meets(&listed(self.contexts)), || {
                format!("{name}: it did not live then")
            });
        let world = &self.outing.world;
        let in_container = world.scenario().namespace == Namespace::Container;
        findings.check(!in_container, || format!("{name}: attributed from a container"));
        for row in self.rows {
            label(
                findings,
                &name,
                "sm_active_us",
                word(&row.quality, "sm_active_us"),
                row.sm_active_us.is_some(),
            );
            label(
                findings,
                &name,
                "memory_byte_us",
                word(&row.quality, "memory_byte_us"),
                row.memory_byte_us.is_some(),
            );
        }
        self.coverage(findings);
        self.sm(findings);
        self.memory(findings);
    }

    fn coverage(&self, findings: &mut Findings) {
        let readable_us = self.lived().minus(&seen_gone(self.outing, self.who.place.gpu)).length_us();
        let (_, unseen_us) = self.namesakes();
        let readable_us = readable_us + self.slot.set_us(self.outing) + unseen_us;
        for (reading, over_us) in
            [("sm_active_us", self.unseen_work_us()), ("memory_byte_us", self.unseen_end_us())]
        {
            let covered_us = self.covered_us(reading);
            findings.check(covered_us <= readable_us + over_us, || {
                format!("{}: {reading} covers {covered_us} us, lived and could be read for {readable_us}, tolerance {over_us}", self.name())
            });
            findings.check(covered_us <= self.slot.length_us, || {
                format!("{}: {reading} covers {covered_us} us", self.name())
            });
        }
    }

    /// Others under its number that came and went between two lists: rows of the driver name a number, and whoever has it before or after them gets
    /// theirs. How busy they were, and how much longer they make it seem to live.
    fn namesakes(&self) -> (u128, u64) {
        let world = &self.outing.world;
        let reading_us = reading_us(self.outing, &self.slot.times);
        let near = self.slot.times.widened(reading_us, reading_us);
        let others = world.contexts().iter().filter(|context| {
            let process = world.process(context.process);
            let is_other = process.started_us(world.boot_us()) != self.who.started_us;
            let is_unseen = context.gone_us - context.from_us <= reading_us;
            let life = Spans::one(context.from_us, context.gone_us);
            process.pid == self.who.pid
                && is_other
                && is_unseen
                && context.gpu == self.who.place.gpu
                && near.meets(&life)
        });
        others.fold((0, 0), |(busy, unseen_us), context| {
            let own = context.busy.between(context.from_us, context.gone_us) / 1_000_000;
            (busy + own, unseen_us + reading_us)
        })
    }

    /// What was seen of memory holds until the look that shows that the process is gone.
    fn unseen_end_us(&self) -> u64 {
        self.edges().1 * self.held_us()
    }

    /// Nobody saw the process begin and end, only that it was there at one look and not at another. Samples of the driver tell of all the time between
    /// two looks, so they cover it from the look without it, and to the end of the sample in which it ended. Means and counters cover nothing outside.
    fn unseen_work_us(&self) -> u64 {
        let labels: Vec<&str> =
            self.rows.iter().filter_map(|row| word(&row.quality, "sm_active_us")).map(Name::as_str).collect();
        let (begins, ends) = self.edges();
        // Where a list failed the look before lies further back: as far as the driver's samples reach.
        let reading_us = if self.is_disturbed() {
            RING_US.max(reading_us(self.outing, &self.slot.times))
        } else {
            PERIOD_US
        };
        let is_sampled =
            |label: &&str| label.starts_with("driver_sampled") || **label == *"derived_share(sampled)";
        if labels.iter().any(is_sampled) {
            begins * reading_us + ends * SAMPLE_US
        } else if (self.is_disturbed() || self.outing.world.has_clock_jumps())
            && labels.iter().any(|label| label.starts_with("driver_counter"))
        {
            // The driver's stamps of begin and end may be by a clock that was set since.
            (begins + ends) * self.held_us()
        } else {
            0
        }
    }

    /// How often it began and ended on its unit in the window, or so near that a reading over the edge of the window tells of both.
    fn edges(&self) -> (u64, u64) {
        let after_us =
            if self.is_disturbed() { RING_US.max(reading_us(self.outing, &self.slot.times)) } else { 0 };
        let near = self.slot.times.widened(self.held_us(), after_us + 1);
        let listed = listed(self.contexts);
        let count = |edges: Vec<u64>| {
            edges.iter().filter(|at| near.meets(&Spans::one(**at, at.saturating_add(1)))).count()
        };
        let begins = count(listed.pieces().iter().map(|(from, _)| *from).collect());
        let ends = count(listed.pieces().iter().map(|(_, to)| *to).collect());
        (u64::try_from(begins).unwrap_or(0), u64::try_from(ends).unwrap_or(0))
    }

    fn sm(&self, findings: &mut Findings) {
        let valued: Vec<&&ProcessReading> =
            self.rows.iter().filter(|row| row.sm_active_us.is_some()).collect();
        let told: u128 =
            valued.iter().filter_map(|row| row.sm_active_us).map(|us| u128::from(count(us))).sum();
        let covered_us = self.covered_us("sm_active_us");
        let Some(first) = valued.first() else { return };
        let (world, lived) = (&self.outing.world, self.lived());
        let truth = busy_of(self.contexts, &lived) / 1_000_000;
        let unit = busy(world, self.who.place, &lived) / 1_000_000;
        let uncovered = u128::from(lived.length_us().saturating_sub(covered_us));
        let label = word(&first.quality, "sm_active_us").map_or("", |label| label.as_str());
        let length = u128::from(lived.length_us());
        let edges = 2 * u128::from(if self.is_disturbed() {
            reading_us(self.outing, &self.slot.times)
        } else {
            PERIOD_US
        });
        let (most, tolerance, is_both_ways) = match label {
            "driver_sampled" | "derived_share(sampled)" => {
                (truth, length / 200 + self.near_load(edges), true)
            }
            "driver_sampled(scaled)" => (truth, length / 50 + self.near_load(edges), false),
            "derived_share(sole_process)" => (unit, length / 200 + self.near_load(edges), false),
            "derived_share(equal)" => (unit, length / 200 + edges, false),
            _ => (truth, truth / 200 + self.near_load(2 * u128::from(10 * PERIOD_US)), true),
        };
        let tolerance = tolerance + u128::from(self.slot.set_us(self.outing)) + self.namesakes().0;
        findings.check(told <= most + tolerance, || {
            format!(
                "{}: busy for {told} us by {label}, truly {truth}, its unit {unit}, tolerance {tolerance}",
                self.name()
            )
        });
        findings.check(!is_both_ways || told + tolerance + uncovered >= truth, || {
            format!(
                "{}: busy for {told} us by {label} in {covered_us}, truly {truth}, tolerance {tolerance}",
                self.name()
            )
        });
        findings.check(told <= u128::from(covered_us), || {
            format!("{}: busy for {told} us of {covered_us}", self.name())
        });
        findings.case(case_of(label), 1);
    }

    /// What a reading spread over an edge of the window, or of its life, may carry over it: nothing while its load is one and the same around them.
    fn near_load(&self, most_us: u128) -> u128 {
        let is_counter = plain(word(&self.rows[0].quality, "sm_active_us")) == "driver_counter";
        let reach_us = match (is_counter, self.is_disturbed()) {
            // Three of its readings may lie between two that are used.
            (true, true) => 31 * PERIOD_US,
            (true, false) => 11 * PERIOD_US,
            (false, true) => 11 * PERIOD_US + reading_us(self.outing, &self.slot.times).min(12 * PERIOD_US),
            (false, false) => 3 * PERIOD_US,
        };
        let lived = self.lived();
        let whole = self.slot.times.pieces().iter().filter(|_| lived.is_empty());
        let edges = lived.pieces().iter().chain(whole).flat_map(|(from, to)| [*from, *to]);
        edges.map(|edge| carried(self.contexts, edge, reach_us)).sum::<u128>().min(most_us)
    }

    fn memory(&self, findings: &mut Findings) {
        let valued: Vec<&&ProcessReading> =
            self.rows.iter().filter(|row| row.memory_byte_us.is_some()).collect();
        let (world, lived) = (&self.outing.world, self.lived());
        let gpu = self.who.place.gpu;
        let unknown = memory_unknown_of(world, gpu, self.contexts);
        let was_seen = self.slot.times.widened(self.held_us(), 0);
        if unknown.contains(&was_seen.and(&listed(self.contexts))) {
            findings.check(valued.is_empty(), || format!("{}: memory that NVML did not tell", self.name()));
        }
        if valued.is_empty() {
            return;
        }
        let told: u128 = valued.iter().filter_map(|row| u128::try_from(row.memory_byte_us?.get()).ok()).sum();
        let covered_us = self.covered_us("memory_byte_us");
        let truth = memory_of(self.contexts, &lived);
        // A list takes as long as its calls, and is held from its end on.
        let slow_us = reading_us(self.outing, &self.slot.times);
        let held_us = if self.is_disturbed() { PERIOD_US + slow_us } else { PERIOD_US };
        let (moved, most) = memory_moves_of(world, gpu, self.contexts, &self.slot.times.widened(held_us, 1));
        let tolerance =
            moved * u128::from(held_us) + u128::from(most) * u128::from(self.slot.set_us(self.outing));
        let uncovered = u128::from(lived.length_us().saturating_sub(covered_us)) * u128::from(most);
        findings.check(told <= truth + tolerance, || {
            format!("{}: {told} byte us, truly {truth}, tolerance {tolerance}", self.name())
        });
        findings.check(told + tolerance + uncovered >= truth, || {
            format!(
                "{}: {told} byte us in {covered_us} us, truly {truth}, tolerance {tolerance}",
                self.name()
            )
        });
    }
}

fn has(row: &ProcessReading, reading: &str) -> bool {
    match reading {
        "sm_active_us" => row.sm_active_us.is_some(),
        _ => row.memory_byte_us.is_some(),
    }
}

/// How much busy time of a process may have been carried over an instant by a reading of so long at most.
fn carried(contexts: &[(usize, &Context)], edge_us: u64, reach_us: u64) -> u128 {
    let step_us = PERIOD_US / 2;
    let busy = |from: u64, to: u64| busy_of(contexts, &Spans::one(from, to)) / 1_000_000;
    let mut worst = 0;
    for before in 1..=reach_us / step_us {
        let from = edge_us.saturating_sub(before * step_us);
        for after in 1..=(reach_us / step_us).saturating_sub(before) {
            let to = edge_us + after * step_us;
            let spread = busy(from, to) * u128::from(edge_us - from) / u128::from(to - from);
            worst = worst.max(spread.abs_diff(busy(from, edge_us)));
        }
    }
    worst + worst / 4
}

/// The parts of one unit are not more than the unit.
fn sums(outing: &Outing, slot: &Slot, rows: &BTreeMap<Who, Vec<&ProcessReading>>, findings: &mut Findings) {
    let mut told: BTreeMap<Place, (u128, u128)> = BTreeMap::new();
    for (who, rows) in rows {
        let sm: u128 = rows.iter().filter_map(|row| row.sm_active_us).map(|us| u128::from(count(us))).sum();
        let (sum, processes) = told.entry(who.place).or_default();
        *sum += sm;
        *processes += 1;
    }
    for (place, (sum, processes)) in told {
        let truth = busy(&outing.world, place, &slot.times) / 1_000_000;
        // Whole per cents of each, and a reading at each edge of the window.
        let tolerance = processes * u128::from(slot.length_us) / 200 + 2 * u128::from(PERIOD_US);
        findings.check(sum <= truth + tolerance, || {
            format!(
                "{}: processes of GPU {} {:?} were busy for {sum} us, the unit for {truth}",
                slot.name, place.gpu, place.slices
            )
        });
    }
}

fn case_of(label: &str) -> &'static str {
    match label {
        "driver_sampled" => "process windows by driver_sampled",
        "driver_counter" => "process windows by driver_counter",
        "driver_counter(shared_unverified)" => "process windows by driver_counter(shared_unverified)",
        "derived_share(sole_process)" => "process windows by derived_share(sole_process)",
        "derived_share(equal)" => "process windows by derived_share(equal)",
        "derived_share(sampled)" => "process windows by derived_share(sampled)",
        _ => "process windows by another label",
    }
}

fn count_cases(outing: &Outing, findings: &mut Findings) {
    let world = &outing.world;
    let mut lives: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for process in world.processes() {
        lives.entry(process.pid).or_default().push((process.from_us, process.until_us));
        let left = u64::from(process.reaped_us > process.until_us && process.leaves != Leaves::Nothing);
        findings.case("memory held by a dead process", left);
        findings.case("processes without an entry in /proc", u64::from(process.has_no_proc));
    }
    for lives in lives.values() {
        let fast = lives.windows(2).filter(|pair| pair[1].0.saturating_sub(pair[0].1) <= PERIOD_US).count();
        findings.case("a PID reused", u64::try_from(lives.len() - 1).unwrap_or(0));
        findings.case("a PID reused within a period", u64::try_from(fast).unwrap_or(0));
    }
    let short =
        world.contexts().iter().filter(|it| it.gone_us.saturating_sub(it.from_us) < PERIOD_US).count();
    findings.case("processes shorter than a period", u64::try_from(short).unwrap_or(0));
    let revoked = (0..world.gpu_count()).map(|gpu| revoked(world, gpu).pieces().len()).sum::<usize>();
    findings.case("GPUs to which access was revoked", u64::try_from(revoked).unwrap_or(0));
}
