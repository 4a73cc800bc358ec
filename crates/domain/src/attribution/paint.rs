//! The sweep over one GPU: at each instant every slice stands in exactly one account.

use super::Context;
use super::allocations::Allocation;
use super::devices::{Device, Sighting};
use super::free::{Slices, full_mask, idle_and_stranded, instances, mask_of};
use super::life::Life;
use super::states::{Scopes, Taken, Why};
use super::timeline::{GpuTimeline, Holder, Piece, Segment};
use super::units::{Place, Unit};
use crate::fact::{Account, Placement};
use crate::finding::{Finding, Findings, Kind};
use crate::ids::{GpuId, NodeId};
use crate::share::Share;
use crate::time::{Instant, Window};
use num_rational::Ratio;
use std::collections::BTreeSet;

/// Everything about one GPU.
pub(super) struct Scene<'s, 'a> {
    pub(super) gpu: &'s GpuId,
    pub(super) device: &'s Device<'a>,
    /// Allocations with a unit on the GPU, and maybe others.
    pub(super) allocations: &'s [&'s Allocation<'a>],
    pub(super) life: &'s Life<'a>,
    pub(super) states: &'s Scopes,
    pub(super) context: &'s Context<'s>,
    pub(super) as_of: Instant,
}

/// A unit's hold on this GPU.
#[derive(Clone, Copy)]
struct Hold<'s, 'a> {
    allocation: &'s Allocation<'a>,
    unit: &'s Unit,
    placement: Option<Placement>,
    compute_slices: u8,
}

/// Sweeps over the GPU from `floor` on.
pub(super) fn paint(
    scene: &Scene<'_, '_>,
    floor: Instant,
    as_of: Instant,
    findings: &mut Findings,
) -> GpuTimeline {
    let holds = scene.holds();
    let silences = scene.silences(as_of);
    let cuts = scene.cuts(&holds, &silences, floor);
    let mut active: Vec<Hold<'_, '_>> = Vec::new();
    let mut coming = holds.iter().copied().peekable();
    let mut timeline = GpuTimeline::default();
    let (compute_slices, memory_slices) = scene.device.slices();
    for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
        let Some(window) = Window::new(*from, *to) else { continue };
        active.retain(|hold| hold.unit.end > *from);
        while let Some(hold) = coming.next_if(|hold| hold.allocation.start <= *from) {
            if hold.unit.end > *from {
                active.push(hold);
            }
        }
        if !scene.device.capacity.iter().any(|capacity| capacity.contains(*from)) {
            continue;
        }
        let Some(seen) = scene.device.seen(*from) else { continue };
        let silent = silences.iter().any(|silence| silence.contains(*from));
        let pieces = Moment { scene, seen, window, silent }.pieces(&active, findings);
        timeline.push(Segment { window, compute_slices, memory_slices, node: seen.node.clone(), pieces });
    }
    timeline
}

impl<'s, 'a> Scene<'s, 'a> {
    /// Holds on this GPU in order of (start, allocation id, unit): the order in which they take slices.
    fn holds(&self) -> Vec<Hold<'s, 'a>> {
        let mut holds = Vec::new();
        for allocation in self.allocations {
            for unit in &allocation.units {
                if let Place::Slices { gpu, placement, compute_slices } = &unit.place
                    && gpu == self.gpu
                    && unit.end > allocation.start
                {
                    holds.push(Hold {
                        allocation,
                        unit,
                        placement: *placement,
                        compute_slices: *compute_slices,
                    });
                }
            }
        }
        holds.sort_by_key(|hold| (hold.allocation.start, hold.allocation.id, hold.unit.index));
        holds
    }

    /// Stretches in which free slices are unobserved: the node silent, or the GPU missing from its inventories.
    pub(super) fn silences(&self, as_of: Instant) -> Vec<Window> {
        let mut silences = self.device.missing.clone();
        let sightings = self.device.sightings();
        // Before its first sighting a GPU is on the node of that one.
        let stays = sightings.iter().enumerate().filter_map(|(index, sighting)| {
            let from = if index == 0 { Instant::MIN } else { sighting.at };
            Some((sighting.node, Window::new(from, sightings.get(index + 1).map_or(as_of, |next| next.at))?))
        });
        let mut last: Option<(&NodeId, Vec<Window>)> = None;
        for (node, stay) in stays {
            if last.as_ref().is_none_or(|(known, _)| *known != node) {
                last = Some((node, self.life.silences(node)));
            }
            let Some((_, silent)) = &last else { continue };
            let from = silent.partition_point(|window| window.end() <= stay.start());
            silences.extend(
                silent[from..]
                    .iter()
                    .take_while(|w| w.start() < stay.end())
                    .filter_map(|w| w.intersect(stay)),
            );
        }
        silences
    }

    /// Every instant at which anything can change on this GPU.
    fn cuts(&self, holds: &[Hold<'_, '_>], silences: &[Window], floor: Instant) -> Vec<Instant> {
        let mut cuts = BTreeSet::new();
        let windows = self.device.capacity.iter().chain(silences);
        let taken = self.states.of(self.gpu).iter().map(|taken| &taken.window);
        for window in windows.chain(taken) {
            cuts.extend([window.start(), window.end()]);
        }
        for hold in holds {
            cuts.extend([hold.allocation.start, hold.unit.end]);
            cuts.extend(hold.allocation.owners.iter().map(|owner| owner.since));
        }
        cuts.extend(self.device.sightings().iter().map(|sighting| sighting.at));
        let first = self.device.capacity.first().map_or(Instant::MAX, |c| c.start().max(floor));
        cuts.insert(first);
        let last = self.device.capacity.last().map_or(Instant::MIN, |c| c.end());
        cuts.into_iter().filter(|cut| first <= *cut && *cut <= last).collect()
    }
}

/// One stretch of the sweep.
struct Moment<'m, 's, 'a> {
    scene: &'m Scene<'s, 'a>,
    seen: Sighting<'a>,
    window: Window,
    silent: bool,
}

impl Moment<'_, '_, '_> {
    fn pieces(&self, active: &[Hold<'_, '_>], findings: &mut Findings) -> Vec<Piece> {
        let mut free = self.all_slices();
        let mut pieces = self.held(active, &mut free, findings);
        let taken: Vec<&Taken> = self
            .scene
            .states
            .of(self.scene.gpu)
            .iter()
            .filter(|t| t.window.contains(self.window.start()))
            .collect();
        self.move_broken_units(&mut pieces, &taken);
        // Compute slices have no place: those of a placement are counted once, for the unit or the first scope exactly there.
        let mut counted: BTreeSet<u32> = pieces.iter().map(|piece| piece.memory_mask).collect();
        for (why, account) in [
            (Why::Fault, Account::Fault),
            (Why::Maintenance, Account::Maintenance),
            (Why::Scrub, Account::Scrub),
        ] {
            for scope in taken.iter().filter(|scope| scope.why == why) {
                let mut wanted = self.scope_slices(scope.placement);
                if scope.placement.is_some() && !counted.insert(wanted.memory_mask) {
                    wanted.compute_slices = 0;
                }
                let slices = free.take(wanted);
                self.push(&mut pieces, account, slices);
            }
        }
        if self.silent {
            self.push(&mut pieces, Account::Unobserved, free);
        } else {
            let (idle, stranded) = idle_and_stranded(free, self.seen, self.scene.context.geometry);
            self.push(&mut pieces, Account::Idle, idle);
            self.push(&mut pieces, Account::Stranded, stranded);
        }
        merge_free(pieces)
    }

    /// Lets units take slices in their order; one that touches a held slice is contested.
    fn held(&self, active: &[Hold<'_, '_>], free: &mut Slices, findings: &mut Findings) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        // A whole GPU and the one instance that takes all its slices are not the identical unit.
        let mut units: Vec<(Option<Placement>, u8)> = Vec::new();
        for hold in active {
            let wanted = self.hold_slices(hold);
            let unit = (hold.placement, wanted.compute_slices);
            let beside = units.iter().position(|held| *held == unit).and_then(|index| pieces.get_mut(index));
            if let Some(piece) = beside
                .filter(|piece| piece.shared && hold.allocation.is_shared() && piece.takes(hold.unit.share))
            {
                piece.holders.push(self.holder(hold));
                continue;
            }
            let fits = free.memory_mask & wanted.memory_mask == wanted.memory_mask
                && wanted.compute_slices <= free.compute_slices;
            if fits {
                free.take(wanted);
                let mut piece = self.piece(Account::Tenant, wanted);
                piece.shared = hold.allocation.is_shared();
                piece.holders.push(self.holder(hold));
                pieces.push(piece);
                units.push(unit);
            } else {
                self.note_contest(hold, wanted, &pieces, findings);
            }
        }
        for piece in &mut pieces {
            piece.holders.sort();
            self.note_oversubscribed(piece, findings);
        }
        pieces
    }

    /// A unit with any slice in fault or maintenance goes to that account whole.
    fn move_broken_units(&self, pieces: &mut [Piece], taken: &[&Taken]) {
        for piece in pieces {
            let touches =
                |scope: &&&Taken| scope.placement.is_none_or(|p| mask_of(p) & piece.memory_mask != 0);
            let why = taken
                .iter()
                .filter(|scope| scope.why != Why::Scrub)
                .filter(touches)
                .map(|scope| scope.why)
                .min();
            piece.account = match why {
                Some(Why::Fault) => Account::Fault,
                Some(Why::Maintenance) => Account::Maintenance,
                Some(Why::Scrub) | None => continue,
            };
            piece.holders.clear();
            piece.shared = false;
        }
    }

    fn hold_slices(&self, hold: &Hold<'_, '_>) -> Slices {
        let all = self.all_slices();
        match hold.placement {
            None => all,
            Some(placement) => {
                // A placement beyond the GPU's slices fits nowhere: it stays contested.
                Slices { memory_mask: mask_of(placement), compute_slices: hold.compute_slices }
            }
        }
    }

    fn all_slices(&self) -> Slices {
        let (compute_slices, memory_slices) = self.scene.device.slices();
        Slices { memory_mask: full_mask(memory_slices), compute_slices }
    }

    /// The slices a state or scrub is about. Compute slices of a placement are those of the instance exactly there; where there is
    /// none, memory slices only.
    fn scope_slices(&self, placement: Option<Placement>) -> Slices {
        let Some(placement) = placement else {
            return Slices { memory_mask: u32::MAX, compute_slices: u8::MAX };
        };
        let there = instances(self.seen, self.scene.context.geometry)
            .into_iter()
            .find(|(place, _)| *place == placement);
        Slices { memory_mask: mask_of(placement), compute_slices: there.map_or(0, |(_, compute)| compute) }
    }

    fn holder(&self, hold: &Hold<'_, '_>) -> Holder {
        let owner = hold.allocation.owner(self.window.start());
        Holder {
            allocation: hold.allocation.id.clone(),
            unit: hold.unit.index,
            tenant: owner.tenant.clone(),
            project: owner.project.cloned(),
            share: hold.unit.share.unwrap_or(Ratio::from_integer(1)),
            held: true,
        }
    }

    fn piece(&self, account: Account, slices: Slices) -> Piece {
        Piece {
            account,
            memory_mask: slices.memory_mask,
            compute_slices: slices.compute_slices,
            shared: false,
            holders: Vec::new(),
            since: self.window.start(),
        }
    }

    fn push(&self, pieces: &mut Vec<Piece>, account: Account, slices: Slices) {
        if !slices.is_empty() {
            pieces.push(self.piece(account, slices));
        }
    }

    /// Until when what is found lasts; none: it holds at the horizon.
    fn until(&self) -> Option<Instant> {
        Some(self.window.end()).filter(|end| *end < self.scene.as_of)
    }

    fn note_contest(&self, hold: &Hold<'_, '_>, wanted: Slices, pieces: &[Piece], findings: &mut Findings) {
        let clashing = |piece: &&Piece| piece.memory_mask & wanted.memory_mask != 0;
        // Where no memory slice clashes, the compute slices do not suffice, and all holders have them.
        let of_memory = pieces.iter().any(|piece| clashing(&piece));
        let in_the_way = pieces.iter().filter(|piece| !of_memory || clashing(piece));
        let holders: BTreeSet<&str> =
            in_the_way.flat_map(|p| &p.holders).map(|h| h.allocation.as_str()).collect();
        let by = if holders.is_empty() {
            format!("nobody, but {} does not have so many", self.scene.gpu)
        } else {
            holders.into_iter().collect::<Vec<_>>().join(", ")
        };
        findings.add(Finding {
            kind: Kind::Contested,
            subject: hold.allocation.id.to_string(),
            since: self.window.start(),
            until: self.until(),
            detail: format!(
                "allocation {} is not charged on {}: its slices are held by {by}",
                hold.allocation.id, self.scene.gpu
            ),
        });
    }

    fn note_oversubscribed(&self, piece: &Piece, findings: &mut Findings) {
        let sum: Share = piece.holders.iter().map(|h| h.share).sum();
        if sum > Ratio::from_integer(1) {
            findings.add(Finding {
                kind: Kind::Oversubscribed,
                subject: self.scene.gpu.to_string(),
                since: self.window.start(),
                until: self.until(),
                detail: format!("shares of {} add up to {sum}", self.scene.gpu),
            });
        }
    }
}

/// Pieces in a fixed order, free and broken ones of one account as one, so that equal moments look equal.
fn merge_free(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        let alike =
            merged.iter_mut().find(|m| m.account == piece.account && piece.account != Account::Tenant);
        match alike {
            Some(standing) => {
                standing.memory_mask |= piece.memory_mask;
                standing.compute_slices += piece.compute_slices;
            }
            None => merged.push(piece),
        }
    }
    merged.sort();
    merged
}
