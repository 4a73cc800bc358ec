//! What a person should look at, as it holds at the horizon.

use super::history::{History, Hold, Scrub};
use super::order::lifted_at;
use super::rules::{Limits, Mode, Rules};
use super::slices::Slices;
use super::verdict::{Judged, Lane, Last, Left, Verdict};
use crate::fact::ScrubResult;
use crate::finding::{Finding, Kind};
use crate::time::Instant;
use std::collections::BTreeMap;

/// Findings about one GPU, all of whose history is known.
pub fn findings(history: &History, rules: &Rules, as_of: Instant) -> Vec<Finding> {
    if rules.mode == Mode::Off {
        return Vec::new();
    }
    let lanes: Vec<Lane<'_>> = history.all().each().map(|slice| Lane::new(history, slice)).collect();
    let mut found = vec![first_sight(history, &lanes)];
    for judged in history.judge(rules, Instant::MIN) {
        found.extend(of_grant(history, &judged));
    }
    found.extend(history.scrubs.iter().flat_map(|scrub| of_scrub(history, &lanes, scrub)));
    found.extend(lateness_on(history, &lanes, rules.limits, as_of));
    found
}

/// One baseline a GPU: nobody knows what was in its memory before it was seen, until each of its slices was sanitised once.
fn first_sight(history: &History, lanes: &[Lane<'_>]) -> Finding {
    let cleaned = |lane: &Lane<'_>| lane.cleaned(Instant::MIN, Instant::MAX).map(|scrub| scrub.finished_at);
    let until: Option<Vec<Instant>> = lanes.iter().map(cleaned).collect();
    Finding {
        kind: Kind::ResidueUnknown,
        subject: history.gpu.to_string(),
        since: history.first,
        until: until.and_then(|until| until.into_iter().max()),
        detail: format!(
            "{}: nobody knows what its {} memory slices held before it was first seen",
            history.gpu, history.memory_slices
        ),
    }
}

fn of_grant(history: &History, judged: &Judged<'_>) -> Vec<Finding> {
    let mut slices: BTreeMap<(Kind, Last), Slices> = BTreeMap::new();
    for (slice, verdict) in &judged.slices {
        let key = match verdict {
            Verdict::Violation(last) => (Kind::ResidueViolation, last.clone()),
            Verdict::Missing(last) => (Kind::ScrubMissing, last.clone()),
            _ => continue,
        };
        let standing = slices.entry(key).or_default();
        *standing = standing.with(*slice);
    }
    let Hold { allocation, start, end, open, .. } = judged.hold;
    let owner = judged.hold.owner(*start).map(ToString::to_string).unwrap_or_default();
    let finding = |((kind, last), slices): ((Kind, Last), Slices)| Finding {
        kind,
        subject: allocation.to_string(),
        since: *start,
        until: (!open).then_some(*end),
        detail: format!(
            "allocation {allocation} ({owner}) was given memory slices {slices} of {} with {}; {}",
            history.gpu,
            in_words(&last),
            why_not(history, slices, &last, *start)
        ),
    };
    slices.into_iter().map(finding).collect()
}

/// Whose residue it is, in words.
fn in_words(last: &Last) -> String {
    match &last.left {
        Left::FirstSight => "whatever was there before anybody looked".to_owned(),
        Left::Held { tenant, allocation } => {
            format!("what allocation {allocation} ({tenant}) left at {}", last.at)
        }
        Left::Scrub(scrub) => format!("what scrub {scrub} left at {}", last.at),
        Left::Unknown(cause) => {
            format!("what nobody knows: at {} it was seen that {}", last.at, cause.as_str())
        }
        Left::Live { tenant, allocation } => format!("allocation {allocation} ({tenant}) still there"),
    }
}

/// Why the scrubs that are there do not suffice.
fn why_not(history: &History, slices: Slices, last: &Last, start: Instant) -> String {
    let since = last.at;
    let near = history.scrubs.iter().filter(|scrub| {
        !scrub.slices.and(slices).is_empty() && scrub.finished_at >= since && scrub.started_at <= start
    });
    let told: Vec<String> = near
        .take(4)
        .map(|scrub| {
            let why = match () {
                () if scrub.is_skipped() => "was skipped",
                () if !scrub.is_verified() => "did not pass with proof",
                () if scrub.started_at < since => "began too early",
                () if scrub.finished_at > start => "ended too late",
                () => "covers only a part",
            };
            format!("scrub {} {why}", scrub.scrub)
        })
        .collect();
    if told.is_empty() { "no scrub lies between".to_owned() } else { told.join(", ") }
}

/// Failed, incomplete and skipped scrubs. The first two stand until a later one passed, or a named person let the slices out.
fn of_scrub(history: &History, lanes: &[Lane<'_>], scrub: &Scrub) -> Vec<Finding> {
    if scrub.is_skipped() {
        return of_skipped(history, lanes, scrub);
    }
    if !scrub.dirties() {
        return Vec::new();
    }
    let (kind, how) = match scrub.evidence.result {
        ScrubResult::Failed => (Kind::ScrubFailed, "failed"),
        ScrubResult::Incomplete => (Kind::ScrubIncomplete, "was broken off"),
        _ => (Kind::ScrubIncomplete, "says it passed, but its evidence does not show it"),
    };
    vec![Finding {
        kind,
        subject: history.gpu.to_string(),
        since: scrub.finished_at,
        until: lifted_at(history, scrub.slices, scrub.finished_at),
        detail: format!("scrub {} of memory slices {} of {} {how}", scrub.scrub, scrub.slices, history.gpu),
    }]
}

/// About whoever was there last on the slices, else about the GPU.
fn of_skipped(history: &History, lanes: &[Lane<'_>], scrub: &Scrub) -> Vec<Finding> {
    let mut slices: BTreeMap<String, Slices> = BTreeMap::new();
    for lane in lanes.iter().filter(|lane| scrub.slices.has(lane.slice)) {
        let last = lane.last_before(scrub.finished_at, None);
        let subject = match last.map(|last| last.left) {
            Some(Left::Held { allocation, .. }) => allocation.to_string(),
            _ => history.gpu.to_string(),
        };
        let standing = slices.entry(subject).or_default();
        *standing = standing.with(lane.slice);
    }
    let finding = |(subject, slices)| Finding {
        kind: Kind::ScrubSkipped,
        subject,
        since: scrub.finished_at,
        until: Some(scrub.finished_at),
        detail: format!("scrub {} of memory slices {slices} of {} was skipped", scrub.scrub, history.gpu),
    };
    slices.into_iter().map(finding).collect()
}

/// Releases whose scrub began or passed too late. What counts is the time until somebody else got the slices, or the horizon.
pub fn lateness(history: &History, limits: Limits, as_of: Instant) -> Vec<Finding> {
    let lanes: Vec<Lane<'_>> = history.all().each().map(|slice| Lane::new(history, slice)).collect();
    lateness_on(history, &lanes, limits, as_of)
}

fn lateness_on(history: &History, lanes: &[Lane<'_>], limits: Limits, as_of: Instant) -> Vec<Finding> {
    let mut late: BTreeMap<(&Hold, Instant, Option<Instant>, &str), Slices> = BTreeMap::new();
    for lane in lanes {
        let holds: Vec<&Hold> = lane.holds().collect();
        for (index, hold) in holds.iter().enumerate().filter(|(_, hold)| !hold.open) {
            let next = holds.iter().skip(index + 1).find(|next| next.end > hold.end);
            let next = next.map(|next| next.start).filter(|next| *next <= as_of);
            for (since, until, what) in late_on(lane, hold.end, next, as_of, limits) {
                let standing = late.entry((hold, since, until, what)).or_default();
                *standing = standing.with(lane.slice);
            }
        }
    }
    let finding = |((hold, since, until, what), slices): ((&Hold, _, _, &str), Slices)| Finding {
        kind: Kind::ScrubLate,
        subject: hold.allocation.to_string(),
        since,
        until,
        detail: format!(
            "allocation {} left memory slices {slices} of {} at {}; {what}",
            hold.allocation, history.gpu, hold.end
        ),
    };
    late.into_iter().map(finding).collect()
}

/// Since when and until when a slice that was free since `freed` waited too long, and for what; `next`: when somebody else got it. A record that the scrub was
/// skipped ends the waiting.
fn late_on(
    lane: &Lane<'_>,
    freed: Instant,
    next: Option<Instant>,
    as_of: Instant,
    limits: Limits,
) -> Vec<(Instant, Option<Instant>, &'static str)> {
    let free_until = next.unwrap_or(as_of);
    let later: Vec<&Scrub> =
        lane.ended(freed, free_until).filter(|scrub| scrub.started_at >= freed).collect();
    let skipped = later.iter().filter(|scrub| scrub.is_skipped()).map(|scrub| scrub.finished_at).min();
    let passed = later.iter().filter(|scrub| scrub.is_verified()).map(|scrub| scrub.finished_at).min();
    let waits = [
        (limits.start_within_us, lane.begun(freed), "no scrub began in time"),
        (limits.pass_within_us, passed, "no scrub passed in time"),
    ];
    let late = waits.into_iter().filter_map(|(limit_us, done, what)| {
        let done = [done, skipped, next].into_iter().flatten().min();
        let due = freed.plus(limit_us);
        (done.unwrap_or(as_of) > due).then_some((due, done, what))
    });
    late.collect()
}
