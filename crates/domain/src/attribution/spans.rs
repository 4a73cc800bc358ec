//! Spans: each holder's stretches over all segments of a GPU, those of unplaced units, and the billing state of each.

mod states;

use super::allocations::Allocation;
use super::pools::Pooling;
use super::timeline::{GpuTimeline, Holder, Piece, Segment};
use super::units::{Place, Unit};
use crate::fact::{Account, Class};
use crate::ids::{AllocationId, GpuId, ProjectId, SkuId, TenantId};
use crate::measured::note_telling;
use crate::share::Share;
use crate::time::{CELL_US, Instant, Window};
use crate::usage::{SpanPlace, Split, Telling, UsageSpan};
use std::collections::BTreeMap;

/// What the grant says of a unit, by allocation and unit.
type Terms<'t> = BTreeMap<(&'t AllocationId, u32), (&'t SkuId, Class)>;

/// Collects spans in order of allocation, unit, time, tenant and project.
pub(super) fn collect(
    gpus: &BTreeMap<GpuId, GpuTimeline>,
    allocations: &[Allocation<'_>],
    pooling: &mut Pooling<'_>,
) -> Vec<UsageSpan> {
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
            unplaced(allocation, unit, pooling, &mut spans);
        }
    }
    let mut spans = states::cut(spans, allocations);
    spans.iter_mut().for_each(begin_with_the_cell);
    spans.sort_by(|a, b| order(a).cmp(&order(b)));
    note_telling(&mut spans, allocations.iter().map(|a| (a.id, &a.grant.runtime)));
    spans
}

/// What changed before a cell cuts nothing in it (M-3): a split that began earlier says so no longer, so that spans are equal from wherever
/// they were painted.
fn begin_with_the_cell(span: &mut UsageSpan) {
    let cell = span.window.start().floor(CELL_US);
    if let Some(split) = &mut span.split {
        split.since = split.since.max(cell);
    }
}

type Order<'s> = (&'s AllocationId, u32, Window, &'s TenantId, &'s Option<ProjectId>, bool);

fn order(span: &UsageSpan) -> Order<'_> {
    (&span.allocation, span.unit, span.window, &span.tenant, &span.project, span.held)
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
            memory_start: piece.memory_start(),
            compute_slices: piece.compute_slices,
            memory_slices: piece.memory_slices(),
            gpu_compute_slices: segment.compute_slices,
            gpu_memory_slices: segment.memory_slices,
        }),
        weight: Share::from_integer(1),
        window: segment.window,
        split: piece.split().map(|split| split.at(position)),
        held: holder.held,
        state: None,
        telling: Telling { alone: !piece.shared && holder.held, ..Telling::default() },
    })
}

/// What the unit of an unplaced grant comes to: the owners one after another, and in a pool whom it serves.
fn unplaced(allocation: &Allocation<'_>, unit: &Unit, pooling: &mut Pooling<'_>, spans: &mut Vec<UsageSpan>) {
    let changes = allocation.owners.iter().skip(1).map(|owner| owner.since).chain([Instant::MAX]);
    for (owner, until) in allocation.owners.iter().zip(changes) {
        let Some(window) = Window::new(owner.since, until.min(unit.end)) else { continue };
        let alone = Holder {
            allocation: allocation.id.clone(),
            unit: unit.index,
            tenant: owner.tenant.clone(),
            project: owner.project.cloned(),
            share: unit.share.unwrap_or(Share::from_integer(1)),
            held: true,
        };
        if pooling.has(allocation.id) {
            for (cell, holders) in pooling.cells(None, &[alone], window) {
                let shares: Vec<Share> = holders.iter().map(|holder| holder.share).collect();
                let split = Split::new(cell.start(), &shares, 0);
                let whole = shares == [Share::from_integer(1)];
                for (position, holder) in holders.iter().enumerate() {
                    let split = Some(split.at(position)).filter(|_| !whole);
                    spans.push(unplaced_span(allocation, unit, holder, cell, split));
                }
            }
        } else {
            let split = unit.share.map(|share| Split::new(owner.since, &[share], 0));
            spans.push(unplaced_span(allocation, unit, &alone, window, split));
        }
    }
}

fn unplaced_span(
    allocation: &Allocation<'_>,
    unit: &Unit,
    holder: &Holder,
    window: Window,
    split: Option<Split>,
) -> UsageSpan {
    UsageSpan {
        allocation: holder.allocation.clone(),
        unit: holder.unit,
        count: unit.count,
        tenant: holder.tenant.clone(),
        project: holder.project.clone(),
        sku: unit.sku.clone(),
        class: allocation.grant.class,
        place: None,
        weight: unit.weight,
        window,
        split,
        held: holder.held,
        state: None,
        telling: Telling::default(),
    }
}
