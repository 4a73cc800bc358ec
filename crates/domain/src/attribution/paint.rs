//! The sweep over one GPU: at each instant every slice stands in exactly one account.

use super::Context;
use super::allocations::{Allocation, Place, Unit};
use super::devices::{Device, Sighting};
use super::free::{Slices, full_mask, idle_and_stranded, instances, mask_of};
use super::life::Life;
use super::states::{Scopes, Taken, Why};
use crate::fact::{Account, Placement, Posting};
use crate::finding::{Finding, Findings, Kind};
use crate::ids::{AllocationId, GpuId, NodeId, ProjectId, TenantId};
use crate::share::{Share, have_common_measure};
use crate::time::{Instant, Window};
use crate::usage::Split;
use num_rational::Ratio;
use std::collections::BTreeSet;

/// What stands where on one GPU, in order of time; touching segments differ. Where the GPU has no capacity there is no segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuTimeline {
    /// In order of time, disjoint.
    pub segments: Vec<Segment>,
}

/// A stretch in which nothing changes on the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When.
    pub window: Window,
    /// Compute slices of the GPU.
    pub compute_slices: u8,
    /// Memory slices of the GPU.
    pub memory_slices: u8,
    /// The node it is on.
    pub node: NodeId,
    /// Who has what; together all slices, each once.
    pub pieces: Vec<Piece>,
}

/// Some slices of a GPU in one account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// Which account; a shared unit's free rest is idle beside its `tenant` holders.
    pub account: Account,
    /// Memory slices, bit k for slice k.
    pub memory_mask: u32,
    /// Number of compute slices.
    pub compute_slices: u8,
    /// Whether the unit can be shared.
    pub shared: bool,
    /// Who holds it, in order of allocation id; none unless the account is `tenant`.
    pub holders: Vec<Holder>,
    /// Since when holders and account of a shared unit are what they are: cells are cut there (M-3).
    pub since: Instant,
}

/// One holder of a unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// By which allocation.
    pub allocation: AllocationId,
    /// Which unit of it.
    pub unit: u32,
    /// Who owns it here.
    pub tenant: TenantId,
    /// For which project.
    pub project: Option<ProjectId>,
    /// Share of the unit; 1 where nothing else was granted.
    pub share: Share,
}

impl Piece {
    /// How the time of a shared unit is split, seen by its first holder; none for a unit held alone.
    pub fn split(&self) -> Option<Split> {
        let alone = !self.shared && self.holders.first().is_none_or(|h| h.share == Ratio::from_integer(1));
        if alone || self.holders.is_empty() {
            return None;
        }
        let shares: Vec<Share> = self.holders.iter().map(|h| h.share).collect();
        Some(Split::new(self.since, &shares, 0))
    }

    /// Whether another share can be split together with those that are held.
    fn takes(&self, share: Option<Share>) -> bool {
        have_common_measure(self.holders.iter().map(|holder| holder.share).chain(share))
    }

    /// Number of memory slices.
    pub fn memory_slices(&self) -> u8 {
        Slices { memory_mask: self.memory_mask, compute_slices: 0 }.memory_slices()
    }
}

/// Everything about one GPU.
pub(super) struct Scene<'s, 'a> {
    pub(super) gpu: &'s GpuId,
    pub(super) device: &'s Device<'a>,
    pub(super) allocations: &'s [Allocation<'a>],
    pub(super) life: &'s Life<'a>,
    pub(super) states: &'s Scopes,
    pub(super) context: &'s Context<'s>,
}

/// A unit's hold on this GPU.
#[derive(Clone, Copy)]
struct Hold<'s, 'a> {
    allocation: &'s Allocation<'a>,
    unit: &'s Unit,
    placement: Option<Placement>,
    compute_slices: u8,
}

/// Sweeps over the GPU.
pub(super) fn paint(scene: &Scene<'_, '_>, as_of: Instant, findings: &mut Findings) -> GpuTimeline {
    let holds = scene.holds();
    let silences = scene.silences(as_of);
    let cuts = scene.cuts(&holds, &silences);
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
    fn silences(&self, as_of: Instant) -> Vec<Window> {
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
    fn cuts(&self, holds: &[Hold<'_, '_>], silences: &[Window]) -> Vec<Instant> {
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
        let first = self.device.capacity.first().map_or(Instant::MAX, |c| c.start());
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

    fn note_contest(&self, hold: &Hold<'_, '_>, wanted: Slices, pieces: &[Piece], findings: &mut Findings) {
        let clashing = |piece: &&Piece| piece.memory_mask & wanted.memory_mask != 0;
        let holders: BTreeSet<&str> =
            pieces.iter().filter(clashing).flat_map(|p| &p.holders).map(|h| h.allocation.as_str()).collect();
        let by = if holders.is_empty() {
            "other units".to_owned()
        } else {
            holders.into_iter().collect::<Vec<_>>().join(", ")
        };
        findings.add(Finding {
            kind: Kind::Contested,
            subject: hold.allocation.id.to_string(),
            since: self.window.start(),
            until: Some(self.window.end()),
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
                until: Some(self.window.end()),
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

impl GpuTimeline {
    /// Adds the next segment: a unit that goes on unchanged keeps its `since`, and a segment that changes nothing joins the last.
    fn push(&mut self, mut segment: Segment) {
        if let Some(last) =
            self.segments.last_mut().filter(|last| last.window.end() == segment.window.start())
        {
            for piece in &mut segment.pieces {
                let before = last.pieces.iter().find(|p| {
                    (p.account, p.memory_mask, p.compute_slices, p.shared)
                        == (piece.account, piece.memory_mask, piece.compute_slices, piece.shared)
                        && p.holders == piece.holders
                });
                piece.since = before.map_or(piece.since, |p| p.since);
            }
            segment.pieces.sort();
            let same = last.pieces == segment.pieces
                && (last.compute_slices, last.memory_slices, &last.node)
                    == (segment.compute_slices, segment.memory_slices, &segment.node);
            if let Some(joined) = Window::new(last.window.start(), segment.window.end()).filter(|_| same) {
                last.window = joined;
                return;
            }
        }
        self.segments.push(segment);
    }

    /// The part of the timeline inside `window`. Parts of a timeline add up to it.
    #[must_use]
    pub fn cut(&self, window: Window) -> Self {
        let inside = |segment: &Segment| {
            Some(Segment { window: segment.window.intersect(window)?, ..segment.clone() })
        };
        Self { segments: self.segments.iter().filter_map(inside).collect() }
    }

    /// Postings of every holder and account, in order of time.
    pub fn postings(&self) -> Vec<Posting> {
        self.segments.iter().flat_map(Segment::postings).collect()
    }
}

impl Segment {
    /// Who has how much of the segment's time: parts of a shared unit are exact, and its free rest is idle.
    pub fn postings(&self) -> Vec<Posting> {
        self.pieces.iter().flat_map(|piece| self.postings_of(piece)).collect()
    }

    fn postings_of(&self, piece: &Piece) -> Vec<Posting> {
        let all = i128::from(self.window.micros());
        let post = |account, holder: Option<&Holder>, part_us: i128| Posting {
            window: self.window,
            account,
            tenant: holder.map(|h| h.tenant.clone()),
            allocation: holder.map(|h| h.allocation.clone()),
            compute_slice_us: part_us * i128::from(piece.compute_slices),
            memory_slice_us: part_us * i128::from(piece.memory_slices()),
        };
        let parts = self.parts(piece);
        if piece.holders.is_empty() {
            return vec![post(piece.account, None, all)];
        }
        let mut postings: Vec<Posting> = piece
            .holders
            .iter()
            .zip(&parts)
            .map(|(holder, part)| post(piece.account, Some(holder), *part))
            .collect();
        let rest = all - parts.iter().sum::<i128>();
        if rest > 0 {
            postings.push(post(Account::Idle, None, rest));
        }
        postings
    }

    /// The conserved part of each holder of a piece, in microseconds; what is left of a shared unit is idle.
    pub fn parts(&self, piece: &Piece) -> Vec<i128> {
        match piece.split() {
            None => piece.holders.iter().map(|_| i128::from(self.window.micros())).collect(),
            Some(split) => (0..piece.holders.len())
                .map(|position| split.at(position).conserved_us(self.window))
                .collect(),
        }
    }
}
