//! The system's clocks.

use super::{Clock, Stamp};
use gpuledger_domain::time::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// The clocks of the system: time since boot, and UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// Between the two readings of one stamp the thread may lose the processor; a pair further apart than this is read again.
const APART_US: i64 = 100;
/// So often at most: on a crowded node a pair that is a little apart is better than none.
const ATTEMPTS: u32 = 4;

impl Clock for RealClock {
    fn now(&self) -> Stamp {
        let mut stamp = read();
        for _ in 1..ATTEMPTS {
            if micros(clock_gettime(SINCE_BOOT)) - i64::try_from(stamp.monotonic_us).unwrap_or(i64::MAX)
                <= APART_US
            {
                break;
            }
            stamp = read();
        }
        stamp
    }

    fn sleep_until(&self, monotonic_us: u64) {
        loop {
            let left_us = monotonic_us.saturating_sub(read().monotonic_us);
            if left_us == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(left_us));
        }
    }
}

fn read() -> Stamp {
    let since_boot = micros(clock_gettime(SINCE_BOOT));
    let real = micros(clock_gettime(ClockId::Realtime));
    Stamp { monotonic_us: u64::try_from(since_boot).unwrap_or(0), real: Instant::from_micros(real) }
}

fn micros(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back_and_a_sleep_reaches_its_instant() {
        let before = RealClock.now();
        RealClock.sleep_until(before.monotonic_us + 2_000);
        let after = RealClock.now();
        assert!(after.monotonic_us >= before.monotonic_us + 2_000);
        assert!(after.real.as_micros() > 1_600_000_000_000_000, "{}", after.real);
    }
}
