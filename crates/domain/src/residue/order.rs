//! What is to be kept from tenants under `enforce`, and when it may go back to them.

use super::history::{History, Hold};
use super::rules::{Mode, Rules};
use super::slices::Slices;
use super::verdict::{Lane, Left};
use crate::fact::Placement;
use crate::ids::{AllocationId, ScrubId, TenantId};
use crate::time::Instant;

/// Why slices are to be kept from tenants. Each reason orders it once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A grant in violation of R-2.
    Violation {
        /// Which allocation.
        allocation: AllocationId,
        /// Which unit of it.
        unit: u32,
    },
    /// A scrub that failed or was broken off.
    Scrub(ScrubId),
}

/// An order to keep slices from tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Why.
    pub why: Why,
    /// Since when.
    pub since: Instant,
    /// The unit; none: the whole GPU.
    pub placement: Option<Placement>,
    /// The slices concerned.
    pub slices: Slices,
    /// Whom it concerns: who holds the unit, or did last; none where nobody ever did.
    pub tenant: Option<TenantId>,
}

/// What the rules order for everything that happened at `from` or later.
pub fn orders(history: &History, rules: &Rules, from: Instant) -> Vec<Order> {
    if rules.mode != Mode::Enforce {
        return Vec::new();
    }
    let of_grant = |hold: &Hold, slices: Slices| Order {
        why: Why::Violation { allocation: hold.allocation.clone(), unit: hold.unit },
        since: hold.start,
        placement: hold.placement,
        slices,
        tenant: hold.owner(hold.start).cloned(),
    };
    let judged = history.judge(rules, from);
    let violations = judged
        .iter()
        .filter(|judged| !judged.violated().is_empty())
        .map(|judged| of_grant(judged.hold, judged.violated()));
    let dirtied = history.scrubs.iter().filter(|scrub| scrub.finished_at >= from && scrub.dirties());
    let dirtied = dirtied.map(|scrub| Order {
        why: Why::Scrub(scrub.scrub.clone()),
        since: scrub.finished_at,
        placement: placement(scrub.slices, history),
        slices: scrub.slices,
        tenant: last_tenant(history, scrub.slices, scrub.started_at),
    });
    violations.chain(dirtied).collect()
}

/// When slices that are kept from tenants since `since` may go back: every one of them was sanitised by a scrub that began since then and is verified, or let
/// out by a named person. None: not yet.
pub fn lifted_at(history: &History, slices: Slices, since: Instant) -> Option<Instant> {
    let of_slice = |slice| {
        let passed = Lane::new(history, slice).cleaned(since, Instant::MAX).map(|scrub| scrub.finished_at);
        let lifted = history.lifted.iter().filter(|lifted| lifted.at >= since && lifted.slices.has(slice));
        lifted.map(|lifted| lifted.at).chain(passed).min()
    };
    let each: Option<Vec<Instant>> = slices.and(history.all()).each().map(of_slice).collect();
    each?.into_iter().max()
}

/// The placement that slices in a row make; none: the whole GPU.
fn placement(slices: Slices, history: &History) -> Option<Placement> {
    if slices == history.all() {
        return None;
    }
    let start = slices.each().next()?;
    let size = u8::try_from(slices.each().count()).ok()?;
    Some(Placement { start, size })
}

/// Who was there last before a scrub, on the first of its slices on which anybody was.
fn last_tenant(history: &History, slices: Slices, at: Instant) -> Option<TenantId> {
    slices.and(history.all()).each().find_map(|slice| {
        match Lane::new(history, slice).last_before(at, None)?.left {
            Left::Held { tenant, .. } => Some(tenant),
            _ => None,
        }
    })
}
