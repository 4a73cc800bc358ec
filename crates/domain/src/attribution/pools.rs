//! Pools: what the sweep found is cut where a pool's windows are, and holders get what their pool's policy gives them.
//!
//! A unit goes on as long as nothing about it changes, whatever happens elsewhere on its GPU. Each such run is cut into cells, each cell is
//! divided once into whole microseconds, and the parts stand as shares of the cell's length: journals, spans and usage split them like any
//! other shared unit, and reads add up wherever they cut.

mod cell;
mod measured;
mod reported;

use super::Context;
use super::allocations::Allocation;
use super::timeline::{GpuTimeline, Holder, Piece, Segment};
use super::units::Place;
use crate::fact::{Account, Fact, Placement, Runtime};
use crate::ids::{AllocationId, GpuId};
use crate::pool::{Idle, Policy, Pool};
use crate::time::{CELL_US, Instant, Window};
use measured::Measured;
use reported::Reported;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that pools are divided by.
pub(super) struct Pooling<'a> {
    /// Allocations whose pool divides otherwise than by share.
    members: BTreeMap<&'a AllocationId, Member<'a>>,
    /// Where the units of members stand; none: the whole GPU.
    places: BTreeMap<(&'a AllocationId, u32), Option<Placement>>,
    reported: Reported<'a>,
    measured: Measured<'a>,
}

/// What the grant of an allocation in a pool says.
struct Member<'a> {
    name: &'a str,
    pool: &'a Pool,
    runtime: &'a Runtime,
}

/// A stretch of time with unchanged holders.
pub(super) type Cell = (Window, Vec<Holder>);

/// One unit, for as long as it goes on unchanged.
struct Run<'t> {
    piece: &'t Piece,
    window: Window,
}

impl<'a> Pooling<'a> {
    pub(super) fn new(facts: &[&'a Fact], allocations: &[Allocation<'a>], context: &Context<'a>) -> Self {
        let mut members = BTreeMap::new();
        let mut places = BTreeMap::new();
        for allocation in allocations {
            let Some(member) = Member::of(allocation, context).filter(Member::divides) else { continue };
            members.insert(allocation.id, member);
            for unit in &allocation.units {
                if let Place::Slices { placement, .. } = &unit.place {
                    places.insert((allocation.id, unit.index), *placement);
                }
            }
        }
        let names: BTreeSet<&str> = members.values().map(|member: &Member<'_>| member.name).collect();
        let pools = names.into_iter().filter_map(|name| Some((name, context.pools.get(name)?)));
        let reported = Reported::new(facts, pools);
        let measured = Measured::new(context.measured);
        Self { members, places, reported, measured }
    }

    /// The timeline with the pieces of pools divided.
    pub(super) fn divide(&mut self, gpu: &GpuId, timeline: GpuTimeline) -> GpuTimeline {
        let (runs, run_of) = self.runs(&timeline);
        if runs.is_empty() {
            return timeline;
        }
        let cells: Vec<Vec<Cell>> =
            runs.iter().map(|run| self.cells(Some(gpu), &run.piece.holders, run.window)).collect();
        let mut divided = GpuTimeline::default();
        for (index, segment) in timeline.segments.iter().enumerate() {
            let cells = |piece: usize| run_of.get(&(index, piece)).map(|run| cells[*run].as_slice());
            cut(segment, &cells).into_iter().for_each(|part| divided.push(part));
        }
        divided
    }

    /// Whether the pool of an allocation divides its units otherwise than by share.
    pub(super) fn has(&self, allocation: &AllocationId) -> bool {
        self.members.contains_key(allocation)
    }

    /// Runs of the units that pools divide, and which of them each piece of each segment belongs to.
    fn runs<'t>(&self, timeline: &'t GpuTimeline) -> (Vec<Run<'t>>, BTreeMap<(usize, usize), usize>) {
        let mut runs: Vec<Run<'_>> = Vec::new();
        let mut run_of = BTreeMap::new();
        let mut going: Vec<usize> = Vec::new();
        for (index, segment) in timeline.segments.iter().enumerate() {
            let mut here = Vec::new();
            for (position, piece) in
                segment.pieces.iter().enumerate().filter(|(_, piece)| self.acts_on(piece))
            {
                let before = going.iter().copied().find(|run| runs[*run].goes_on(piece, segment.window));
                let run = before.unwrap_or(runs.len());
                match before.and_then(|run| runs.get_mut(run)) {
                    Some(run) => run.extend(segment.window),
                    None => runs.push(Run { piece, window: segment.window }),
                }
                run_of.insert((index, position), run);
                here.push(run);
            }
            going = here;
        }
        (runs, run_of)
    }

    fn acts_on(&self, piece: &Piece) -> bool {
        let by_holder = |holder: &Holder| {
            self.members.get(&holder.allocation).is_some_and(|m| m.pool.policy != Policy::Entitlement)
        };
        let idle = || self.common(&piece.holders).is_some_and(|pool| pool.idle != Idle::Provider);
        piece.account == Account::Tenant && (piece.holders.iter().any(by_holder) || idle())
    }

    /// The one pool that all holders are in.
    fn common(&self, holders: &[Holder]) -> Option<&'a Pool> {
        let first = self.members.get(&holders.first()?.allocation)?;
        let same =
            |holder: &Holder| self.members.get(&holder.allocation).is_some_and(|m| m.name == first.name);
        holders.iter().all(same).then_some(first.pool)
    }

    /// `time`, over which a unit has these holders, in cells with what each gets; neighbours that divide alike are one. `gpu`: where the unit
    /// stands; none: nobody knows.
    pub(super) fn cells(&mut self, gpu: Option<&GpuId>, holders: &[Holder], time: Window) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for window in time.split(self.step(holders)) {
            let divided = self.divided(gpu, holders, window);
            match cells.last_mut().filter(|(_, same)| *same == divided) {
                Some((last, _)) => *last = Window::new(last.start(), window.end()).unwrap_or(*last),
                None => cells.push((window, divided)),
            }
        }
        cells
    }

    /// The shortest window of the holders' work pools: each divides the longer ones, and the cell of M-3.
    fn step(&self, holders: &[Holder]) -> i64 {
        let members = holders.iter().filter_map(|holder| self.members.get(&holder.allocation));
        let windows = members.filter_map(|member| match &member.pool.policy {
            Policy::Work { window, .. } => Some(window.micros()),
            Policy::Entitlement | Policy::Measured => None,
        });
        windows.min().unwrap_or(CELL_US)
    }
}

impl<'a> Member<'a> {
    fn of(allocation: &Allocation<'a>, context: &Context<'a>) -> Option<Self> {
        let (name, pool) = context.pools.get_key_value(allocation.grant.pool.as_deref()?)?;
        Some(Self { name, pool, runtime: &allocation.grant.runtime })
    }

    fn divides(&self) -> bool {
        self.pool.policy != Policy::Entitlement || self.pool.idle != Idle::Provider
    }
}

impl Run<'_> {
    fn goes_on(&self, piece: &Piece, window: Window) -> bool {
        let unit = |piece: &Piece| (piece.account, piece.memory_mask, piece.compute_slices, piece.shared);
        self.window.end() == window.start()
            && unit(self.piece) == unit(piece)
            && self.piece.holders == piece.holders
    }

    fn extend(&mut self, window: Window) {
        self.window = Window::new(self.window.start(), window.end()).unwrap_or(self.window);
    }
}

/// The segment in parts, cut where a cell of one of its pieces ends.
fn cut<'c>(segment: &Segment, cells: &impl Fn(usize) -> Option<&'c [Cell]>) -> Vec<Segment> {
    let inside = |piece: usize| {
        let cells = cells(piece).unwrap_or_default();
        let from = cells.partition_point(|(window, _)| window.end() <= segment.window.start());
        cells[from..].iter().take_while(|(window, _)| window.start() < segment.window.end())
    };
    let mut edges: BTreeSet<Instant> = BTreeSet::from([segment.window.start(), segment.window.end()]);
    for (window, _) in (0..segment.pieces.len()).flat_map(inside) {
        edges.extend([window.start()].into_iter().filter(|edge| segment.window.contains(*edge)));
    }
    let windows = edges.iter().zip(edges.iter().skip(1)).filter_map(|(from, to)| Window::new(*from, *to));
    let part = |window: Window| {
        let piece = |(position, piece): (usize, &Piece)| {
            let cells = cells(position).unwrap_or_default();
            let next = cells.partition_point(|(cell, _)| cell.start() <= window.start());
            match next.checked_sub(1).and_then(|index| cells.get(index)) {
                Some((cell, holders)) => {
                    Piece { holders: holders.clone(), since: cell.start(), ..piece.clone() }
                }
                None => piece.clone(),
            }
        };
        let mut pieces: Vec<Piece> = segment.pieces.iter().enumerate().map(piece).collect();
        pieces.sort();
        Segment { window, pieces, node: segment.node.clone(), ..*segment }
    };
    windows.map(part).collect()
}

#[cfg(test)]
mod tests;
