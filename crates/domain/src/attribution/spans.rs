//! Spans: each holder's stretches over all segments of a GPU, and those of unplaced units.

use super::allocations::Allocation;
use super::timeline::{GpuTimeline, Holder, Piece, Segment};
use super::units::{Place, Unit};
use crate::fact::{Account, Class};
use crate::ids::{AllocationId, GpuId, SkuId};
use crate::share::Share;
use crate::time::{Instant, Window};
use crate::usage::{SpanPlace, Split, UsageSpan};
use std::collections::BTreeMap;

/// What the grant says of a unit, by allocation and unit.
type Terms<'t> = BTreeMap<(&'t AllocationId, u32), (&'t SkuId, Class)>;

/// Collects spans in order of allocation, unit and time.
pub(super) fn collect(gpus: &BTreeMap<GpuId, GpuTimeline>, allocations: &[Allocation<'_>]) -> Vec<UsageSpan> {
    let terms: Terms<'_> = allocations
        .iter()
        .flat_map(|a| a.units.iter().map(|u| ((a.id, u.index), (&u.sku, a.grant.class))))
        .collect();
    let mut spans = Vec::new();
    for (gpu, timeline) in gpus {
        of_gpu(gpu, timeline, &terms, &mut spans);
    }
    for allocation in allocations {
        for unit in allocation.units.iter().filter(|unit| unit.place == Place::Unplaced) {
            unplaced(allocation, unit, &mut spans);
        }
    }
    spans.sort_by(|a, b| (&a.allocation, a.unit, a.window).cmp(&(&b.allocation, b.unit, b.window)));
    spans
}

fn of_gpu(gpu: &GpuId, timeline: &GpuTimeline, terms: &Terms<'_>, spans: &mut Vec<UsageSpan>) {
    let mut open: BTreeMap<Holder, UsageSpan> = BTreeMap::new();
    for segment in &timeline.segments {
        let mut going: BTreeMap<Holder, UsageSpan> = BTreeMap::new();
        for piece in segment.pieces.iter().filter(|piece| piece.account == Account::Tenant) {
            for (position, holder) in piece.holders.iter().enumerate() {
                let Some(next) = span(gpu, segment, piece, position, terms) else { continue };
                let span = match open.remove(holder) {
                    Some(standing) => join(standing, next, spans),
                    None => next,
                };
                going.insert(holder.clone(), span);
            }
        }
        spans.extend(open.into_values());
        open = going;
    }
    spans.extend(open.into_values());
}

/// The two spans as one where only the window differs and they touch; else the first is done.
fn join(standing: UsageSpan, next: UsageSpan, done: &mut Vec<UsageSpan>) -> UsageSpan {
    let same = UsageSpan { window: standing.window, ..next.clone() } == standing;
    let touching = standing.window.end() == next.window.start();
    if let Some(window) = Window::new(standing.window.start(), next.window.end()).filter(|_| same && touching)
    {
        return UsageSpan { window, ..standing };
    }
    done.push(standing);
    next
}

fn span(
    gpu: &GpuId,
    segment: &Segment,
    piece: &Piece,
    position: usize,
    terms: &Terms<'_>,
) -> Option<UsageSpan> {
    let holder = piece.holders.get(position)?;
    let (sku, class) = terms.get(&(&holder.allocation, holder.unit))?;
    Some(UsageSpan {
        allocation: holder.allocation.clone(),
        unit: holder.unit,
        count: 1,
        tenant: holder.tenant.clone(),
        project: holder.project.clone(),
        sku: (*sku).clone(),
        class: *class,
        place: Some(SpanPlace {
            gpu: gpu.clone(),
            node: segment.node.clone(),
            compute_slices: piece.compute_slices,
            memory_slices: piece.memory_slices(),
            gpu_compute_slices: segment.compute_slices,
            gpu_memory_slices: segment.memory_slices,
        }),
        weight: Share::from_integer(1),
        window: segment.window,
        split: piece.split().map(|split| split.at(position)),
        held: true,
        state: None,
    })
}

fn unplaced(allocation: &Allocation<'_>, unit: &Unit, spans: &mut Vec<UsageSpan>) {
    let changes = allocation.owners.iter().skip(1).map(|owner| owner.since).chain([Instant::MAX]);
    for (owner, until) in allocation.owners.iter().zip(changes) {
        let Some(window) = Window::new(owner.since, until.min(unit.end)) else { continue };
        spans.push(UsageSpan {
            allocation: allocation.id.clone(),
            unit: unit.index,
            count: unit.count,
            tenant: owner.tenant.clone(),
            project: owner.project.cloned(),
            sku: unit.sku.clone(),
            class: allocation.grant.class,
            place: None,
            weight: unit.weight,
            window,
            split: unit.share.map(|share| Split::new(owner.since, &[share], 0)),
            held: true,
            state: None,
        });
    }
}
