//! The driver's samples of processes: each row is the mean of one process over the time since the instant that was asked for.
//!
//! All rows of a reply speak of one time: from the instant asked for to the newest sample, which is the latest stamp of the reply or, where
//! the device's own ring was read just before, its newest sample. The next question begins there, so no time is told twice. Nothing new
//! in a reply means that nobody ran.

use super::{RING_US, SAMPLE_US};
use crate::window::Span;
use std::collections::BTreeSet;

/// A row by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Whose.
    pub(super) pid: u32,
    /// Its last sample that was not zero; none where the stamp makes no sense by any clock.
    pub(super) at_us: Option<u64>,
    /// Busy share.
    pub(super) percent: u32,
}

/// Why a row was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discard {
    /// Busy for more than all of the time.
    Utilization,
    /// Stamped before the time asked for, or after now.
    Timestamp,
    /// Of a process that neither NVML's list nor the kernel knows.
    UnknownPid,
    /// Of a number that went from one process to another meanwhile.
    ReusedPid,
    /// The process ended between NVML's list and the kernel's: normal.
    Vanished,
    /// Its MIG instance is not in the layout.
    NoInstance,
    /// The layout changed while rows were read.
    Torn,
}

impl Discard {
    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::Timestamp => "timestamp",
            Self::UnknownPid => "unknown_pid",
            Self::ReusedPid => "reused_pid",
            Self::Vanished => "vanished",
            Self::NoInstance => "no_instance",
            Self::Torn => "torn",
        }
    }
}

/// How far rows were told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rows {
    cursor: Option<Cursor>,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    since_us: u64,
    told_us: u64,
}

/// The busy time of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    /// Whose.
    pub(super) pid: u32,
    /// Its last sample that was not zero.
    pub(super) at_us: u64,
    /// How much, in parts per million of a microsecond.
    pub(super) amount: u128,
}

/// What a reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The time it speaks of; none where it only seeds.
    pub(super) cover: Option<Span>,
    /// Who was busy; a process without an entry was idle.
    pub(super) busy: Vec<Busy>,
    /// The rows added up to more than the time, and were scaled down.
    pub(super) is_scaled: bool,
    /// Rows left out. Of their processes nothing is known.
    pub(super) discarded: Vec<(u32, Discard)>,
}

impl Rows {
    /// Begins anew with the next reply.
    pub(super) fn reseed(&mut self) {
        self.cursor = None;
    }

    /// From which instant to ask.
    pub(super) fn since_us(self, now_us: u64) -> u64 {
        self.cursor.map_or(now_us.saturating_sub(2 * SAMPLE_US), |cursor| cursor.since_us)
    }

    /// Takes a reply that was read at an instant. `newest_us`: the newest sample of the device's ring, read before it.
    pub(super) fn read(
        &mut self,
        rows: &[Row],
        newest_us: Option<u64>,
        read_us: u64,
        is_known: impl Fn(u32) -> Result<(), Discard>,
    ) -> Told {
        let since_us = self.since_us(read_us);
        let (good, discarded) = sift(rows, since_us, read_us, is_known);
        let stamps = good.iter().map(|(_, at_us, _)| *at_us).max();
        let newest_us = newest_us.filter(|at_us| *at_us <= read_us.saturating_add(SAMPLE_US));
        let Some(end_us) = stamps.max(newest_us).map(|end_us| end_us.max(since_us)) else {
            return Told { discarded, ..self.idle(read_us) };
        };
        let next = Cursor { since_us: end_us, told_us: end_us };
        let before = self.cursor.replace(next);
        let Some(before) = before.filter(|before| end_us - before.since_us <= RING_US) else {
            return Told { discarded, ..Told::default() };
        };
        if let Some(cursor) = &mut self.cursor {
            cursor.told_us = cursor.told_us.max(before.told_us);
        }
        let Some(cover) = Span::new(before.told_us, end_us) else {
            return Told { discarded, ..Told::default() };
        };
        let (busy, is_scaled) = busy(&good, end_us - before.since_us, cover);
        Told { cover: Some(cover), busy, is_scaled, discarded }
    }

    /// Nobody had a sample that was not zero. What the last second held may still come, so it is not told yet; and the next question
    /// begins two seconds back, because a longer time would blur whole per cents.
    fn idle(&mut self, read_us: u64) -> Told {
        let settled_us = read_us.saturating_sub(SAMPLE_US);
        let asked_us = read_us.saturating_sub(2 * SAMPLE_US);
        let Some(before) = self.cursor else {
            // Not further back: a driver just loaded has no samples there, and a mean would be taken for one of a longer time.
            self.cursor = Some(Cursor { since_us: read_us, told_us: read_us });
            return Told::default();
        };
        let since_us = before.since_us.max(asked_us);
        let told_us = before.told_us.max(settled_us);
        self.cursor = Some(Cursor { since_us, told_us });
        // The ring has long forgotten what lies further back: that nobody is in it says nothing of then.
        let from_us = before.told_us.max(read_us.saturating_sub(RING_US));
        Told { cover: Span::new(from_us, told_us), ..Told::default() }
    }
}

type Good = (u32, u64, u32);

fn sift(
    rows: &[Row],
    since_us: u64,
    read_us: u64,
    is_known: impl Fn(u32) -> Result<(), Discard>,
) -> (Vec<Good>, Vec<(u32, Discard)>) {
    let (mut good, mut discarded) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for row in rows {
        match check(*row, since_us, read_us).and_then(|at_us| is_known(row.pid).map(|()| at_us)) {
            Ok(at_us) if seen.insert(row.pid) => good.push((row.pid, at_us, row.percent)),
            Ok(_) => discarded.push((row.pid, Discard::Timestamp)),
            Err(why) => discarded.push((row.pid, why)),
        }
    }
    (good, discarded)
}

fn check(row: Row, since_us: u64, read_us: u64) -> Result<u64, Discard> {
    if row.percent > 100 {
        return Err(Discard::Utilization);
    }
    let latest_us = read_us.saturating_add(SAMPLE_US);
    row.at_us.filter(|at_us| since_us < *at_us && *at_us <= latest_us).ok_or(Discard::Timestamp)
}

/// Each share is of the time since the question's instant; none can be more than the time that is told.
fn busy(good: &[Good], asked_us: u64, cover: Span) -> (Vec<Busy>, bool) {
    let sum: u128 = good.iter().map(|(_, _, percent)| u128::from(*percent)).sum();
    let is_scaled = sum > 100;
    let whole = if is_scaled { sum } else { 100 };
    let most = u128::from(cover.length_us()) * 1_000_000;
    let share = |percent: u32| u128::from(percent) * u128::from(asked_us) * 1_000_000 / whole;
    let of =
        |(pid, at_us, percent): &Good| Busy { pid: *pid, at_us: *at_us, amount: share(*percent).min(most) };
    (good.iter().map(of).collect(), is_scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn row(pid: u32, at_ms: u64, percent: u32) -> Row {
        Row { pid, at_us: Some(at_ms * 1_000), percent }
    }

    type Milliseconds = (Option<(u64, u64)>, Vec<(u32, u128)>);

    fn milliseconds(told: &Told) -> Milliseconds {
        let cover = told.cover.map(|span| (span.from_us() / 1_000, span.to_us() / 1_000));
        (cover, told.busy.iter().map(|busy| (busy.pid, busy.amount / 1_000_000_000)).collect())
    }

    fn known(_: u32) -> Result<(), Discard> {
        Ok(())
    }

    #[test]
    fn the_next_question_begins_at_the_latest_stamp_of_the_reply_not_at_the_first_row() {
        let mut rows = Rows::default();
        rows.read(&[row(1, 9_000, 10)], None, 9_100_000, known);
        let told = rows.read(&[row(1, 9_500, 50), row(2, 10_000, 25)], None, 10_100_000, known);
        assert_eq!(milliseconds(&told), (Some((9_000, 10_000)), vec![(1, 500), (2, 250)]));
        assert_eq!(rows.since_us(11 * S), 10_000_000);
    }

    #[test]
    fn the_first_reply_tells_nothing() {
        let mut rows = Rows::default();
        let told = rows.read(&[row(1, 9_000, 100)], None, 9_100_000, known);
        assert_eq!(told, Told::default());
    }

    #[test]
    fn an_empty_reply_is_idle_time_up_to_the_sample_on_its_way() {
        let mut rows = Rows::default();
        rows.read(&[], None, 9 * S, known);
        rows.read(&[], None, 10 * S, known);
        let told = rows.read(&[], None, 11 * S, known);
        assert_eq!(milliseconds(&told), (Some((9_000, 10_000)), vec![]));
        let told = rows.read(&[row(1, 12_000, 33)], None, 12 * S, known);
        assert_eq!(milliseconds(&told), (Some((10_000, 12_000)), vec![(1, 990)]), "a third of [9 s, 12 s)");
    }

    #[test]
    fn the_newest_sample_of_the_device_ends_the_time_where_the_last_samples_were_zero() {
        let mut rows = Rows::default();
        rows.read(&[], Some(9 * S), 9 * S, known);
        let told = rows.read(&[row(1, 9_500, 50)], Some(10 * S), 10 * S, known);
        assert_eq!(milliseconds(&told), (Some((9_000, 10_000)), vec![(1, 500)]));
        assert_eq!(rows.since_us(11 * S), 10 * S);
    }

    #[test]
    fn rows_of_zombies_are_left_out_and_counted() {
        let mut rows = Rows::default();
        rows.read(&[row(1, 9_000, 10)], None, 9 * S, known);
        let garbage = [row(1, 10_000, 40), row(7, 10_000, 37_100), row(8, 3, 50), row(9, 10_000, 5)];
        let only_two = |pid| if pid == 9 { Err(Discard::UnknownPid) } else { Ok(()) };
        let told = rows.read(&garbage, None, 10 * S, only_two);
        assert_eq!(milliseconds(&told).1, [(1, 400)]);
        assert_eq!(
            told.discarded,
            [(7, Discard::Utilization), (8, Discard::Timestamp), (9, Discard::UnknownPid)]
        );
    }

    #[test]
    fn more_than_all_of_the_time_is_scaled_down_and_said() {
        let mut rows = Rows::default();
        rows.read(&[row(1, 9_000, 10)], None, 9 * S, known);
        let told = rows.read(&[row(1, 10_000, 100), row(2, 10_000, 100)], None, 10 * S, known);
        assert_eq!(milliseconds(&told), (Some((9_000, 10_000)), vec![(1, 500), (2, 500)]));
        assert!(told.is_scaled);
    }

    #[test]
    fn a_pause_above_ten_seconds_is_not_told() {
        let mut rows = Rows::default();
        rows.read(&[row(1, 9_000, 10)], None, 9 * S, known);
        let told = rows.read(&[row(1, 20_000, 100)], None, 20 * S, known);
        assert_eq!((told.cover, rows.since_us(21 * S)), (None, 20 * S));
        let mut idle = Rows::default();
        idle.read(&[], None, 10 * S, known);
        let told = idle.read(&[], None, 40 * S, known);
        assert_eq!(milliseconds(&told).0, Some((30_000, 39_000)));
    }
}
