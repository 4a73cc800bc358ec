//! When an hour is packed: pure, of what waits and of time that passes in the process.

use gpuledger_domain::time::{HOUR_US, MINUTE_US};
use gpuledger_storage::blocks::Waiting;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// An hour is over once a window ended so long after it, or the clock stands there: collectors close windows seconds after their end.
const GRACE_US: i64 = 2 * MINUTE_US;
/// Of an hour that is over, what waits is packed once nothing came for so long,
const QUIET: Duration = Duration::from_millis(500);
/// or once it waited for so long,
const LONGEST: Duration = Duration::from_secs(60);
/// or once it is so much, before compression: rows are then added to less often than windows come.
const MUCH_BYTES: i64 = 512 << 20;
/// Of an hour that is not over, once nothing came for so long: its nodes are gone, and it might never be over.
const IDLE: Duration = Duration::from_secs(120);

/// What was seen of each hour that waits.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    seen: BTreeMap<i64, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Number of its newest block.
    newest: i64,
    /// When that one was first seen.
    changed: Instant,
    /// Since when something waits.
    since: Instant,
}

impl Schedule {
    /// The hours to be packed now, oldest first. `reached_us`: the newest end of a window, or the clock where that is later, microseconds UTC.
    pub(crate) fn due(&mut self, waiting: &[Waiting], reached_us: i64, now: Instant) -> Vec<i64> {
        let before = std::mem::take(&mut self.seen);
        let mut due = Vec::new();
        for hour in waiting {
            let seen = match before.get(&hour.hour_us) {
                Some(seen) if seen.newest == hour.newest => *seen,
                Some(seen) => Seen { newest: hour.newest, changed: now, since: seen.since },
                None => Seen { newest: hour.newest, changed: now, since: now },
            };
            let is_over = reached_us >= hour.hour_us + HOUR_US + GRACE_US;
            let quiet = now.saturating_duration_since(seen.changed);
            let is_ripe = quiet >= QUIET
                || now.saturating_duration_since(seen.since) >= LONGEST
                || hour.raw_bytes >= MUCH_BYTES;
            if (is_over && is_ripe) || quiet >= IDLE {
                due.push(hour.hour_us);
            } else {
                self.seen.insert(hour.hour_us, seen);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(newest: i64, raw_bytes: i64) -> Vec<Waiting> {
        vec![Waiting { hour_us: 0, raw_bytes, newest }]
    }

    const OVER: i64 = HOUR_US + GRACE_US;
    const NONE: [i64; 0] = [];
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_hour_that_is_over_is_packed_once_it_is_quiet() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        assert_eq!(schedule.due(&waiting(1, 5), OVER, start), NONE);
        assert_eq!(schedule.due(&waiting(2, 9), OVER, start + QUIET), NONE);
        assert_eq!(schedule.due(&waiting(2, 9), OVER, start + QUIET + QUIET / 2), NONE);
        assert_eq!(schedule.due(&waiting(2, 9), OVER, start + QUIET * 2), [0]);
    }

    #[test]
    fn what_never_rests_is_packed_by_age_or_by_amount() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        assert_eq!(schedule.due(&waiting(1, MUCH_BYTES - 1), OVER, start), NONE);
        assert_eq!(schedule.due(&waiting(2, MUCH_BYTES), OVER, start), [0]);
        let mut schedule = Schedule::default();
        for (number, second) in (0..60).zip(0..) {
            assert_eq!(schedule.due(&waiting(number, 5), OVER, start + SECOND * second), NONE);
        }
        assert_eq!(schedule.due(&waiting(60, 5), OVER, start + LONGEST), [0]);
    }

    #[test]
    fn an_hour_that_is_not_over_waits_until_its_nodes_are_gone() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        let young = OVER - 1;
        assert_eq!(schedule.due(&waiting(1, MUCH_BYTES), young, start), NONE);
        assert_eq!(schedule.due(&waiting(1, MUCH_BYTES), young, start + IDLE - SECOND), NONE);
        assert_eq!(schedule.due(&waiting(1, MUCH_BYTES), young, start + IDLE), [0]);
    }
}
