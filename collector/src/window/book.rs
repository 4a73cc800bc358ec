//! The open windows of one lane.
//!
//! Whatever the integration says, this holds: a reading of a subject covers each microsecond at most once, so what is covered is never
//! above what has passed; nothing is added to a window that was told; and what rounding leaves over goes to the subject's next window.

use super::frame::Frame;
use super::part::{Part, tell};
use super::subject::{Measure, ProcessKey, Subject, UnitKey};
use crate::ladder::{Quality, Why};
use crate::process::Owner;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_nvml::{Absent, Placement, Reading};
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One measure of one subject in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    /// In the measure's own fine unit.
    pub(super) amount: u128,
    /// Microseconds of the window it speaks of.
    pub(super) covered_us: i64,
    /// The weakest label of what was added.
    pub(super) quality: Option<Quality>,
    /// Why nothing was added, by the last attempt.
    pub(super) absent: Option<Quality>,
}

/// One subject in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) totals: BTreeMap<Measure, Total>,
    pub(super) memory_bytes_max: Option<u128>,
}

/// One window that may still be added to.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) window: Window,
    pub(super) rows: BTreeMap<Subject, Row>,
    pub(super) gaps: Vec<(Window, Why)>,
}

/// How far a reading of a subject was told, and what rounding left over there.
#[derive(Clone, Copy, Debug)]
struct Told {
    to: Instant,
    rest: u128,
}

/// The open windows of one GPU.
#[derive(Clone, Debug)]
pub struct Book {
    pub(super) gpu: Name,
    frame: Frame,
    open: BTreeMap<Instant, Open>,
    sealed_to: Instant,
    told: BTreeMap<(Subject, Measure), Told>,
    pub(super) placements: BTreeMap<UnitKey, Reading<Placement>>,
    pub(super) owners: BTreeMap<ProcessKey, Arc<Owner>>,
}

impl Book {
    /// A book without windows.
    pub fn new(gpu: Name, frame: Frame) -> Self {
        Self {
            gpu,
            frame,
            open: BTreeMap::new(),
            sealed_to: Instant::MIN,
            told: BTreeMap::new(),
            placements: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    /// The unit was there at this instant: the window has a row of it, whatever could be read.
    pub fn unit(&mut self, at: Instant, unit: UnitKey, placement: Reading<Placement>) {
        self.placements.insert(unit, placement);
        self.row(at, Subject::Unit(unit));
    }

    /// The process was there at this instant.
    pub fn process(&mut self, at: Instant, process: ProcessKey, owner: &Arc<Owner>) {
        self.owners.insert(process, Arc::clone(owner));
        self.row(at, Subject::Process(process));
    }

    /// A reading was tried and is absent.
    pub fn absent(&mut self, at: Instant, subject: Subject, measure: Measure, why: Quality) {
        if let Some(row) = self.row(at, subject) {
            row.totals.entry(measure).or_default().absent = Some(why);
        }
    }

    /// Adds an amount that accrued evenly over a time. What lies in told windows, or was covered before, is left out.
    pub fn add(&mut self, subject: Subject, measure: Measure, over: Window, amount: u128, quality: Quality) {
        let told = self.told.entry((subject, measure)).or_insert(Told { to: Instant::MIN, rest: 0 });
        let from = over.start().max(told.to).max(self.sealed_to);
        told.to = told.to.max(over.end());
        let Some(fresh) = Window::new(from, over.end()) else { return };
        for part in self.frame.cut(fresh) {
            let share = until(over, amount, part.end()) - until(over, amount, part.start());
            let Some(row) = self.row(part.start(), subject) else { continue };
            let total = row.totals.entry(measure).or_default();
            total.amount += share;
            total.covered_us += part.micros();
            total.quality = total.quality.max(Some(quality));
            if measure == Measure::Memory {
                let bytes = share / positive(part.micros());
                row.memory_bytes_max = row.memory_bytes_max.max(Some(bytes));
            }
        }
    }

    /// A time in which nothing could be read. It stands in the window in which it ends.
    pub fn gap(&mut self, over: Window, why: Why) {
        let Some(fresh) = Window::new(over.start().max(self.sealed_to), over.end()) else { return };
        let Some(open) = self.window(fresh.end().plus(-1)) else { return };
        match open.gaps.last_mut() {
            Some((last, reason)) if *reason == why && last.end() >= fresh.start() => {
                *last = Window::new(last.start(), fresh.end()).unwrap_or(*last);
            }
            _ => open.gaps.push((fresh, why)),
        }
    }

    /// The windows that end at or before this instant, oldest first. Nothing is added to them any more.
    pub fn close_before(&mut self, at: Instant) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut told = BTreeSet::new();
        while let Some(first) = self.open.first_entry() {
            if first.get().window.end() > at {
                break;
            }
            let open = first.remove();
            self.sealed_to = self.sealed_to.max(open.window.end());
            told.extend(open.rows.keys().copied());
            parts.push(self.close(open));
        }
        if !parts.is_empty() {
            self.forget_all_but(&told);
        }
        parts
    }

    /// All windows, the one that has not ended too: the lane ends, or UTC was set back and these instants come again.
    pub fn flush(&mut self) -> Vec<Part> {
        self.close_before(Instant::MAX)
    }

    fn close(&mut self, mut open: Open) -> Part {
        for (subject, row) in &mut open.rows {
            for (measure, total) in &mut row.totals {
                self.carry(*subject, *measure, total);
            }
        }
        tell(self, &open)
    }

    /// Takes up what the last window left over, and leaves what does not make a whole one for the next.
    fn carry(&mut self, subject: Subject, measure: Measure, total: &mut Total) {
        let Some(told) = self.told.get_mut(&(subject, measure)).filter(|_| total.covered_us > 0) else {
            return;
        };
        let amount = total.amount + told.rest;
        told.rest = amount % measure.divisor();
        total.amount = amount / measure.divisor();
        if measure == Measure::Sm {
            total.amount = total.amount.min(positive(total.covered_us));
        }
    }

    fn row(&mut self, at: Instant, subject: Subject) -> Option<&mut Row> {
        self.window(at).map(|open| open.rows.entry(subject).or_default())
    }

    fn window(&mut self, at: Instant) -> Option<&mut Open> {
        let window = self.frame.window_of(at).filter(|window| window.start() >= self.sealed_to)?;
        let empty = || Open { window, rows: BTreeMap::new(), gaps: Vec::new() };
        Some(self.open.entry(window.start()).or_insert_with(empty))
    }

    /// Drops what is kept of subjects that are gone: they are in no open window, and were not in the last ones.
    fn forget_all_but(&mut self, told: &BTreeSet<Subject>) {
        let open = &self.open;
        let stays = |subject: &Subject| {
            told.contains(subject) || open.values().any(|window| window.rows.contains_key(subject))
        };
        self.told.retain(|(subject, _), _| stays(subject));
        self.placements.retain(|unit, _| stays(&Subject::Unit(*unit)));
        self.owners.retain(|process, _| stays(&Subject::Process(*process)));
    }

    /// Where a unit stands on its GPU: `None` is all of it.
    pub(super) fn placement(&self, unit: UnitKey) -> Reading<Option<Placement>> {
        match unit {
            UnitKey::Device => Ok(None),
            UnitKey::Instance { .. } => {
                self.placements.get(&unit).copied().unwrap_or(Err(Absent::NotFound)).map(Some)
            }
        }
    }
}

/// How much of an amount that accrues evenly over a time has accrued at an instant: whole, and growing with the instant, so that parts add
/// up to all of it.
fn until(over: Window, amount: u128, at: Instant) -> u128 {
    let passed = positive(at.since(over.start()).clamp(0, over.micros()));
    amount * passed / positive(over.micros()).max(1)
}

fn positive(micros: i64) -> u128 {
    u128::try_from(micros).unwrap_or(0)
}

#[cfg(test)]
mod tests;
