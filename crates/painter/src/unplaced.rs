//! Units whose devices nobody named: outside the balance, billed the same.

use crate::facts::Facts;
use crate::gpu::Fleet;
use crate::holds::{owners, slots};
use crate::shares;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::AllocationId;
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use std::collections::BTreeMap;

/// Time of the unplaced units of one allocation, all units added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnplacedTime {
    /// Held, in microseconds.
    pub held_us: i128,
    /// Held after shares, in microseconds.
    pub billed_us: i128,
}

/// The time of the unplaced units of each allocation that has some and held them, as of `as_of`. They end only by release, by a
/// snapshot of all nodes, or at `as_of`. The order of `facts` and repetitions in it change nothing.
pub fn unplaced(facts: &[Fact], geometry: &Geometry, as_of: Instant) -> BTreeMap<AllocationId, UnplacedTime> {
    let facts = Facts::acting(facts, as_of);
    let fleet = Fleet::read(&facts);
    let mut times = BTreeMap::new();
    for (id, allocation) in &facts.allocations {
        let end = facts.end_in_words(allocation, |_, _| false).unwrap_or(as_of);
        let owners = owners(id, allocation, &facts);
        let changes: Vec<Instant> = owners
            .windows(2)
            .filter(|pair| (pair[0].tenant, pair[0].project) != (pair[1].tenant, pair[1].project))
            .map(|pair| pair[1].from)
            .collect();
        for slot in slots(id, allocation, &facts, &fleet, geometry).iter().filter(|s| s.device.is_none()) {
            let time: &mut UnplacedTime = times.entry((*id).clone()).or_default();
            let share = slot.share.unwrap_or_else(|| Share::from_integer(1));
            for piece in cut(allocation.fact.at, end, &changes) {
                time.held_us += i128::from(piece.micros());
                time.billed_us += shares::parts(piece.micros(), &[share]).0.iter().sum::<i128>();
            }
        }
    }
    times.retain(|_, time| time.held_us > 0);
    times
}

/// `[start, end)` cut at quarters of an hour and at the `changes`.
fn cut(start: Instant, end: Instant, changes: &[Instant]) -> Vec<Window> {
    let mut edges: Vec<Instant> = changes.iter().copied().filter(|at| *at > start && *at < end).collect();
    edges.extend([start, end]);
    edges.sort();
    let spans = edges.windows(2).filter_map(|pair| Window::new(pair[0], pair[1]));
    spans.flat_map(shares::cells).collect()
}
