//! One unit in one hour: whose its readings are.

use super::Reading;
use crate::measured::amounts::{Amounts, Slice};
use crate::measured::label::{self, weaker};
use crate::measured::{Minute, Owner, Rollup};
use crate::time::{HOUR_US, Instant, MINUTE_US, Window};
use crate::usage::{SpanPlace, UsageSpan};
use std::collections::{BTreeMap, BTreeSet};

/// The reading that `quality` of a usage row speaks of.
const SM_ACTIVE: &str = "sm_active_us";
/// What a GPU's row says of instances that could not be told.
const INSTANCES: &str = "instances";

/// A row with the weakest label of its SM-active time.
#[derive(Clone, Copy)]
struct Source<'r> {
    rollup: &'r Rollup,
    label: &'r str,
}

impl<'r> Source<'r> {
    fn of(rollup: &'r Rollup) -> Self {
        Self { rollup, label: label_of(rollup) }
    }

    fn minute(&self, minute: u8) -> Option<&'r Minute> {
        self.rollup.minutes.get(&minute)
    }
}

/// One unit in one hour: who held it, and what was measured there.
pub(super) struct Unit<'u, 'r> {
    spans: Vec<(usize, &'u UsageSpan)>,
    hour: Instant,
    /// Readings of the unit itself: of the GPU first, then of an instance that is all of it.
    itself: Vec<Source<'r>>,
    /// Readings of process owners.
    owners: Vec<Source<'r>>,
    /// Why there is no reading, where the node says it.
    why: &'r str,
}

/// One holder of a unit in one hour, and whose readings concern it.
struct Holder<'h, 'r> {
    span: &'h UsageSpan,
    itself: &'h [Source<'r>],
    /// Owners that bear its name.
    told: Vec<Source<'r>>,
    /// Owners of other names.
    others: Vec<Source<'r>>,
    /// What its readings are called where it has none.
    none: &'r str,
}

impl<'u, 'r> Unit<'u, 'r> {
    pub(super) fn new(spans: &'u [UsageSpan], held: &[usize], rollups: &[&'r Rollup], hour: Instant) -> Self {
        let spans: Vec<(usize, &UsageSpan)> = held.iter().map(|index| (*index, &spans[*index])).collect();
        let place = spans.first().and_then(|(_, span)| span.place.as_ref());
        let here = |rollup: &&&Rollup| place.is_some_and(|place| stands_at(rollup, place));
        let (mut itself, owners): (Vec<&Rollup>, Vec<&Rollup>) =
            rollups.iter().filter(here).copied().partition(|rollup| rollup.owner == Owner::Unit);
        itself.sort_by_key(|rollup| rollup.placement);
        let why = why_not(&itself, rollups);
        let sources = |rollups: Vec<&'r Rollup>| rollups.into_iter().map(Source::of).collect();
        Self { spans, hour, itself: sources(itself), owners: sources(owners), why }
    }

    pub(super) fn read(&self, each: &mut impl FnMut(Reading<'r>)) {
        let sources = self.itself.iter().chain(&self.owners);
        let minutes: BTreeSet<u8> =
            sources.flat_map(|source| source.rollup.minutes.keys().copied()).collect();
        for (index, span) in &self.spans {
            let holder = self.holder(span);
            let mut measured = false;
            for minute in minutes.iter().filter(|_| span.held) {
                let start = self.hour.plus(i64::from(*minute) * MINUTE_US);
                let whole = Window::new(start, start.plus(MINUTE_US));
                let Some(window) = whole.and_then(|whole| whole.intersect(span.window)) else { continue };
                let (amounts, label) = holder.minute(*minute, start, window);
                if amounts != Amounts::default() {
                    measured |= amounts.sm_active_us.is_some();
                    each(Reading { span: *index, window, amounts, label });
                }
            }
            let hour =
                Window::new(self.hour, self.hour.plus(HOUR_US)).and_then(|hour| hour.intersect(span.window));
            if let Some(window) = hour.filter(|_| !measured) {
                each(Reading { span: *index, window, amounts: Amounts::default(), label: holder.none });
            }
        }
    }

    fn holder<'h>(&'h self, span: &'h UsageSpan) -> Holder<'h, 'r> {
        let runtime = &span.telling.runtime;
        let named = self.owners.iter().copied().filter(|source| source.rollup.owner.is_named());
        let (told, others) = named.partition(|source| source.rollup.owner.is_of(runtime));
        let none = match (span.held, span.telling.alone) {
            (false, _) => label::POOL,
            (true, false) => label::SHARED,
            (true, true) => self.why,
        };
        Holder { span, itself: &self.itself, told, others, none }
    }
}

impl<'r> Holder<'_, 'r> {
    /// What it has of a minute that begins at `start`: of `window`, its part of it.
    fn minute(&self, minute: u8, start: Instant, window: Window) -> (Amounts, &'r str) {
        let in_minute = Slice {
            before_us: i128::from(window.start().since(start)),
            own_us: i128::from(window.micros()),
            all_us: i128::from(MINUTE_US),
        };
        let of_hold = of_hold(self.span, start, window);
        let by = |value: Value| -> Option<i128> {
            if let Some(told) = sum(&self.told, minute, value) {
                return Some(of_hold.of(told));
            }
            let (_, unit) = self.unit(minute, value)?;
            // In a minute that was held in part, owners of other names may be those who held the rest, which the division leaves to them.
            let strangers =
                if window.micros() == MINUTE_US { sum(&self.others, minute, value) } else { None };
            Some(in_minute.of((unit - strangers.unwrap_or_default()).max(0)))
        };
        let (covered_us, label) = self.covered(minute, in_minute, of_hold);
        let energy_mj = self.unit(minute, energy).map(|(_, energy)| in_minute.of(energy));
        (Amounts { sm_active_us: by(sm), memory_byte_us: by(memory), energy_mj, covered_us }, label)
    }

    /// How much of its part readings of SM-active time cover, and how they were measured.
    fn covered(&self, minute: u8, in_minute: Slice, of_hold: Slice) -> (i128, &'r str) {
        let told = self.told.iter().filter(|source| source.minute(minute).and_then(sm).is_some());
        let told = told.filter_map(|source| Some((covered(source.minute(minute)?), source.label)));
        if let Some((covered, label)) = told.reduce(|a, b| (a.0 + b.0, weaker(a.1, b.1))) {
            return (of_hold.of(covered.min(of_hold.all_us)), label);
        }
        let unit = self.unit(minute, sm).and_then(|(source, _)| Some((source.minute(minute)?, source.label)));
        unit.map_or((0, self.none), |(minute, label)| (in_minute.of(covered(minute)), label))
    }

    /// The unit's own reading in a minute, and which row has it, for who holds it alone. A second node that measured the same GPU in the
    /// same minute adds nothing.
    fn unit(&self, minute: u8, value: Value) -> Option<(&Source<'r>, i128)> {
        let mut rows = self.itself.iter().filter(|_| self.span.telling.alone);
        rows.find_map(|source| Some((source, source.minute(minute).and_then(value)?)))
    }
}

/// A reading of a minute.
type Value = fn(&Minute) -> Option<i128>;

/// The sum of what was read; none where nothing was.
fn sum(sources: &[Source<'_>], minute: u8, value: Value) -> Option<i128> {
    let read = sources.iter().filter_map(|source| source.minute(minute).and_then(value));
    read.reduce(|a, b| a + b)
}

fn sm(minute: &Minute) -> Option<i128> {
    minute.sm_active_us.map(i128::from)
}

fn memory(minute: &Minute) -> Option<i128> {
    minute.memory_byte_us.map(|n| i128::try_from(n).unwrap_or(i128::MAX))
}

fn energy(minute: &Minute) -> Option<i128> {
    minute.energy_mj.map(i128::from)
}

/// A minute cannot be covered for longer than it lasts; two streams that measured it both are a finding.
fn covered(minute: &Minute) -> i128 {
    i128::from(minute.covered_us).min(i128::from(MINUTE_US))
}

/// Which part of the time in the minute in which spans of these names held the unit is this span's.
fn of_hold(span: &UsageSpan, start: Instant, window: Window) -> Slice {
    let before_us = if span.window.start() >= start { span.telling.before_us } else { 0 };
    let after_us = if span.window.end() <= start.plus(MINUTE_US) { span.telling.after_us } else { 0 };
    let own_us = i128::from(window.micros());
    let (before_us, after_us) = (i128::from(before_us), i128::from(after_us));
    Slice { before_us, own_us, all_us: before_us + own_us + after_us }
}

/// Whether a row speaks of the unit at `place`. An instance that takes all of a GPU is the GPU.
fn stands_at(rollup: &Rollup, place: &SpanPlace) -> bool {
    match rollup.placement {
        None => place.memory_slices == place.gpu_memory_slices,
        Some(at) => (at.start, at.size) == (place.memory_start, place.memory_slices),
    }
}

/// The weakest label of SM-active time in the row, where it has one.
fn label_of(rollup: &Rollup) -> &str {
    let labels = rollup.quality.get(SM_ACTIVE).into_iter().flat_map(BTreeMap::keys);
    let read = labels.map(String::as_str).filter(|label| !label::is_unavailable(label));
    read.reduce(weaker).unwrap_or(label::UNLABELLED)
}

/// Why a unit has no SM-active time where it has none: as its own rows say; else as the GPU's row says of its instances; else it has rows,
/// and none for this time.
fn why_not<'r>(itself: &[&'r Rollup], all: &[&'r Rollup]) -> &'r str {
    let said = |rollups: &[&'r Rollup], reading: &str| {
        let labels = rollups.iter().filter_map(|rollup| rollup.quality.get(reading)).flat_map(BTreeMap::keys);
        labels.map(String::as_str).filter(|label| label::is_unavailable(label)).reduce(weaker)
    };
    if itself.is_empty() {
        return said(all, INSTANCES).unwrap_or(label::NOT_REPORTED);
    }
    let measured = itself.iter().any(|rollup| rollup.minutes.values().any(|m| m.sm_active_us.is_some()));
    said(itself, SM_ACTIVE).filter(|_| !measured).unwrap_or(label::GAP)
}
