//! What holds of every run, whatever happened in it.
//!
//! The tolerances, and what they are made of:
//!
//! | what | tolerance |
//! |---|---|
//! | coverage of units | none: each reading covers no more than the window, nor than the unit existed of it and was there to be read |
//! | coverage of processes | by samples of the driver, the look before its first one and the sample in which it ended; memory, the period in which it ended; otherwise none |
//! | SM-active time, `interval_mean` | 2 us a period, for whole parts per million; where a failure or a delay may have moved a reading, 0.5 % more, and at each edge of the window what a reading of up to three periods, spread evenly, can carry over it |
//! | SM-active time, `driver_sampled_device` | half a per cent of the time (whole per cents), a sample (a sixth of a second) at each edge |
//! | SM-active time, `driver_sampled`, `derived_share(sampled)` | half a per cent of the time, and at each edge what a reading of up to three periods can carry over it |
//! | SM-active time, `driver_counter` | 0.5 %, and at each edge what a reading of ten seconds and a sample can carry over it |
//! | SM-active time, other `derived_share`, `point_gauge` | bounded from above only: never more than the unit was busy |
//! | memory over time | each change of memory times a period; two, and what a call was delayed, where a reading may have failed or been late |
//! | energy | whole millijoules: 2 a reading; where a reading failed, one of up to thirty seconds at each end of a stretch |
//! | what a reading does not cover | counts as idle for the lower bound, as busy as it was for the upper one |
//! | UTC was set | the clock file is set with the first call after it: one reading |
//! | several processes under one number between two lists | rows of the driver name the number: what those did that no list saw |
//!
//! Where nothing stood in the way for half a minute ([`Slot::is_quiet`]) there is no gap, no unit and no process is missing, and everything is covered but the
//! edges of lives.

mod energy;
mod processes;
mod states;
mod stream;
mod units;

use crate::node::Outing;
use crate::oracle::{Place, Spans, disturbed, gone, times};
use gpuledger_domain::time::Instant;
use gpuledger_nvml_sim::scenario::Action;
use gpuledger_wire::bodies::Placement;
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::fmt;

/// Sampling period of the runs, and what windows are cut to.
pub(crate) const PERIOD_US: u64 = 1_000_000;

/// What did not hold, and how often hard cases came up.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<String>,
    pub(crate) cases: BTreeMap<&'static str, u64>,
}

impl Findings {
    /// Notes what does not hold.
    pub(crate) fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(what());
        }
    }

    /// Counts.
    pub(crate) fn case(&mut self, name: &'static str, times: u64) {
        *self.cases.entry(name).or_default() += times;
    }

    /// Fails with what did not hold.
    pub(crate) fn hold(&self, name: &str) {
        assert!(self.faults.is_empty(), "{name}: {self}");
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} faults", self.faults.len())?;
        self.faults.iter().take(25).try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}

/// Everything that holds of every run.
pub(crate) fn everything(outing: &Outing) -> Findings {
    let mut findings = Findings::default();
    stream::check(outing, &mut findings);
    units::check(outing, &mut findings);
    processes::check(outing, &mut findings);
    energy::check(outing, &mut findings);
    states::check(outing, &mut findings);
    findings
}

/// A window on the timeline.
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) length_us: u64,
    pub(crate) times: Spans,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

impl Slot {
    /// Whether the node's clock ran evenly through it.
    pub(crate) fn is_plain(&self) -> bool {
        self.times.pieces().len() == 1 && self.times.length_us() == self.length_us
    }

    /// A simulated clock is set with the first call after the instant at which it is: by then a look may have begun by the old one.
    pub(crate) fn set_us(&self, outing: &Outing) -> u64 {
        if self.is_plain() { 0 } else { reading_us(outing, &self.times) }
    }

    /// Whether nothing kept a GPU from being read shortly before, in it, and until its last readings are in.
    pub(crate) fn is_quiet(&self, outing: &Outing, gpu: usize) -> bool {
        let near = self.times.widened(30 * PERIOD_US, 5 * PERIOD_US);
        self.is_plain() && !self.is_after_a_start(outing) && !near.meets(&disturbed(&outing.world, gpu))
    }

    /// The first window of a process of the collector: its first readings only seed.
    fn is_after_a_start(&self, outing: &Outing) -> bool {
        let near = self.times.widened(3 * PERIOD_US, 0);
        self.is_first
            || outing
                .ended
                .iter()
                .any(|end| near.meets(&Spans::one(end.at_us, end.at_us + 1)) && !self.is_last)
    }
}

/// Windows with their times.
pub(crate) fn slots(
    outing: &Outing,
) -> impl Iterator<Item = (Slot, &gpuledger_wire::bodies::TelemetryWindow)> {
    let last = outing.output.windows().count();
    outing.output.windows().enumerate().map(move |(i, window)| {
        let (start, end) = (window.start.get(), window.end.get());
        let slot = Slot {
            name: format!("window {start} .. {end}"),
            length_us: u64::try_from(end.since(start)).unwrap_or(0),
            times: times(&outing.world, start, end),
            is_first: i == 0,
            is_last: i + 1 == last,
        };
        (slot, window)
    })
}

pub(crate) fn place(outing: &Outing, gpu: &Name, placement: Option<Placement>) -> Place {
    let slices = placement.map(|it| (u32::from(it.start.get()), u32::from(it.size.get())));
    Place { gpu: outing.gpu(gpu), slices }
}

pub(crate) fn count(number: Count) -> u64 {
    u64::try_from(number.get()).unwrap_or(0)
}

/// How far apart two readings around some times may be: a period, and as long as calls were delayed by then, for which the whole node waits. An injected
/// delay waits for its call: the twentieth of one that is made every ten seconds.
pub(crate) fn reading_us(outing: &Outing, around: &Spans) -> u64 {
    let near = around.widened(210 * PERIOD_US, PERIOD_US);
    let delays = outing.world.scenario().timeline.iter().filter_map(|step| match &step.action {
        Action::Delay(it) => {
            let lasts_us = it.lasts.map_or(1, |span| span.0);
            let is_near = near.meets(&Spans::one(step.at.0, step.at.0 + lasts_us));
            is_near.then(|| it.by.0.saturating_mul(it.times.unwrap_or(300).min(300)))
        }
        _ => None,
    });
    PERIOD_US + delays.sum::<u64>()
}

/// When a GPU was gone for so long that a reading fell into it.
pub(crate) fn seen_gone(outing: &Outing, gpu: usize) -> Spans {
    let pieces = gone(&outing.world, gpu);
    let seen =
        pieces.pieces().iter().filter(|(from, to)| to - from > reading_us(outing, &Spans::one(*from, *to)));
    Spans::new(seen.copied().collect())
}

/// The instant of a time of the timeline.
pub(crate) fn instant(outing: &Outing, at_us: u64) -> Instant {
    Instant::from_micros(outing.world.realtime_us(at_us))
}

/// The labels that a reading can have; with a value, and without one.
const VALUED: [&str; 11] = [
    "interval_mean",
    "driver_counter",
    "driver_counter(shared_unverified)",
    "driver_sampled",
    "driver_sampled(scaled)",
    "driver_sampled_device",
    "point_gauge",
    "point_gauge(with_reserve)",
    "derived_share(sole_process)",
    "derived_share(sampled)",
    "derived_share(equal)",
];
const REASONS: [&str; 22] = [
    "not_supported",
    "no_permission",
    "not_found",
    "lost",
    "reset_required",
    "driver_not_loaded",
    "driver_mismatch",
    "uninitialized",
    "unknown",
    "no_function",
    "version_mismatch",
    "timed_out",
    "implausible",
    "not_yet",
    "not_reported",
    "torn",
    "paused",
    "clock_jump",
    "counter_reset",
    "driver_reload",
    "collector_stopped",
    "not_sampled",
];

/// Whether a label goes with a value, or with none; an unknown word is a fault.
fn label(findings: &mut Findings, whose: &str, reading: &str, label: Option<&Name>, is_there: bool) {
    let Some(label) = label.map(Name::as_str) else {
        return findings.check(false, || format!("{whose}: {reading} has no label"));
    };
    let without = label == "allocation_only"
        || label
            .strip_prefix("unavailable(")
            .and_then(|rest| rest.strip_suffix(')'))
            .is_some_and(|why| REASONS.contains(&why));
    let with = VALUED.contains(&label);
    findings.check(with || without, || {
        format!("{whose}: {reading} is labelled {label}, which is no word of the contract")
    });
    findings.check(with == is_there, || {
        format!("{whose}: {reading} is {} and labelled {label}", if is_there { "there" } else { "absent" })
    });
}

/// The label of a reading.
fn word<'a>(quality: &'a BTreeMap<Name, Name>, reading: &str) -> Option<&'a Name> {
    quality.get(&Name::new(reading).unwrap())
}

/// A label without its qualifier.
fn plain(label: Option<&Name>) -> &str {
    label.map(Name::as_str).and_then(|label| label.split('(').next()).unwrap_or("")
}
