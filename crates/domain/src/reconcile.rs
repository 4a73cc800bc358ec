//! Reconciliation: allocations against what nodes measured. Findings are a function of the ledger at its horizon and of rollups,
//! fed GPU by GPU, hours in order of time.
//!
//! Minutes are the finest that rollups know, so what speaks of a minute counts only where the whole minute agrees: in one in which the holder
//! changed, a process may have been either's.

mod evidence;
mod fleet;
mod idle;
mod there;

pub use fleet::Fleet;

use crate::attribution::GpuTimeline;
use crate::finding::{Finding, Kind};
use crate::ids::{AllocationId, GpuId};
use crate::measured::{Holders, Minute, Owner, Rollup};
use crate::time::{Instant, MINUTE_US, SECOND_US, Window};
use crate::usage::UsageSpan;
use evidence::{Evidence, Subject};
use idle::Idle;
use there::{There, mask_of, there};

/// From how much presence of a process on, in microseconds, it is a finding where it does not belong: a collector's default window.
pub const PRESENCE_US: i64 = 10 * SECOND_US;
pub use idle::{IDLE_PARTS_IN, IDLE_US};

/// What is found on one GPU.
#[derive(Debug)]
pub struct Watch<'a> {
    fleet: &'a Fleet<'a>,
    gpu: &'a GpuId,
    timeline: &'a GpuTimeline,
    spans: Vec<UsageSpan>,
    holders: Holders,
    as_of: Instant,
    evidence: Evidence,
    idle: Idle,
    /// End of the last minute of which there is any reading.
    seen_until: Instant,
}

impl<'a> Watch<'a> {
    /// A GPU, as the ledger has it at `as_of`.
    pub fn new(fleet: &'a Fleet<'a>, gpu: &'a GpuId, timeline: &'a GpuTimeline, as_of: Instant) -> Self {
        let spans: Vec<UsageSpan> = fleet.spans_on(gpu).cloned().collect();
        let holders = Holders::new(&spans);
        let (evidence, idle) = (Evidence::default(), Idle::default());
        Self { fleet, gpu, timeline, spans, holders, as_of, evidence, idle, seen_until: Instant::MIN }
    }

    /// Reads rollups of this GPU, of hours later than those read before. Minutes that end after the horizon do not act yet.
    pub fn read(&mut self, rollups: &[Rollup]) {
        for rollup in rollups {
            for (minute, read) in &rollup.minutes {
                let start = rollup.hour.plus(i64::from(*minute) * MINUTE_US);
                let window = Window::new(start, start.plus(MINUTE_US)).filter(|w| w.end() <= self.as_of);
                if let Some(window) = window {
                    self.seen_until = self.seen_until.max(window.end());
                    self.minute(rollup, window, read, rollups);
                }
            }
        }
        let Self { spans, holders, idle, as_of, .. } = self;
        holders.read(spans, rollups, |reading| {
            if let Some(span) = spans.get(reading.span).filter(|_| reading.window.end() <= *as_of) {
                idle.read(span, &reading);
            }
        });
    }

    /// What was found, by what was read.
    pub fn finish(self) -> Vec<Finding> {
        let Self { evidence, idle, seen_until, as_of, .. } = self;
        let mut findings = evidence.findings(seen_until);
        findings.extend(idle.findings(as_of));
        findings
    }

    fn minute(&mut self, rollup: &Rollup, window: Window, read: &Minute, all: &[Rollup]) {
        if rollup.owner == Owner::Unit {
            self.overlapping(rollup, window, read);
            self.busy_without_processes(rollup, window, read, all);
            return;
        }
        match there(self.timeline, window, |slices| mask_of(rollup.placement, slices)) {
            There::Free => self.on_free(rollup, window, read),
            There::Held { holders, shared } => {
                let holders: Vec<AllocationId> = holders.into_iter().cloned().collect();
                self.on_held(rollup, window, read, &holders, shared);
            }
            There::Unclear => {}
        }
    }

    /// Nobody held the unit in this minute, and nobody cleaned it.
    fn on_free(&mut self, rollup: &Rollup, window: Window, read: &Minute) {
        let (owner, unit) = (&rollup.owner, self.unit(rollup));
        if self.fleet.is_unplaced(owner, window) {
            // Its devices are not known yet: it may well hold this one.
            return;
        }
        let detail = format!("{owner} ran on {unit}, which no allocation holds");
        self.note(Kind::Unattributed, Subject::Gpu(self.gpu.clone()), detail, window, read);
        self.note_owner(rollup, window, read);
    }

    fn on_held(
        &mut self,
        rollup: &Rollup,
        window: Window,
        read: &Minute,
        holders: &[AllocationId],
        shared: bool,
    ) {
        let owner = &rollup.owner;
        let names: Vec<_> = holders.iter().filter_map(|holder| self.fleet.runtime(holder)).collect();
        if !owner.is_named() || names.iter().any(|runtime| owner.is_of(runtime)) {
            return;
        }
        let unit = self.unit(rollup);
        let told = names.len() == holders.len() && names.iter().all(|runtime| owner.is_kind_of(runtime));
        match holders {
            [holder] if !shared && !names.is_empty() && (told || self.fleet.knows(owner)) => {
                let detail = format!("{owner} ran on {unit}, which {holder} holds alone");
                self.note(Kind::ForeignProcess, Subject::Allocation(holder.clone()), detail, window, read);
            }
            _ if told && !self.fleet.is_in_force(owner, window) => {
                let detail =
                    format!("{owner} ran on {unit}, and none of those who share it is granted to them");
                self.note(Kind::OwnerMismatch, Subject::Gpu(self.gpu.clone()), detail, window, read);
            }
            _ => {}
        }
        self.note_owner(rollup, window, read);
    }

    /// What the processes' own allocation says: it holds other units, or it was released.
    fn note_owner(&mut self, rollup: &Rollup, window: Window, read: &Minute) {
        let (owner, unit) = (&rollup.owner, self.unit(rollup));
        if let Some(allocation) = self.fleet.elsewhere(owner, window) {
            let detail = format!("{owner} ran on {unit}, which {allocation} does not hold");
            self.note(Kind::OwnerMismatch, Subject::Allocation(allocation.clone()), detail, window, read);
        } else if let Some((allocation, end)) = self.fleet.released(owner, self.gpu, rollup.placement, window)
        {
            let detail = format!("{owner} ran on {unit}, which {allocation} held until {end}");
            self.note(Kind::HeldAfterRelease, Subject::Allocation(allocation.clone()), detail, window, read);
        }
    }

    /// A unit that was busy, and no row of a process says by whom.
    fn busy_without_processes(&mut self, rollup: &Rollup, window: Window, read: &Minute, all: &[Rollup]) {
        let active_us = i64::try_from(read.sm_active_us.unwrap_or_default()).unwrap_or(i64::MAX);
        let free = || there(self.timeline, window, |slices| mask_of(rollup.placement, slices)) == There::Free;
        let told = |other: &Rollup| {
            other.owner != Owner::Unit && (other.hour, other.placement) == (rollup.hour, rollup.placement)
        };
        if active_us > 0 && free() && !all.iter().any(told) {
            let unit = self.unit(rollup);
            let detail = format!("{unit}, which no allocation holds, was busy; no process was told");
            self.evidence.note(Kind::Unattributed, Subject::Gpu(self.gpu.clone()), detail, window, active_us);
        }
    }

    /// More than a minute was measured of one minute: windows overlap, so a clock was put back, or two collectors measure the node.
    fn overlapping(&mut self, rollup: &Rollup, window: Window, read: &Minute) {
        if i64::try_from(read.covered_us).unwrap_or(i64::MAX) > MINUTE_US {
            let unit = self.unit(rollup);
            let detail = format!("windows of {unit} overlap: more than a minute was measured of one minute");
            // Any overlap at all is a finding.
            self.evidence.note(
                Kind::ClockSkew,
                Subject::Node(rollup.node.clone()),
                detail,
                window,
                PRESENCE_US,
            );
        }
    }

    fn note(&mut self, kind: Kind, subject: Subject, detail: String, window: Window, read: &Minute) {
        let present_us = i64::try_from(read.covered_us).unwrap_or(i64::MAX).min(MINUTE_US);
        if present_us > 0 {
            self.evidence.note(kind, subject, detail, window, present_us);
        }
    }

    fn unit(&self, rollup: &Rollup) -> String {
        let gpu = self.gpu;
        match rollup.placement {
            None => format!("{gpu} of node {}", rollup.node),
            Some(at) => format!("slices {}+{} of {gpu} of node {}", at.start, at.size, rollup.node),
        }
    }
}

#[cfg(test)]
mod tests;
