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
    /// Shares over 1 in all.
    Oversubscribed,
    /// Running on a node nobody heard of for longer than the observation gap.
    Unconfirmed,
    /// A node silent for longer than the lease.
    LostNode,
    /// Telemetry sequences that never came.
    Gap,
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
            Self::Oversubscribed => "oversubscribed",
            Self::Unconfirmed => "unconfirmed",
            Self::LostNode => "lost_node",
            Self::Gap => "gap",
            Self::Unpriced => "unpriced",
        }
    }

    /// How much it matters.
    pub const fn severity(self) -> Severity {
        match self {
            Self::ZeroLength | Self::Future | Self::Waiting => Severity::Info,
            Self::Conflict
            | Self::NotEntitled
            | Self::LateRefused
            | Self::Unpriced
            | Self::UnknownTenant
            | Self::Contested => Severity::Critical,
            Self::BadValue
            | Self::ReleaseWithoutGrant
            | Self::TransferAfterEnd
            | Self::EndBeforeStart
            | Self::PlacementMismatch
            | Self::Oversubscribed
            | Self::Unconfirmed
            | Self::LostNode
            | Self::Gap => Severity::Warning,
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

/// Findings, one per kind and subject: a second one widens the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(BTreeMap<(Kind, String), Finding>);

impl Findings {
    /// Adds a finding, or widens the one that stands.
    pub fn add(&mut self, finding: Finding) {
        let key = (finding.kind, finding.subject.clone());
        let Some(standing) = self.0.get_mut(&key) else {
            self.0.insert(key, finding);
            return;
        };
        if finding.since < standing.since {
            standing.detail = finding.detail;
        }
        standing.since = standing.since.min(finding.since);
        standing.until = match (standing.until, finding.until) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
    }

    /// Adds all of `more`.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Finding>) {
        more.into_iter().for_each(|finding| self.add(finding));
    }

    /// All of them, by kind and subject.
    pub fn into_vec(self) -> Vec<Finding> {
        self.0.into_values().collect()
    }
}
