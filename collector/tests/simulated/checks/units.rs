//! Readings of GPUs and MIG instances.

mod stretch;

use super::{Findings, PERIOD_US, Slot, count, label, place, plain, reading_us, seen_gone, slots, word};
use crate::node::Outing;
use crate::oracle::{
    Place, Spans, busy, disturbed, gone, life, lives, memory, memory_moves, places, revoked,
};
use gpuledger_nvml_sim::scenario::Privilege;
use gpuledger_wire::bodies::UnitReading;
use std::collections::BTreeMap;
use stretch::{Stretch, moved_over};

const MIB: u64 = 1 << 20;
/// What is seen once is held for two periods at most.
const HELD_US: u64 = 2 * PERIOD_US;

pub(super) fn check(outing: &Outing, findings: &mut Findings) {
    let mut stretches: BTreeMap<Place, Stretch> = BTreeMap::new();
    for (slot, window) in slots(outing) {
        let mut rows: BTreeMap<Place, Vec<&UnitReading>> = BTreeMap::new();
        for unit in &window.units {
            rows.entry(place(outing, &unit.gpu, unit.placement)).or_default().push(unit);
        }
        for (place, rows) in &rows {
            let unit = Unit { outing, slot: &slot, place: *place, rows };
            unit.check(findings);
            stretches.entry(*place).or_default().add(&unit, findings);
        }
        for (place, stretch) in stretches.iter_mut().filter(|(place, _)| !rows.contains_key(place)) {
            stretch.end(outing, *place, findings);
        }
        complete(outing, &slot, &rows, findings);
    }
    for (place, stretch) in &mut stretches {
        stretch.end(outing, *place, findings);
    }
    count_cases(outing, findings);
}

/// All rows of one unit in one window: more than one where it came and went.
struct Unit<'a> {
    outing: &'a Outing,
    slot: &'a Slot,
    place: Place,
    rows: &'a [&'a UnitReading],
}

impl Unit<'_> {
    fn name(&self) -> String {
        format!("{}, GPU {} {:?}", self.slot.name, self.place.gpu, self.place.slices)
    }

    /// What of the window it existed.
    fn lived(&self) -> Spans {
        self.slot.times.and(&life(&self.outing.world, self.place))
    }

    /// What a reading covers; nothing where it is absent.
    fn covered_us(&self, reading: &str) -> u64 {
        self.rows.iter().filter(|row| has(row, reading)).map(|row| count(row.covered_us_of(reading))).sum()
    }

    fn is_disturbed(&self) -> bool {
        let near = self.slot.times.widened(5 * PERIOD_US, 5 * PERIOD_US);
        near.meets(&disturbed(&self.outing.world, self.place.gpu))
    }

    fn check(&self, findings: &mut Findings) {
        let name = self.name();
        let gpu_rows = if self.place.slices.is_none() { 1 } else { usize::MAX };
        findings
            .check(self.rows.len() <= gpu_rows, || format!("{name}: {} rows of one GPU", self.rows.len()));
        let is_skipped = self.slot.times.is_empty();
        findings.check(is_skipped || !self.lived().is_empty(), || format!("{name}: there was no such unit"));
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
            findings.check(row.memory_byte_us.is_some() == row.memory_bytes_max.is_some(), || {
                format!("{name}: a sum without its most")
            });
            if self.place.slices.is_some() {
                findings.check(row.energy_mj.is_none() && word(&row.quality, "energy_mj").is_none(), || {
                    format!("{name}: energy of an instance")
                });
            } else {
                label(findings, &name, "energy_mj", word(&row.quality, "energy_mj"), row.energy_mj.is_some());
            }
        }
        self.coverage(findings);
        self.sm(findings);
        self.memory(findings);
        self.absence(findings);
    }

    fn coverage(&self, findings: &mut Findings) {
        let lived = self.lived();
        let seemed = self.lives_apart().iter().fold(Spans::default(), |all, life| all.or(life));
        let seemed = self.slot.times.and(if self.place.slices.is_some() { &seemed } else { &lived });
        let readable_us =
            seemed.minus(&seen_gone(self.outing, self.place.gpu)).length_us() + self.slot.set_us(self.outing);
        for reading in ["sm_active_us", "memory_byte_us"] {
            let covered_us = self.covered_us(reading);
            findings.check(covered_us <= readable_us, || {
                format!(
                    "{}: {reading} covers {covered_us} us of {readable_us} in which it was there to be read",
                    self.name()
                )
            });
            for row in self.rows.iter().filter(|row| has(row, reading)) {
                self.row_coverage(row, reading, findings);
            }
        }
        if self.slot.is_quiet(self.outing, self.place.gpu) && !self.slot.is_last {
            for reading in ["sm_active_us", "memory_byte_us"] {
                let is_there = self.rows.iter().any(|row| has(row, reading));
                let lives_on = self.unseen_edges_us() == 0;
                findings.check(is_there || !lives_on || !self.can_be_read(reading), || {
                    format!("{}: {reading} is absent, and nothing stood in the way", self.name())
                });
                if !is_there {
                    continue;
                }
                let covered_us = self.covered_us(reading);
                findings.check(covered_us + self.unseen_edges_us() >= lived.length_us(), || {
                    format!(
                        "{}: {reading} covers {covered_us} of {} us, and nothing stood in the way",
                        self.name(),
                        lived.length_us()
                    )
                });
            }
        }
    }

    /// Whether the device has such a reading at all.
    fn can_be_read(&self, reading: &str) -> bool {
        let (world, gpu) = (&self.outing.world, self.place.gpu);
        let answers = |call: &str| world.standing_refusal(call, Some(gpu)).is_none();
        let is_mig = world.state(gpu, self.slot.times.pieces()[0].0).is_mig_on();
        let is_device = self.place.slices.is_none();
        if reading == "memory_byte_us" {
            let may_ask = !is_device || !is_mig || world.scenario().privilege == Privilege::Root;
            return may_ask && (answers("nvmlDeviceGetMemoryInfo_v2") || answers("nvmlDeviceGetMemoryInfo"));
        }
        let has_gpm = world.model(gpu).has_gpm() && answers("nvmlGpmQueryDeviceSupport");
        has_gpm || (is_device && !is_mig)
    }

    fn row_coverage(&self, row: &UnitReading, reading: &str, findings: &mut Findings) {
        let row_us = count(row.covered_us_of(reading));
        let longest = self.lives_apart().iter().map(|life| self.slot.times.and(life).length_us()).max();
        let longest_us = longest.unwrap_or(self.slot.length_us) + self.slot.set_us(self.outing);
        findings.check(row_us <= longest_us, || {
            format!("{}: {reading} covers {row_us} us in one row, longer than any of its lives", self.name())
        });
        findings.check(count(row.covered_us) <= row_us, || {
            format!("{}: all readings cover {} us, {reading} only {row_us}", self.name(), row.covered_us)
        });
    }

    /// Lives that a collector can tell apart. One that ends, and begins again under the same ids and UUID, in the middle of a cycle looks the same before
    /// and after it; the driver's event of it comes with the next.
    fn lives_apart(&self) -> Vec<Spans> {
        let lives = lives(&self.outing.world, self.place).into_iter().map(|(from, to)| Spans::one(from, to));
        let blink_us =
            if self.is_disturbed() { reading_us(self.outing, &self.slot.times) - PERIOD_US } else { 0 };
        let mut apart: Vec<Spans> = Vec::new();
        for life in lives {
            match apart.last_mut() {
                Some(last) if last.widened(0, blink_us).meets(&life) => {
                    *last = Spans::one(last.pieces()[0].0, life.pieces()[0].1);
                }
                _ => apart.push(life),
            }
        }
        apart
    }

    /// A new instance is seen a period later at most, and its last reading is a period before its end.
    fn unseen_edges_us(&self) -> u64 {
        let lived = self.lived();
        let is_inner = |at: u64| at != 0 && lived.pieces().iter().any(|(from, to)| *from <= at && at <= *to);
        let lives = lives(&self.outing.world, self.place);
        let cut = lives.iter().filter(|(from, to)| is_inner(*from) || is_inner(*to)).count();
        2 * PERIOD_US * u64::try_from(cut).unwrap_or(0)
    }

    fn sm(&self, findings: &mut Findings) {
        let values: Vec<u64> = self.rows.iter().filter_map(|row| row.sm_active_us.map(count)).collect();
        if values.is_empty() {
            return;
        }
        let told = u128::from(values.iter().sum::<u64>());
        let covered_us = self.covered_us("sm_active_us");
        let lived = self.lived();
        let truth = busy(&self.outing.world, self.place, &lived) / 1_000_000;
        let uncovered_us = u128::from(lived.length_us().saturating_sub(covered_us));
        let weakest = self
            .rows
            .iter()
            .map(|row| plain(word(&row.quality, "sm_active_us")))
            .find(|label| *label != "interval_mean");
        let tolerance = match weakest {
            None => self.mean_tolerance(truth),
            Some("driver_sampled_device") => {
                u128::from(lived.length_us()) / 200 + u128::from(PERIOD_US) / 3 + self.edge_slack()
            }
            // A gauge holds the last sixth of a second for a second.
            Some(_) => u128::from(lived.length_us()),
        };
        let tolerance = tolerance + u128::from(self.slot.set_us(self.outing));
        findings.check(told <= truth + tolerance, || {
            format!(
                "{}: busy for {told} us by {weakest:?}, truly {truth} us, tolerance {tolerance}",
                self.name()
            )
        });
        findings.check(told + tolerance + uncovered_us >= truth, || {
            format!("{}: busy for {told} us by {weakest:?} in {covered_us} us, truly {truth} us, tolerance {tolerance}", self.name())
        });
        findings.check(told <= u128::from(covered_us), || {
            format!("{}: busy for {told} us of {covered_us}", self.name())
        });
    }

    fn mean_tolerance(&self, truth: u128) -> u128 {
        let rounding = 2
            * (u128::from(self.slot.length_us / PERIOD_US) + 2)
            * u128::try_from(self.rows.len()).unwrap_or(1);
        if self.is_disturbed() { rounding + truth / 200 + self.edge_slack() } else { rounding }
    }

    fn edge_slack(&self) -> u128 {
        let edges = self.slot.times.pieces().iter().flat_map(|(from, to)| [*from, *to]);
        if self.is_disturbed() {
            edges.map(|edge| moved_over(self.outing, self.place, edge)).sum()
        } else {
            0
        }
    }

    fn memory(&self, findings: &mut Findings) {
        let values: Vec<&&UnitReading> =
            self.rows.iter().filter(|row| row.memory_byte_us.is_some()).collect();
        if values.is_empty() {
            return;
        }
        let told: u128 = values.iter().filter_map(|row| u128::try_from(row.memory_byte_us?.get()).ok()).sum();
        let most_told = values.iter().filter_map(|row| row.memory_bytes_max.map(count)).max().unwrap_or(0);
        let covered_us = self.covered_us("memory_byte_us");
        let (world, lived) = (&self.outing.world, self.lived());
        let has_reserve = values.iter().any(|row| {
            word(&row.quality, "memory_byte_us").is_some_and(|label| label.as_str().contains("with_reserve"))
        });
        let reserve = if has_reserve && self.place.slices.is_none() {
            world.model(self.place.gpu).reserved_mib * MIB
        } else {
            0
        };
        let truth = memory(world, self.place, &lived) + u128::from(reserve) * u128::from(lived.length_us());
        let held_us = if self.is_disturbed() { HELD_US } else { PERIOD_US };
        let (moved, most) = memory_moves(world, self.place, &lived.widened(held_us, 0));
        let most = most + reserve;
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
        findings
            .check(most_told <= most, || format!("{}: {most_told} bytes at once, truly {most}", self.name()));
    }

    /// Of a device that is gone all the time nothing is read; and none of it is zero. Where access was revoked and is back, the driver's rings tell of
    /// the time between, and its energy counter too.
    fn absence(&self, findings: &mut Findings) {
        let world = &self.outing.world;
        let (gone, revoked) = (gone(world, self.place.gpu), revoked(world, self.place.gpu));
        let is_gone = gone.contains(&self.slot.times);
        let is_unseen = gone.or(&revoked).contains(&self.slot.times.widened(HELD_US, 0));
        for row in self.rows.iter().filter(|_| is_gone || is_unseen) {
            findings.check(row.memory_byte_us.is_none(), || {
                format!("{}: memory read while it could not be", self.name())
            });
            findings.check(!is_gone || row.sm_active_us.is_none(), || {
                format!("{}: read while it was gone", self.name())
            });
            let is_energy = row.energy_mj.is_some() && broken_throughout(self);
            findings.check(!is_energy, || format!("{}: energy of a device that is gone", self.name()));
            findings.case("windows of a GPU that could not be read", 1);
        }
    }
}

fn has(row: &UnitReading, reading: &str) -> bool {
    match reading {
        "sm_active_us" => row.sm_active_us.is_some(),
        _ => row.memory_byte_us.is_some(),
    }
}

fn broken_throughout(unit: &Unit<'_>) -> bool {
    let wide = unit.slot.times.widened(12 * PERIOD_US, 12 * PERIOD_US);
    crate::oracle::broken(&unit.outing.world, unit.place.gpu).contains(&wide)
}

/// Every unit that lived through a quiet window has a row.
fn complete(
    outing: &Outing,
    slot: &Slot,
    rows: &BTreeMap<Place, Vec<&UnitReading>>,
    findings: &mut Findings,
) {
    for place in places(&outing.world) {
        let may_place = place.slices.is_none() || outing.world.scenario().privilege == Privilege::Root;
        let lives = life(&outing.world, place).contains(&slot.times.widened(2 * PERIOD_US, 0));
        if may_place && lives && slot.is_quiet(outing, place.gpu) {
            findings.check(rows.contains_key(&place), || {
                format!("{}: GPU {} {:?} is missing", slot.name, place.gpu, place.slices)
            });
        }
    }
}

fn count_cases(outing: &Outing, findings: &mut Findings) {
    for place in places(&outing.world) {
        let lives = lives(&outing.world, place);
        let again = lives.windows(2).filter(|pair| pair[1].0 - pair[0].1 <= PERIOD_US).count();
        findings
            .case("an instance made again in its place within a period", u64::try_from(again).unwrap_or(0));
        findings.case("lives of instances", u64::try_from(lives.len()).unwrap_or(0));
    }
}
