//! Who held a slice before and after an instant, and what lies between: the answer to "who was here before me".

use super::history::{History, Hold, Scrub, Unknown};
use super::verdict::Lane;
use crate::ids::{AllocationId, TenantId};
use crate::time::Instant;

/// A holder of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Which allocation.
    pub allocation: AllocationId,
    /// Its owner: the last one of a holder before, the first one of a holder after.
    pub tenant: Option<TenantId>,
    /// When it was granted.
    pub start: Instant,
    /// When it ended; none: it runs.
    pub end: Option<Instant>,
}

/// A slice around an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between<'h> {
    /// Which slice.
    pub slice: u8,
    /// Who was there last before the instant; nobody since the GPU was first seen.
    pub before: Option<Side>,
    /// Who got it at the instant or later.
    pub after: Option<Side>,
    /// Scrubs that ended since the holder before left, up to the grant of the one after.
    pub scrubs: Vec<&'h Scrub>,
    /// What made its content unknown in that time.
    pub unknowns: Vec<Unknown>,
}

/// What lies around `at` on one slice. A grant at `at` itself is the holder after.
pub fn between(history: &History, slice: u8, at: Instant) -> Between<'_> {
    let lane = Lane::new(history, slice);
    let before = lane.holds().filter(|hold| hold.start < at).max_by_key(|hold| hold.end);
    let after = lane.holds().find(|hold| hold.start >= at);
    let since = before.map_or(Instant::MIN, |hold| hold.end.min(at));
    let until = after.map_or(Instant::MAX, |hold| hold.start);
    let unknowns = history.unknowns.iter().filter(|unknown| since <= unknown.at && unknown.at <= until);
    Between {
        slice,
        before: before.map(|hold| side(hold, hold.last_owner().cloned())),
        after: after.map(|hold| side(hold, hold.owner(hold.start).cloned())),
        scrubs: lane.ended(since, until).collect(),
        unknowns: unknowns.copied().collect(),
    }
}

fn side(hold: &Hold, tenant: Option<TenantId>) -> Side {
    Side {
        allocation: hold.allocation.clone(),
        tenant,
        start: hold.start,
        end: (!hold.open).then_some(hold.end),
    }
}
