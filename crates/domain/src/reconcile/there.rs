//! Who was where in one minute.

use crate::attribution::{GpuTimeline, Piece, Segment};
use crate::fact::{Account, Placement};
use crate::ids::AllocationId;
use crate::time::Window;
use std::collections::BTreeSet;

/// Whose some slices of a GPU were, over a whole window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum There<'t> {
    /// Nobody's, and fit for use: idle or stranded.
    Free,
    /// All of them of one unit, whose holders did not change.
    Held {
        /// Who held it, by id.
        holders: Vec<&'t AllocationId>,
        /// Whether it can be shared.
        shared: bool,
    },
    /// It changed, it is told of parts of several units, or the slices were not in use: scrubbed, broken, without capacity.
    Unclear,
}

/// Memory slices of a placement on a GPU with `slices` of them, as a mask; none: all.
pub(super) fn mask_of(placement: Option<Placement>, slices: u8) -> u32 {
    let run = |size: u8| 1_u32.checked_shl(u32::from(size)).map_or(u32::MAX, |end| end - 1);
    placement
        .map_or_else(|| run(slices), |at| run(at.size).checked_shl(u32::from(at.start)).unwrap_or_default())
}

/// Whose the slices were that `mask` makes of the GPU's number of memory slices.
pub(super) fn there(timeline: &GpuTimeline, window: Window, mask: impl Fn(u8) -> u32) -> There<'_> {
    let from = timeline.segments.partition_point(|segment| segment.window.end() <= window.start());
    let over = timeline.segments[from..].iter().take_while(|segment| segment.window.start() < window.end());
    let segments: Vec<&Segment> = over.collect();
    let covered: i64 = segments.iter().filter_map(|s| s.window.intersect(window)).map(Window::micros).sum();
    if covered != window.micros() {
        return There::Unclear;
    }
    let each: Vec<There<'_>> = segments.iter().map(|s| in_segment(s, mask(s.memory_slices))).collect();
    match each.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => first.clone(),
        _ => There::Unclear,
    }
}

fn in_segment(segment: &Segment, mask: u32) -> There<'_> {
    let touched: Vec<&Piece> = segment.pieces.iter().filter(|piece| piece.memory_mask & mask != 0).collect();
    if touched.iter().all(|piece| matches!(piece.account, Account::Idle | Account::Stranded)) {
        return if touched.is_empty() { There::Unclear } else { There::Free };
    }
    match touched[..] {
        [piece] if piece.account == Account::Tenant && piece.memory_mask & mask == mask => {
            let holders: BTreeSet<&AllocationId> =
                piece.holders.iter().filter(|holder| holder.held).map(|holder| &holder.allocation).collect();
            There::Held { holders: holders.into_iter().collect(), shared: piece.shared }
        }
        _ => There::Unclear,
    }
}
