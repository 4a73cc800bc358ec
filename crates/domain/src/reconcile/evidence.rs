//! What speaks for a finding, minute by minute, until there is enough of it.

use super::PRESENCE_US;
use crate::finding::{Finding, Kind};
use crate::ids::{AllocationId, GpuId, NodeId};
use crate::time::{Instant, Window};
use std::collections::BTreeMap;
use std::fmt;

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Allocation(AllocationId),
    Gpu(GpuId),
    Node(NodeId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allocation(id) => id.fmt(f),
            Self::Gpu(id) => id.fmt(f),
            Self::Node(id) => id.fmt(f),
        }
    }
}

/// Minutes by kind, subject and what was seen.
#[derive(Debug, Default)]
pub(super) struct Evidence(BTreeMap<(Kind, Subject, String), Seen>);

#[derive(Debug)]
struct Seen {
    since: Instant,
    until: Instant,
    present_us: i64,
}

impl Evidence {
    /// Adds a minute in which something was seen for `present_us`.
    pub(super) fn note(
        &mut self,
        kind: Kind,
        subject: Subject,
        detail: String,
        window: Window,
        present_us: i64,
    ) {
        let fresh = Seen { since: window.start(), until: window.end(), present_us: 0 };
        let seen = self.0.entry((kind, subject, detail)).or_insert(fresh);
        seen.since = seen.since.min(window.start());
        seen.until = seen.until.max(window.end());
        seen.present_us = seen.present_us.saturating_add(present_us);
    }

    /// What was seen for long enough. It is over where the GPU was measured later without it, until `seen_until`; else it stands.
    pub(super) fn findings(self, seen_until: Instant) -> Vec<Finding> {
        let enough = self.0.into_iter().filter(|(_, seen)| seen.present_us >= PRESENCE_US);
        let finding = |((kind, subject, detail), seen): ((Kind, Subject, String), Seen)| Finding {
            kind,
            subject: subject.to_string(),
            since: seen.since,
            until: Some(seen.until).filter(|until| *until < seen_until),
            detail,
        };
        enough.map(finding).collect()
    }
}
