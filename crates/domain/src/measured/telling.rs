//! By which names process owners tell the holder of a span, and how the hold lies in the minutes at its edges.

use crate::fact::Runtime;
use crate::ids::{AllocationId, GpuId};
use crate::time::{Instant, MINUTE_US, Window};
use crate::usage::{Telling, UsageSpan};
use std::collections::BTreeMap;

/// A unit, and one name of who holds it.
type Key<'s> = (&'s GpuId, u8, u8, Runtime);

/// Fills in `telling` of spans that hold a placed unit, by the names in the grants of their allocations. What a process owner used in a minute
/// belongs to all spans of its name there, so each knows how long the others of that name held the unit in the minute before and behind it.
pub(crate) fn note_telling<'a>(
    spans: &mut [UsageSpan],
    grants: impl Iterator<Item = (&'a AllocationId, &'a Runtime)>,
) {
    let named: BTreeMap<&AllocationId, &Runtime> =
        grants.filter(|(_, runtime)| **runtime != Runtime::default()).collect();
    for (index, telling) in tellings(spans, &named) {
        let alone = spans[index].telling.alone;
        spans[index].telling = Telling { alone, ..telling };
    }
}

fn tellings(spans: &[UsageSpan], named: &BTreeMap<&AllocationId, &Runtime>) -> Vec<(usize, Telling)> {
    let mut groups: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
    for (index, span) in spans.iter().enumerate().filter(|(_, span)| span.held) {
        if let (Some(place), Some(runtime)) = (&span.place, named.get(&span.allocation)) {
            let key = (&place.gpu, place.memory_start, place.memory_slices, (*runtime).clone());
            groups.entry(key).or_default().push(index);
        }
    }
    let of_group = |((_, _, _, runtime), mut group): (Key<'_>, Vec<usize>)| {
        group.sort_by_key(|index| spans[*index].window);
        let mut apart: Vec<(usize, Window)> = Vec::new();
        for index in group {
            let window = spans[index].window;
            // Two shares of one job on one unit: the first has all that the owner tells, so that it is counted once.
            if apart.last().is_none_or(|(_, last)| last.end() <= window.start()) {
                apart.push((index, window));
            }
        }
        let telling = |(place, (index, window)): (usize, &(usize, Window))| {
            let before_us =
                held_us(apart[..place].iter().rev(), window.start().floor(MINUTE_US), window.start());
            let after_us = held_us(apart[place + 1..].iter(), window.end(), window.end().ceil(MINUTE_US));
            (*index, Telling { runtime: runtime.clone(), alone: false, before_us, after_us })
        };
        apart.iter().enumerate().map(telling).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// How much of `[from, to)`, at most a minute, the neighbours fill; the nearest comes first.
fn held_us<'w>(neighbours: impl Iterator<Item = &'w (usize, Window)>, from: Instant, to: Instant) -> u32 {
    let Some(edge) = Window::new(from, to) else { return 0 };
    let inside = neighbours.map_while(|(_, window)| window.intersect(edge));
    u32::try_from(inside.map(Window::micros).sum::<i64>()).unwrap_or(u32::MAX)
}
