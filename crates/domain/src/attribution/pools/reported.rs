//! Reported work of the pools that divide by it, weighed window by window.

use crate::fact::{Fact, FactBody};
use crate::pool::{Policy, Pool, Weighed, Work, WorkKind, WorkWindow, weigh};
use crate::share::Share;
use crate::time::{Instant, Window};
use std::collections::BTreeMap;

/// Work pools by id.
pub(super) struct Reported<'a>(BTreeMap<&'a str, Reports<'a>>);

/// The reports of one pool.
struct Reports<'a> {
    weights: &'a BTreeMap<WorkKind, Share>,
    window: WorkWindow,
    /// By the number of bits of their length, each in order of their start: what overlaps a window starts at most such a length before it.
    by_length: BTreeMap<u32, Vec<&'a Work>>,
    /// Each window that was asked for. Every unit of the pool asks for the same ones.
    weighed: BTreeMap<Instant, Weighed>,
}

impl<'a> Reported<'a> {
    pub(super) fn new(facts: &[&'a Fact], pools: impl Iterator<Item = (&'a str, &'a Pool)>) -> Self {
        let mut reported: BTreeMap<&str, Reports<'_>> = BTreeMap::new();
        for (name, pool) in pools {
            if let Policy::Work { weights, window } = &pool.policy {
                let (by_length, weighed) = (BTreeMap::new(), BTreeMap::new());
                reported.insert(name, Reports { weights, window: *window, by_length, weighed });
            }
        }
        for fact in facts {
            if let FactBody::Work(work) = &fact.body
                && let Some(reports) = reported.get_mut(work.pool.as_str())
            {
                reports.by_length.entry(bits(work.end.since(work.start))).or_default().push(work);
            }
        }
        let lists = reported.values_mut().flat_map(|reports| reports.by_length.values_mut());
        lists.for_each(|list| list.sort_by_key(|work| work.start));
        Self(reported)
    }

    /// What the work of the pool weighs in its window that contains `at`; none for a pool that divides otherwise.
    pub(super) fn at(&mut self, pool: &str, at: Instant) -> Option<&Weighed> {
        let Reports { weights, window, by_length, weighed } = self.0.get_mut(pool)?;
        let start = at.floor(window.micros());
        let window = Window::new(start, start.plus(window.micros()))?;
        Some(weighed.entry(start).or_insert_with(|| weigh(near(by_length, window), weights, window)))
    }
}

/// Every report that may overlap the window, and few others.
fn near<'r, 'a>(
    by_length: &'r BTreeMap<u32, Vec<&'a Work>>,
    window: Window,
) -> impl Iterator<Item = &'a Work> + use<'r, 'a> {
    by_length.iter().flat_map(move |(bits, reports)| {
        let longest = 1_i64.checked_shl(*bits).filter(|length| *length > 0).unwrap_or(i64::MAX);
        let from = reports.partition_point(|work| work.start.plus(longest) <= window.start());
        reports[from..].iter().copied().take_while(move |work| work.start < window.end())
    })
}

/// A length of `bits` bits is below 2^bits.
fn bits(length_us: i64) -> u32 {
    i64::BITS - length_us.max(0).leading_zeros()
}
