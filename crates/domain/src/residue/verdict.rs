//! What was left on each slice of a grant, and whether that needed a scrub.

use super::history::{Cause, History, Hold, Scrub};
use super::rules::Rules;
use super::slices::Slices;
use crate::ids::{AllocationId, ScrubId, TenantId};
use crate::time::Instant;
use std::collections::BTreeMap;

/// What dirtied a slice last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Last {
    /// Until when, or when it was seen: a scrub must begin at this instant or later. [`Instant::MIN`]: since before anybody looked.
    pub at: Instant,
    /// What it was.
    pub left: Left,
}

/// Whose residue it is. At one instant the later case counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Nobody looked before.
    FirstSight,
    /// A tenant's, by this allocation.
    Held {
        /// The last owner.
        tenant: TenantId,
        /// Which allocation.
        allocation: AllocationId,
    },
    /// A scrub that failed or was broken off.
    Scrub(ScrubId),
    /// Anybody's.
    Unknown(Cause),
    /// A tenant's who is still there.
    Live {
        /// The owner.
        tenant: TenantId,
        /// Which allocation.
        allocation: AllocationId,
    },
}

/// What a grant found on one slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// First sight: no violation.
    Baseline,
    /// Sanitised since.
    Clean(ScrubId),
    /// It joined holders of the same shared unit, or its own tenant.
    Beside,
    /// Another tenant of its trust group was there last.
    Trusted(Last),
    /// Its own tenant was there last, and a record says that the scrub was skipped.
    Skipped(Last, ScrubId),
    /// Its own tenant was there last, and nothing says why there was no scrub.
    Missing(Last),
    /// Somebody else was there last, or nobody knows who.
    Violation(Last),
}

/// A grant of one unit, slice by slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged<'h> {
    /// The unit's hold.
    pub hold: &'h Hold,
    /// By slice. A slice on which nothing is known since [`History::known_from`] is not among them.
    pub slices: BTreeMap<u8, Verdict>,
    /// Slices that could not be judged, because what dirtied them lies before [`History::known_from`].
    pub not_known: Slices,
}

impl Judged<'_> {
    /// Slices whose verdict is one of those wanted.
    pub fn slices_with(&self, wanted: impl Fn(&Verdict) -> bool) -> Slices {
        self.slices.iter().filter(|(_, verdict)| wanted(verdict)).map(|(slice, _)| *slice).collect()
    }

    /// Slices given in violation of R-2.
    pub fn violated(&self) -> Slices {
        self.slices_with(|verdict| matches!(verdict, Verdict::Violation(_)))
    }
}

impl History {
    /// Judges every grant that starts at `from` or later.
    pub fn judge(&self, rules: &Rules, from: Instant) -> Vec<Judged<'_>> {
        let lanes: Vec<Lane<'_>> = self.all().each().map(|slice| Lane::new(self, slice)).collect();
        let mut there: Vec<&Hold> = Vec::new();
        let mut judged = Vec::new();
        for hold in &self.holds {
            there.retain(|other| other.end > hold.start);
            if hold.start >= from {
                judged.push(judge_one(hold, &lanes, &there, rules));
            }
            there.push(hold);
        }
        judged
    }
}

fn judge_one<'h>(hold: &'h Hold, lanes: &[Lane<'h>], there: &[&Hold], rules: &Rules) -> Judged<'h> {
    let mut judged = Judged { hold, slices: BTreeMap::new(), not_known: Slices::default() };
    let wanted = lanes.iter().filter(|lane| lane.history.slices(hold.placement).has(lane.slice));
    for lane in wanted {
        match beside(hold, lane, there, rules).or_else(|| after(hold, lane, rules)) {
            Some(verdict) => drop(judged.slices.insert(lane.slice, verdict)),
            None => judged.not_known = judged.not_known.with(lane.slice),
        }
    }
    judged
}

/// What it means that others are still there when a unit is granted: nothing to those who share the identical unit or trust each other, and a violation to
/// all others, since no scrub can lie between.
fn beside(hold: &Hold, lane: &Lane<'_>, there: &[&Hold], rules: &Rules) -> Option<Verdict> {
    let owner = hold.owner(hold.start)?;
    let mut verdict = None;
    for other in there.iter().filter(|other| {
        other.allocation != hold.allocation && lane.history.slices(other.placement).has(lane.slice)
    }) {
        let together = other.shared && hold.shared && other.placement == hold.placement;
        let tenant = other.owner(hold.start)?;
        if together || tenant == owner || rules.trust(tenant, owner) {
            verdict = Some(Verdict::Beside);
        } else {
            let left = Left::Live { tenant: tenant.clone(), allocation: other.allocation.clone() };
            return Some(Verdict::Violation(Last { at: hold.start, left }));
        }
    }
    verdict
}

/// What it means who was there last.
fn after(hold: &Hold, lane: &Lane<'_>, rules: &Rules) -> Option<Verdict> {
    let last = lane.last_before(hold.start, Some((hold, rules)));
    let since = last.as_ref().map_or(lane.history.known_from, |last| last.at);
    if let Some(scrub) = lane.cleaned(since, hold.start) {
        return Some(Verdict::Clean(scrub.scrub.clone()));
    }
    let last = last?;
    let owner = hold.owner(hold.start);
    Some(match &last.left {
        Left::FirstSight => Verdict::Baseline,
        Left::Held { tenant, .. } if Some(tenant) == owner => match lane.skipped(last.at, hold.start) {
            Some(scrub) => Verdict::Skipped(last, scrub.scrub.clone()),
            None => Verdict::Missing(last),
        },
        Left::Held { tenant, .. } if owner.is_some_and(|owner| rules.trust(tenant, owner)) => {
            Verdict::Trusted(last)
        }
        _ => Verdict::Violation(last),
    })
}

/// What dirtied a slice.
#[derive(Clone, Copy)]
enum Dirt<'h> {
    Held(&'h Hold),
    Scrub(&'h Scrub),
    Unknown(Cause),
}

impl Dirt<'_> {
    /// Of several at one instant the greatest counts: nobody knows, a scrub that failed, a stranger, a friend, the tenant itself.
    fn weight(&self, to: Option<(&Hold, &Rules)>) -> u8 {
        let held = |left: &Hold| {
            let (grant, rules) = to?;
            let (tenant, owner) = (left.last_owner()?, grant.owner(grant.start)?);
            Some(if tenant == owner { 0 } else { 2 - u8::from(rules.trust(tenant, owner)) })
        };
        match self {
            Self::Unknown(_) => 4,
            Self::Scrub(_) => 3,
            Self::Held(left) => held(left).unwrap_or(2),
        }
    }

    fn left(&self) -> Option<Left> {
        Some(match self {
            Self::Held(hold) => {
                Left::Held { tenant: hold.last_owner()?.clone(), allocation: hold.allocation.clone() }
            }
            Self::Scrub(scrub) => Left::Scrub(scrub.scrub.clone()),
            Self::Unknown(cause) => Left::Unknown(*cause),
        })
    }
}

/// What one slice went through, in order of time.
pub(super) struct Lane<'h> {
    pub(super) history: &'h History,
    pub(super) slice: u8,
    dirts: Vec<(Instant, Dirt<'h>)>,
    /// In order of their end.
    pub(super) scrubs: Vec<&'h Scrub>,
    lifted: Vec<Instant>,
}

impl<'h> Lane<'h> {
    pub(super) fn new(history: &'h History, slice: u8) -> Self {
        let scrubs: Vec<&Scrub> = history.scrubs.iter().filter(|scrub| scrub.slices.has(slice)).collect();
        let held = history.holds.iter().filter(|hold| history.slices(hold.placement).has(slice));
        let held = held.map(|hold| (hold.end, Dirt::Held(hold)));
        let unknown = history.unknowns.iter().map(|unknown| (unknown.at, Dirt::Unknown(unknown.cause)));
        let failed = scrubs.iter().filter(|scrub| scrub.dirties());
        let failed = failed.map(|scrub| (scrub.finished_at, Dirt::Scrub(scrub)));
        let mut dirts: Vec<(Instant, Dirt<'_>)> = held.chain(unknown).chain(failed).collect();
        dirts.sort_by_key(|(at, _)| *at);
        let lifted = history.lifted.iter().filter(|lifted| lifted.slices.has(slice));
        Self { history, slice, dirts, scrubs, lifted: lifted.map(|lifted| lifted.at).collect() }
    }

    /// What dirtied the slice last, up to `at`, but for what the grant `to` itself did. None: nothing since [`History::known_from`], and what was
    /// before is not known.
    pub(super) fn last_before(&self, at: Instant, to: Option<(&Hold, &Rules)>) -> Option<Last> {
        let upto = self.dirts.partition_point(|(dirtied_at, _)| *dirtied_at <= at);
        let (before, _) = self.dirts.split_at(upto);
        let counts = |(since, dirt): &&(Instant, Dirt<'_>)| match dirt {
            Dirt::Held(held) => to.is_none_or(|(grant, _)| grant.allocation != held.allocation),
            Dirt::Scrub(_) => !self.is_lifted(*since, at),
            Dirt::Unknown(_) => true,
        };
        let mut counted = before.iter().rev().filter(counts).peekable();
        let latest =
            counted.peek().map(|(since, _)| *since).filter(|since| *since >= self.history.known_from);
        let Some(latest) = latest else {
            let is_first = self.history.known_from == Instant::MIN;
            return is_first.then_some(Last { at: Instant::MIN, left: Left::FirstSight });
        };
        let same_time = counted.take_while(|(since, _)| *since == latest);
        let heaviest = same_time.max_by_key(|(_, dirt)| (dirt.weight(to), dirt.left()));
        heaviest.and_then(|(at, dirt)| Some(Last { at: *at, left: dirt.left()? }))
    }

    /// The scrub that cleaned the slice by `until` of all that was there up to `since`: the first that ended.
    pub(super) fn cleaned(&self, since: Instant, until: Instant) -> Option<&'h Scrub> {
        self.ended(since, until).find(|scrub| scrub.started_at >= since && scrub.is_verified())
    }

    /// The record that says that a scrub was left out.
    fn skipped(&self, since: Instant, until: Instant) -> Option<&'h Scrub> {
        self.ended(since, until).find(|scrub| scrub.is_skipped())
    }

    /// Scrubs that ended between the two instants, both included.
    pub(super) fn ended(&self, since: Instant, until: Instant) -> impl Iterator<Item = &'h Scrub> {
        let from = self.scrubs.partition_point(|scrub| scrub.finished_at < since);
        let (_, later) = self.scrubs.split_at(from);
        later.iter().take_while(move |scrub| scrub.finished_at <= until).copied()
    }

    /// Whether a named person let the slice out between the two instants.
    pub(super) fn is_lifted(&self, since: Instant, until: Instant) -> bool {
        let from = self.lifted.partition_point(|at| *at < since);
        self.lifted.get(from).is_some_and(|at| *at <= until)
    }

    /// When the first scrub of the slice began at `since` or later, whether it ended yet or not.
    pub(super) fn begun(&self, since: Instant) -> Option<Instant> {
        let from = self.history.begun.partition_point(|(at, _)| *at < since);
        let (_, later) = self.history.begun.split_at(from);
        later.iter().find(|(_, slices)| slices.has(self.slice)).map(|(at, _)| *at)
    }

    /// Holds of the slice, in the order in which units take slices.
    pub(super) fn holds(&self) -> impl Iterator<Item = &'h Hold> {
        let (history, slice) = (self.history, self.slice);
        history.holds.iter().filter(move |hold| history.slices(hold.placement).has(slice))
    }
}
