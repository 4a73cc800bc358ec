//! The timeline of a GPU: what the sweep finds, in stretches, and what each stretch comes to.

use super::free::Slices;
use crate::fact::{Account, Posting};
use crate::ids::{AllocationId, NodeId, ProjectId, TenantId};
use crate::share::{Share, have_common_measure};
use crate::time::{Instant, Window};
use crate::usage::Split;
use num_rational::Ratio;

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
    /// Who holds it, in order of allocation id, then who is served of it, in order of tenant and project; none unless the account is `tenant`.
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
    /// Share of the unit; 1 where nothing else was granted. In a pool the part of the unit's time that its policy gives, which may be 0.
    pub share: Share,
    /// Whether it holds the unit. One whom a work pool serves has a part of the time and holds nothing.
    pub held: bool,
}

impl Piece {
    /// How the time of a shared unit is split, seen by its first holder; none for a unit held alone.
    pub fn split(&self) -> Option<Split> {
        if !self.shared && self.holders.iter().all(|h| h.share == Ratio::from_integer(1)) {
            return None;
        }
        let shares: Vec<Share> = self.holders.iter().map(|h| h.share).collect();
        Some(Split::new(self.since, &shares, 0))
    }

    /// Whether another share can be split together with those that are held.
    pub(super) fn takes(&self, share: Option<Share>) -> bool {
        have_common_measure(self.holders.iter().map(|holder| holder.share).chain(share))
    }

    /// First memory slice.
    pub fn memory_start(&self) -> u8 {
        u8::try_from(self.memory_mask.trailing_zeros()).unwrap_or_default()
    }

    /// Number of memory slices.
    pub fn memory_slices(&self) -> u8 {
        Slices { memory_mask: self.memory_mask, compute_slices: 0 }.memory_slices()
    }
}

impl GpuTimeline {
    /// Adds the next segment: a unit that goes on unchanged keeps its `since`, and a segment that changes nothing joins the last.
    pub(super) fn push(&mut self, mut segment: Segment) {
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
        if rest != 0 {
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
