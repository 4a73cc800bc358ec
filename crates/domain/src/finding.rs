//! Findings: what a person should look at. Derived from facts at a horizon, never stored (I-6).

use crate::time::Instant;
use std::collections::BTreeMap;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Should be looked at.
    Warning,
    /// Money or evidence is at stake.
    Critical,
}

impl Severity {
    /// The word used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What kind of thing was found; the words are those of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One identity or one allocation id with two contents.
    Conflict,
    /// Further ahead of the clock than the skew bound.
    Future,
    /// Said by a source that may not say it.
    NotEntitled,
    /// Would change a period closed too long ago.
    LateRefused,
    /// Could not be read.
    BadValue,
    /// Lacks a companion that may still come.
    Waiting,
    /// A tenant nobody applied.
    UnknownTenant,
    /// A release of an allocation nobody granted.
    ReleaseWithoutGrant,
    /// A transfer of what has ended.
    TransferAfterEnd,
    /// Released at the instant of its grant.
    ZeroLength,
    /// Released before its grant only.
    EndBeforeStart,
    /// Would have shared a slice that is held.
    Contested,
    /// Not where the inventory says, or more devices than granted.
    PlacementMismatch,
    /// A MIG profile, or a model that can be cut, in no table of geometry.
    UnknownProfile,
    /// Shares over 1 in all.
    Oversubscribed,
    /// Running on a node nobody heard of for longer than the observation gap.
    Unconfirmed,
    /// A node silent for longer than the lease.
    LostNode,
    /// Telemetry that never came, or could not be read.
    Gap,
    /// Dated after it was received, or windows of one unit that overlap.
    ClockSkew,
    /// Allocator and node disagree who is there.
    OwnerMismatch,
    /// Use of a unit that no allocation holds.
    Unattributed,
    /// A process of another job or pod on a unit that is held alone.
    ForeignProcess,
    /// A process of an allocation that was released.
    HeldAfterRelease,
    /// Held, measured, and not used.
    IdleAllocation,
    /// Seen for the first time: nobody knows what is in its memory.
    ResidueUnknown,
    /// Granted with what somebody else may have left there.
    ResidueViolation,
    /// Granted again to its last tenant, with neither a scrub nor a record that says why.
    ScrubMissing,
    /// A scrub that began or passed too long after the release.
    ScrubLate,
    /// A scrub that left, or may have left, residue.
    ScrubFailed,
    /// A scrub that was broken off, or that passed without the evidence of it.
    ScrubIncomplete,
    /// Granted again to its last tenant without a scrub, as a record says.
    ScrubSkipped,
    /// Used, and no rate card has a price.
    Unpriced,
}

impl Kind {
    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Future => "future",
            Self::NotEntitled => "not_entitled",
            Self::LateRefused => "late_refused",
            Self::BadValue => "bad_value",
            Self::Waiting => "waiting",
            Self::UnknownTenant => "unknown_tenant",
            Self::ReleaseWithoutGrant => "release_without_grant",
            Self::TransferAfterEnd => "transfer_after_end",
            Self::ZeroLength => "zero_length",
            Self::EndBeforeStart => "end_before_start",
            Self::Contested => "contested",
            Self::PlacementMismatch => "placement_mismatch",
            Self::UnknownProfile => "unknown_profile",
            Self::Oversubscribed => "oversubscribed",
            Self::Unconfirmed => "unconfirmed",
            Self::LostNode => "lost_node",
            Self::Gap => "gap",
            Self::ClockSkew => "clock_skew",
            Self::OwnerMismatch => "owner_mismatch",
            Self::Unattributed => "unattributed",
            Self::ForeignProcess => "foreign_process",
            Self::HeldAfterRelease => "held_after_release",
            Self::IdleAllocation => "idle_allocation",
            Self::ResidueUnknown => "residue_unknown",
            Self::ResidueViolation => "residue_violation",
            Self::ScrubMissing => "scrub_missing",
            Self::ScrubLate => "scrub_late",
            Self::ScrubFailed => "scrub_failed",
            Self::ScrubIncomplete => "scrub_incomplete",
            Self::ScrubSkipped => "scrub_skipped",
            Self::Unpriced => "unpriced",
        }
    }

    /// How much it matters.
    pub const fn severity(self) -> Severity {
        match self {
            Self::ZeroLength
            | Self::Future
            | Self::Waiting
            | Self::IdleAllocation
            | Self::ResidueUnknown
            | Self::ScrubSkipped => Severity::Info,
            Self::Conflict
            | Self::NotEntitled
            | Self::LateRefused
            | Self::Unpriced
            | Self::UnknownTenant
            | Self::ForeignProcess
            | Self::ResidueViolation
            | Self::ScrubFailed
            | Self::Contested => Severity::Critical,
            Self::BadValue
            | Self::ReleaseWithoutGrant
            | Self::TransferAfterEnd
            | Self::EndBeforeStart
            | Self::PlacementMismatch
            | Self::UnknownProfile
            | Self::Oversubscribed
            | Self::Unconfirmed
            | Self::LostNode
            | Self::Gap
            | Self::ClockSkew
            | Self::OwnerMismatch
            | Self::Unattributed
            | Self::ScrubMissing
            | Self::ScrubLate
            | Self::ScrubIncomplete
            | Self::HeldAfterRelease => Severity::Warning,
        }
    }
}

/// One thing found, as it holds at the horizon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The allocation, else the GPU, else the node, else the tenant, else `source id`.
    pub subject: String,
    /// Since when.
    pub since: Instant,
    /// Until when; none: still so.
    pub until: Option<Instant>,
    /// In words.
    pub detail: String,
}

/// Details that one finding spells out; further ones are counted only.
const MOST_DETAILS: usize = 8;

/// Findings, one per kind and subject: a second one widens the first and adds its detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(BTreeMap<(Kind, String), Standing>);

/// What stands under one kind and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    since: Instant,
    until: Option<Instant>,
    /// Each detail once, with the earliest instant it was found for.
    details: BTreeMap<String, Instant>,
}

impl Findings {
    /// Adds a finding, or widens the one that stands. The order of adding changes nothing.
    pub fn add(&mut self, finding: Finding) {
        let Finding { kind, subject, since, until, detail } = finding;
        let standing = self.0.entry((kind, subject)).or_insert_with(|| Standing {
            since,
            until,
            details: BTreeMap::new(),
        });
        standing.since = standing.since.min(since);
        standing.until = standing.until.zip(until).map(|(a, b)| a.max(b));
        standing.details.entry(detail).and_modify(|first| *first = (*first).min(since)).or_insert(since);
    }

    /// Adds all of `more`.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Finding>) {
        more.into_iter().for_each(|finding| self.add(finding));
    }

    /// All of them, by kind and subject.
    pub fn into_vec(self) -> Vec<Finding> {
        let finding = |((kind, subject), standing): ((Kind, String), Standing)| Finding {
            kind,
            subject,
            since: standing.since,
            until: standing.until,
            detail: spelled_out(standing.details),
        };
        self.0.into_iter().map(finding).collect()
    }
}

/// Details in order of time, the later ones of many as a number.
fn spelled_out(details: BTreeMap<String, Instant>) -> String {
    let mut details: Vec<(Instant, String)> = details.into_iter().map(|(text, at)| (at, text)).collect();
    details.sort();
    let more = details.len().saturating_sub(MOST_DETAILS);
    let mut texts: Vec<String> = details.into_iter().take(MOST_DETAILS).map(|(_, text)| text).collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contested(second: i64, detail: &str) -> Finding {
        let at = |second: i64| Instant::from_micros(second * 1_000_000);
        Finding {
            kind: Kind::Contested,
            subject: "a-3".to_owned(),
            since: at(second),
            until: Some(at(second + 1)),
            detail: detail.to_owned(),
        }
    }

    fn all(findings: &[Finding]) -> Vec<Finding> {
        let mut all = Findings::default();
        all.extend(findings.iter().cloned());
        all.into_vec()
    }

    #[test]
    fn one_finding_names_all_that_was_found_in_whatever_order() {
        let found = [contested(2, "held by a-2"), contested(1, "held by a-10"), contested(3, "held by a-1")];
        let one = all(&found);
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].detail, "held by a-10; held by a-2; held by a-1");
        assert_eq!((one[0].since, one[0].until), (contested(1, "").since, contested(3, "").until));
        let backwards: Vec<Finding> = found.iter().rev().cloned().collect();
        assert_eq!(all(&backwards), one);
    }

    #[test]
    fn the_same_detail_stands_once_and_many_are_counted() {
        let same = all(&[contested(1, "held by a-1"), contested(5, "held by a-1")]);
        assert_eq!(same[0].detail, "held by a-1");
        let many: Vec<Finding> = (0..11).map(|n| contested(n, &format!("held by b-{n}"))).collect();
        assert!(all(&many)[0].detail.ends_with("held by b-7; and 3 more"));
    }
}
