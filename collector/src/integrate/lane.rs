//! The integration of one GPU.

mod memory;
mod process_time;
mod unit_time;

use super::accounts::Accounts;
use super::driver_time::DriverTime;
use super::energy::{Energy, Step};
use super::hold::Hold;
use super::ring::Ring;
use super::roster::Roster;
use super::rows::{Discard, Rows};
use super::{HELD_PERIODS, SAMPLE_US};
use crate::clock::{Jump, Stamp, Timescale};
use crate::cycle::Observation;
use crate::ladder::{Ladder, Quality, Want, Why};
use crate::window::{Book, Frame, Measure, Part, ProcessKey, Span, Subject, UnitKey};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_nvml::Absent;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;

/// How often the device is looked at, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Periods {
    /// Processes, memory and utilisation.
    pub(crate) sample_us: u64,
    /// Energy and accounting.
    pub(crate) slow_us: u64,
}

/// A time of a unit with its busy part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    unit: UnitKey,
    span: Span,
    /// In parts per million of a microsecond.
    amount: u128,
    quality: Quality,
}

/// Everything that is remembered of one GPU between two looks.
#[derive(Clone, Debug)]
pub struct Integrator {
    periods: Periods,
    scale: Timescale,
    /// Nothing is told of the time before: UTC was set, or the driver was loaded anew.
    floor_us: u64,
    /// The device did not answer in the last cycle: it was lost, or wanted a reset.
    was_gone: bool,
    time: DriverTime,
    book: Book,
    roster: Roster,
    unit_memory: BTreeMap<UnitKey, Hold<(u64, Quality)>>,
    process_memory: BTreeMap<ProcessKey, Hold<u64>>,
    gauge: Option<Hold<u32>>,
    ring: Ring,
    /// The newest sample of the device's ring, as the driver stamped it.
    newest_stamp_us: u64,
    rows: Rows,
    accounts: Accounts,
    energy: Energy,
}

impl Integrator {
    /// Begins with a stamp: nothing is told of the time before.
    pub(crate) fn new(gpu: Name, frame: Frame, periods: Periods, began: Stamp) -> Self {
        Self {
            periods,
            scale: Timescale::at(began),
            floor_us: began.monotonic_us,
            was_gone: false,
            time: DriverTime::default(),
            book: Book::new(gpu, frame),
            roster: Roster::default(),
            unit_memory: BTreeMap::new(),
            process_memory: BTreeMap::new(),
            gauge: None,
            ring: Ring::default(),
            newest_stamp_us: 0,
            rows: Rows::default(),
            accounts: Accounts::default(),
            energy: Energy::default(),
        }
    }

    /// The processes of the device.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// From which stamp of the driver's clock to ask for samples of the device.
    pub(crate) fn samples_since_us(&self) -> u64 {
        self.newest_stamp_us
    }

    /// From which stamp of the driver's clock to ask for samples of processes.
    pub(crate) fn rows_since_us(&self, now_us: u64) -> u64 {
        self.time.stamp_us(self.rows.since_us(now_us), self.scale)
    }

    /// Learns the driver's clock from fresh stamps. True: it was not known before, and a question that was asked by a guess is to be asked
    /// again.
    pub(crate) fn learn_time(&mut self, stamps_us: impl Iterator<Item = u64>, now: Stamp) -> bool {
        if self.time.is_known() {
            return false;
        }
        stamps_us.for_each(|stamp_us| self.time.learn(stamp_us, now));
        self.time.is_known()
    }

    /// Takes the time of a new cycle: notices that UTC was set, or that nobody looked for long. Gives what must be told at once, because
    /// its instants come again.
    pub(crate) fn resume(&mut self, last: Stamp, now: Stamp, why: Why) -> Vec<Part> {
        if let Some(jump) = self.scale.follow(now) {
            return self.jumped(jump, now);
        }
        let held_us = now.monotonic_us.saturating_sub(last.monotonic_us);
        if held_us > HELD_PERIODS * self.periods.sample_us {
            // What was seen last is held for two periods.
            self.gap(last.monotonic_us + 2 * self.periods.sample_us, now.monotonic_us, why);
            self.roster.reseed();
            self.gauge = None;
        }
        Vec::new()
    }

    fn jumped(&mut self, jump: Jump, now: Stamp) -> Vec<Part> {
        self.seed(now);
        if jump.is_back() {
            return self.book.flush();
        }
        if let Some(over) = Window::new(jump.from, jump.to) {
            self.book.gap(over, Why::ClockJump);
        }
        Vec::new()
    }

    /// The driver was loaded anew, or the library was: every source begins again.
    pub(crate) fn reload(&mut self, last: Option<Stamp>, now: Stamp) {
        if let Some(last) = last {
            self.gap(last.monotonic_us, now.monotonic_us, Why::DriverReload);
        }
        let energy = std::mem::take(&mut self.energy);
        self.seed(now);
        self.energy = energy;
        self.energy.reload();
        self.time = DriverTime::default();
    }

    fn seed(&mut self, now: Stamp) {
        self.floor_us = now.monotonic_us;
        self.roster.reseed();
        self.unit_memory.clear();
        self.process_memory.clear();
        self.gauge = None;
        self.ring.reseed();
        self.newest_stamp_us = 0;
        self.rows.reseed();
        self.accounts.reseed();
        self.energy.reseed();
    }

    /// Integrates one cycle. Rows that are not believed are added to what the cycle discarded.
    pub(crate) fn take(&mut self, seen: &Observation, ladder: &Ladder, last: Option<Stamp>) -> Vec<Discard> {
        let at = self.scale.utc(seen.began.monotonic_us);
        self.book.unit(at, UnitKey::Device, Err(Absent::NotSupported));
        if let Some(why) = seen.failed {
            self.failed(at, why, seen, last);
            return seen.discarded.clone();
        }
        if std::mem::take(&mut self.was_gone) {
            // Its counters and rings began anew; one that still holds what was before says nothing of the time away.
            self.seed(seen.began);
        }
        // Seen by then, and maybe not yet when the cycle began. Of a layout that changed meanwhile nobody knows since when.
        let listed = self.scale.utc(seen.processes.at_us);
        for live in seen.instances.iter().filter(|_| !seen.torn) {
            self.book.unit(listed, live.unit, live.placement);
        }
        if seen.torn {
            self.gap(last.unwrap_or(seen.began).monotonic_us, seen.ended.monotonic_us, Why::Torn);
        }
        self.list(listed, seen, ladder);
        self.take_memory(at, seen, ladder);
        let pieces = self.unit_pieces(at, seen, ladder);
        for piece in &pieces {
            self.add(Subject::Unit(piece.unit), Measure::Sm, piece.span, piece.amount, piece.quality);
        }
        let mut discarded = seen.discarded.clone();
        discarded.extend(self.process_pieces(at, seen, ladder, &pieces));
        self.take_energy(at, seen, last.map_or(at, |last| self.scale.utc(last.monotonic_us)));
        discarded
    }

    /// The windows that ended so long ago that nothing late can come for them: two periods and a sample of the driver.
    pub(crate) fn close(&mut self, now: Stamp) -> (Instant, Vec<Part>) {
        let lag_us = 2 * self.periods.sample_us + SAMPLE_US;
        let told_to = self.scale.utc(now.monotonic_us.saturating_sub(lag_us));
        (told_to, self.book.close_before(told_to))
    }

    /// All windows: the lane ends.
    pub(crate) fn flush(&mut self) -> Vec<Part> {
        self.book.flush()
    }

    fn failed(&mut self, at: Instant, why: Absent, seen: &Observation, last: Option<Stamp>) {
        for measure in [Measure::Sm, Measure::Memory, Measure::Energy] {
            self.book.absent(at, Subject::Unit(UnitKey::Device), measure, Quality::from(why));
        }
        self.gap(last.unwrap_or(seen.began).monotonic_us, seen.ended.monotonic_us, Why::Nvml(why));
        if why.is_device_gone() {
            self.was_gone = true;
            self.unit_memory.clear();
            self.process_memory.clear();
            self.gauge = None;
        }
        self.roster.reseed();
    }

    /// Takes the list of processes. One that is torn or could not be read leaves everything as it was.
    fn list(&mut self, at: Instant, seen: &Observation, ladder: &Ladder) {
        let Ok(processes) = &seen.processes.value else { return self.roster.reseed() };
        let confirmed_us = seen.ended.monotonic_us;
        let keep_us = HELD_PERIODS * self.periods.slow_us;
        self.roster.update(seen.processes.at_us, confirmed_us, processes, keep_us);
        let roster = &self.roster;
        self.accounts.retain(|process| roster.get(process).is_some());
        for process in processes {
            self.book.process(at, process.key, &process.owner);
            let subject = Subject::Process(process.key);
            let why = match ladder.absence(Want::ProcessSm) {
                why @ Quality::Unavailable(_) => why,
                _ => Quality::from(Absent::NotYet),
            };
            self.book.absent(at, subject, Measure::Sm, why);
        }
    }

    /// It is read with the first cycle of a window and speaks of the one before: a failure is told in both.
    fn take_energy(&mut self, at: Instant, seen: &Observation, before: Instant) {
        let Some(read) = &seen.energy else { return };
        let device = Subject::Unit(UnitKey::Device);
        let value = match read.value {
            Ok(value) => value,
            Err(why) => {
                let label = Quality::from(why);
                return [before, at]
                    .iter()
                    .for_each(|at| self.book.absent(*at, device, Measure::Energy, label));
            }
        };
        match self.energy.read(value, read.at_us, HELD_PERIODS * self.periods.slow_us) {
            Step::Seed => self.book.absent(at, device, Measure::Energy, Quality::from(Absent::NotYet)),
            Step::Used(span, used_mj) => {
                let quality = Quality::DriverCounter { shared: false };
                self.add(device, Measure::Energy, span, u128::from(used_mj), quality);
            }
            Step::Reset(span) => {
                let why = Why::CounterReset;
                self.book.absent(before, device, Measure::Energy, Quality::Unavailable(why));
                self.gap(span.from_us(), span.to_us(), why);
            }
        }
    }

    /// Processes of the last list, as long as what was seen is held: after that nobody knows whether they live.
    fn lately(&self, now_us: u64) -> Vec<ProcessKey> {
        let held_us = 2 * self.periods.sample_us;
        let is_held = |seen_us: u64| now_us.saturating_sub(seen_us) <= held_us;
        self.roster.live().filter(|(_, entry)| is_held(entry.seen_us)).map(|(key, _)| *key).collect()
    }

    fn add(&mut self, subject: Subject, measure: Measure, span: Span, amount: u128, quality: Quality) {
        if let Some(over) = self.window(span.from_us(), span.to_us()) {
            self.book.add(subject, measure, over, amount, quality);
        }
    }

    fn gap(&mut self, from_us: u64, to_us: u64, why: Why) {
        if let Some(over) = self.window(from_us.max(self.floor_us), to_us) {
            self.book.gap(over, why);
        }
    }

    fn window(&self, from_us: u64, to_us: u64) -> Option<Window> {
        Window::new(self.scale.utc(from_us), self.scale.utc(to_us))
    }
}
