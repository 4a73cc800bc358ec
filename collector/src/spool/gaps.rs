//! Which times lie between two kept windows, and why nothing of them was kept.

use super::reason::Reason;
use gpuledger_domain::time::Instant;
use gpuledger_wire::bodies::Gap;
use gpuledger_wire::text::{Name, TextError};
use gpuledger_wire::time::Time;

/// Refused times that are remembered one by one; beyond it the newest grows.
const MOST: usize = 64;

/// A time and why nothing of it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// First instant.
    pub(crate) start: Instant,
    /// First instant after it; later than `start`.
    pub(crate) end: Instant,
    /// Why.
    pub(crate) reason: Reason,
}

impl Missed {
    /// As it travels.
    pub(crate) fn gap(self) -> Result<Gap, TextError> {
        Ok(Gap { start: Time(self.start), end: Time(self.end), reason: Name::new(self.reason.word())? })
    }
}

/// Times of windows that could not be kept since the last one that was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refused(Vec<Missed>);

impl Refused {
    /// Remembers a window that was not kept.
    pub(crate) fn add(&mut self, missed: Missed) {
        if missed.start >= missed.end {
            return;
        }
        let full = self.0.len() >= MOST;
        match self.0.last_mut() {
            Some(last) if last.end == missed.start && last.reason == missed.reason => last.end = missed.end,
            Some(last) if full => last.end = last.end.max(missed.end),
            _ => self.0.push(missed),
        }
    }

    /// Nothing is missing any more: a kept window carries it.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The gaps that a window has to carry besides its `own`: what was refused, and what else lies between the end of the last kept
    /// window and its `begin`. That is so for `otherwise`.
    pub(crate) fn before(
        &self,
        last_end: Option<Instant>,
        begin: Instant,
        own: &[Gap],
        otherwise: Reason,
    ) -> Vec<Missed> {
        let mut missed = self.0.clone();
        let own = own.iter().map(|gap| (gap.start.get(), gap.end.get()));
        let mut known: Vec<(Instant, Instant)> = missed.iter().map(|m| (m.start, m.end)).chain(own).collect();
        known.sort_unstable();
        let mut at = last_end.unwrap_or(begin);
        for (start, end) in known {
            if at < start.min(begin) {
                missed.push(Missed { start: at, end: start.min(begin), reason: otherwise });
            }
            at = at.max(end);
        }
        if at < begin {
            missed.push(Missed { start: at, end: begin, reason: otherwise });
        }
        missed.sort_unstable_by_key(|m| (m.start, m.end));
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(start: i64, end: i64, reason: Reason) -> Missed {
        Missed { start: Instant::from_micros(start), end: Instant::from_micros(end), reason }
    }

    /// The gaps of a window that begins at `begin`, after one that ended at `last_end`.
    fn before(refused: &Refused, last_end: Option<i64>, begin: i64, otherwise: Reason) -> Vec<Missed> {
        refused.before(last_end.map(Instant::from_micros), Instant::from_micros(begin), &[], otherwise)
    }

    #[test]
    fn neighbours_leave_nothing_between_them() {
        let none = Refused::default();
        assert_eq!(before(&none, Some(10), 10, Reason::Stopped), []);
        assert_eq!(before(&none, None, 10, Reason::Stopped), [], "before the first window nothing is known");
        assert_eq!(before(&none, Some(15), 10, Reason::Stopped), [], "the clock was set back");
    }

    #[test]
    fn a_stop_is_a_gap_from_the_last_end_to_the_first_start() {
        let gaps = before(&Refused::default(), Some(10), 30, Reason::Stopped);
        assert_eq!(gaps, [missed(10, 30, Reason::Stopped)]);
    }

    #[test]
    fn refused_windows_keep_their_reason_and_join_their_neighbours() {
        let mut refused = Refused::default();
        refused.add(missed(20, 30, Reason::SpoolFull));
        refused.add(missed(30, 40, Reason::SpoolFull));
        refused.add(missed(40, 50, Reason::DiskFull));
        let expected = [
            missed(10, 20, Reason::NotSampled),
            missed(20, 40, Reason::SpoolFull),
            missed(40, 50, Reason::DiskFull),
            missed(50, 60, Reason::NotSampled),
        ];
        assert_eq!(before(&refused, Some(10), 60, Reason::NotSampled), expected);
        refused.clear();
        assert_eq!(before(&refused, Some(70), 70, Reason::NotSampled), []);
    }

    #[test]
    fn what_the_window_says_itself_is_not_said_twice() {
        let own = [missed(5, 25, Reason::NotSampled).gap().unwrap()];
        let (end, begin) = (Some(Instant::from_micros(10)), Instant::from_micros(30));
        let gaps = Refused::default().before(end, begin, &own, Reason::Stopped);
        assert_eq!(gaps, [missed(25, 30, Reason::Stopped)]);
    }

    #[test]
    fn a_refused_window_is_told_even_where_the_clock_was_set_back() {
        let mut refused = Refused::default();
        refused.add(missed(20, 30, Reason::DiskFull));
        assert_eq!(before(&refused, Some(90), 30, Reason::Stopped), [missed(20, 30, Reason::DiskFull)]);
    }

    #[test]
    fn memory_is_bounded_and_no_time_is_lost() {
        let mut refused = Refused::default();
        for n in 0..1_000 {
            refused.add(missed(n * 20, n * 20 + 10, Reason::DiskFull));
        }
        assert_eq!(refused.0.len(), MOST);
        assert_eq!(refused.0.last().unwrap().end, Instant::from_micros(999 * 20 + 10));
    }
}
