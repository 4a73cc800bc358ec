//! Journals: one balanced set of entries per GPU and UTC hour, made from the GPU's timeline.

use crate::attribution::{GpuTimeline, Piece, Segment};
use crate::fact::{Account, Settings};
use crate::ids::{AllocationId, GpuId, ProjectId, TenantId};
use crate::time::{HOUR_US, Instant, Window};

/// The journal of one GPU and hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Which GPU.
    pub gpu: GpuId,
    /// Start of the UTC hour.
    pub hour: Instant,
    /// Compute slices of the GPU.
    pub compute_slices: u8,
    /// Memory slices of the GPU.
    pub memory_slices: u8,
    /// When in the hour it has capacity, in order, never touching.
    pub capacity: Vec<Window>,
    /// In order of their begin, each as long as nothing about its unit changes; together they fill the capacity in both dimensions.
    pub entries: Vec<Entry>,
}

/// One posting with its interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub window: Window,
    /// Which account.
    pub account: Account,
    /// Whose, in account `tenant`.
    pub owner: Option<EntryOwner>,
    /// Memory slices of the unit, bit k for slice k.
    pub memory_mask: u32,
    /// Compute slices of the unit.
    pub compute_slices: u8,
    /// The entry's part of the unit's time, in microseconds.
    pub part_us: i64,
}

/// Whose entry it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOwner {
    /// Which tenant.
    pub tenant: TenantId,
    /// Which project.
    pub project: Option<ProjectId>,
    /// By which allocation.
    pub allocation: AllocationId,
    /// Which unit of it.
    pub unit: u32,
}

/// The first instant not yet to be posted at a horizon: an hour is posted once the horizon is further past its end than the longer of
/// lease and observation gap, because until then silence can still change it.
pub fn postable_until(horizon: Instant, settings: Settings) -> Instant {
    let patience = settings.lease_us.max(settings.observation_gap_us);
    horizon.plus(-patience).plus(-1).floor(HOUR_US)
}

/// Journals of all hours of the timeline that end at or before `until`.
pub fn journals(gpu: &GpuId, timeline: &GpuTimeline, until: Instant) -> Vec<Journal> {
    let mut journals = Vec::new();
    let mut hour: Option<Hour<'_>> = None;
    for segment in &timeline.segments {
        for window in segment.window.split(HOUR_US).take_while(|w| w.start() < until) {
            let start = window.start().floor(HOUR_US);
            if hour.as_ref().is_none_or(|open| open.start != start) {
                journals.extend(hour.take().map(|open| open.journal(gpu)));
            }
            let new = || Hour { start, segment, capacity: Vec::new(), runs: Vec::new() };
            hour.get_or_insert_with(new).add(segment, window);
        }
    }
    journals.extend(hour.map(|open| open.journal(gpu)));
    journals
}

/// An hour under construction. A piece runs on while nothing about it changes, whatever happens beside it.
struct Hour<'t> {
    start: Instant,
    segment: &'t Segment,
    capacity: Vec<Window>,
    runs: Vec<(&'t Piece, Window)>,
}

impl<'t> Hour<'t> {
    fn add(&mut self, segment: &'t Segment, window: Window) {
        match self.capacity.last_mut() {
            Some(last) if last.end() == window.start() => *last = extended(*last, window),
            _ => self.capacity.push(window),
        }
        for piece in &segment.pieces {
            let goes_on = |(run, at): &&mut (&Piece, Window)| at.end() == window.start() && *run == piece;
            match self.runs.iter_mut().find(goes_on) {
                Some((_, at)) => *at = extended(*at, window),
                None => self.runs.push((piece, window)),
            }
        }
    }

    fn journal(self, gpu: &GpuId) -> Journal {
        let entries = self.runs.iter().flat_map(|(piece, window)| entries(self.segment, piece, *window));
        Journal {
            gpu: gpu.clone(),
            hour: self.start,
            compute_slices: self.segment.compute_slices,
            memory_slices: self.segment.memory_slices,
            entries: entries.collect(),
            capacity: self.capacity,
        }
    }
}

/// The window with the one that touches its end.
fn extended(window: Window, next: Window) -> Window {
    Window::new(window.start(), next.end()).unwrap_or(window)
}

fn entries(segment: &Segment, piece: &Piece, window: Window) -> Vec<Entry> {
    let whole = Segment { window, pieces: Vec::new(), node: segment.node.clone(), ..*segment };
    let parts = whole.parts(piece);
    let entry = |account, owner, part_us: i128| Entry {
        window,
        account,
        owner,
        memory_mask: piece.memory_mask,
        compute_slices: piece.compute_slices,
        // A part of an hour fits 64 bits many times over.
        part_us: i64::try_from(part_us).unwrap_or(i64::MAX),
    };
    let all = i128::from(window.micros());
    if piece.holders.is_empty() {
        return vec![entry(piece.account, None, all)];
    }
    let mut entries: Vec<Entry> = piece
        .holders
        .iter()
        .zip(&parts)
        .filter(|(_, part)| **part != 0)
        .map(|(holder, part)| {
            let owner = EntryOwner {
                tenant: holder.tenant.clone(),
                project: holder.project.clone(),
                allocation: holder.allocation.clone(),
                unit: holder.unit,
            };
            entry(piece.account, Some(owner), *part)
        })
        .collect();
    let rest = all - parts.iter().sum::<i128>();
    if rest != 0 {
        entries.push(entry(Account::Idle, None, rest));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MINUTE_US;

    #[test]
    fn an_hour_is_due_once_the_horizon_is_further_past_it_than_the_longer_patience_a_19() {
        let ten = Instant::from_micros(10 * HOUR_US);
        let due = |past_us: i64, settings| postable_until(ten.plus(past_us), settings);
        let usual = Settings::default();
        // The lease is an hour, the observation gap a quarter of one: the hour until 10:00 is due after 11:00.
        assert_eq!(due(HOUR_US, usual), ten.plus(-HOUR_US));
        assert_eq!(due(HOUR_US + 1, usual), ten);
        let patient = Settings { observation_gap_us: 90 * MINUTE_US, ..usual };
        assert_eq!(due(HOUR_US + 1, patient), ten.plus(-HOUR_US));
        assert_eq!(due(90 * MINUTE_US + 1, patient), ten);
    }
}
