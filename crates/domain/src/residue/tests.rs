//! Every rule by example, and random histories against a second evaluator that was written from the rules alone.

mod examples;
mod naive;
mod stories;

use super::history::{Cause, History, Hold, Lifted, Scrub, Unknown};
use super::rules::{Mode, Rules};
use super::slices::Slices;
use super::verdict::{Left, Verdict};
use crate::fact::{Placement, ReadBack, ScrubEvidence, ScrubResult};
use crate::ids::{AllocationId, GpuId, NodeId, ScrubId, TenantId};
use crate::time::{Instant, SECOND_US};
use std::collections::BTreeMap;

/// A GPU nothing happened to yet.
fn bare(memory_slices: u8) -> History {
    History {
        gpu: GpuId::new("GPU-1"),
        node: NodeId::new("n1"),
        model: "NVIDIA H100 80GB HBM3".to_owned(),
        memory_slices,
        first: at(0),
        known_from: Instant::MIN,
        holds: Vec::new(),
        scrubs: Vec::new(),
        begun: Vec::new(),
        unknowns: Vec::new(),
        lifted: Vec::new(),
    }
}

fn at(second: i64) -> Instant {
    Instant::from_micros(second * SECOND_US)
}

fn place(start: u8, size: u8) -> Option<Placement> {
    Some(Placement { start, size })
}

fn hold(allocation: &str, tenant: &str, placement: Option<Placement>, start: i64, end: i64) -> Hold {
    Hold {
        start: at(start),
        allocation: AllocationId::new(allocation),
        unit: 0,
        gpu: GpuId::new("GPU-1"),
        placement,
        shared: false,
        end: at(end),
        open: false,
        owners: vec![(at(start), TenantId::new(tenant))],
    }
}

/// Evidence of a scrub that ended so; `good` evidence is what R-3 asks for.
fn evidence(result: ScrubResult, good: bool) -> ScrubEvidence {
    ScrubEvidence {
        result,
        read_back: if good { ReadBack::Full } else { ReadBack::Nothing },
        bytes_read: if good { 8 } else { 0 },
        mismatches: 0,
        bytes_total: 8,
        bytes_covered: 6,
        bytes_reserved: 2,
    }
}

fn scrub(name: &str, placement: Option<Placement>, start: i64, end: i64) -> Scrub {
    Scrub {
        finished_at: at(end),
        started_at: at(start),
        scrub: ScrubId::new(name),
        slices: Slices::of(placement, 8),
        evidence: evidence(ScrubResult::Passed, true),
    }
}

/// Puts everything in the order that histories have.
fn in_order(mut history: History) -> History {
    history.holds.sort();
    history.scrubs.sort();
    history.begun.extend(history.scrubs.iter().map(|scrub| (scrub.started_at, scrub.slices)));
    history.begun.sort();
    history.unknowns.sort();
    history.lifted.sort();
    history
}

/// `allocation slices verdict` of every grant, slices of one verdict together.
fn told(history: &History, rules: &Rules) -> Vec<String> {
    let mut told = Vec::new();
    for judged in history.judge(rules, Instant::MIN) {
        let mut words: BTreeMap<String, Slices> = BTreeMap::new();
        for (slice, verdict) in &judged.slices {
            let standing = words.entry(word(verdict)).or_default();
            *standing = standing.with(*slice);
        }
        told.extend(
            words.into_iter().map(|(word, slices)| format!("{} {slices} {word}", judged.hold.allocation)),
        );
    }
    told
}

/// A verdict in a few words, as both evaluators can say it.
fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Baseline => "baseline".to_owned(),
        Verdict::Clean(_) => "clean".to_owned(),
        Verdict::Beside => "beside".to_owned(),
        Verdict::Trusted(_) => "trusted".to_owned(),
        Verdict::Skipped(..) => "skipped".to_owned(),
        Verdict::Missing(_) => "missing".to_owned(),
        Verdict::Violation(last) => match &last.left {
            Left::FirstSight => "violation of nobody".to_owned(),
            Left::Held { tenant, .. } => format!("violation of {tenant}"),
            Left::Scrub(_) => "violation of a scrub".to_owned(),
            Left::Unknown(_) => "violation of unknown".to_owned(),
            Left::Live { tenant, .. } => format!("violation of {tenant} still there"),
        },
    }
}
