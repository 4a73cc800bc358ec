//! The clock of the driver's samples: UTC on most drivers, time since boot on some. It is found out, never assumed.

use crate::clock::{Stamp, Timescale};

/// By which clock the driver stamps its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Utc,
    SinceBoot,
}

/// Samples lie within this of now: rings are seconds long, and a process that accounting knows began after the boot.
const NEAR_US: u64 = 3_600_000_000;

/// Converts between the driver's stamps and the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DriverTime {
    domain: Option<Domain>,
}

impl DriverTime {
    /// Whether the clock is known.
    pub(super) fn is_known(self) -> bool {
        self.domain.is_some()
    }

    /// Learns the clock from a fresh sample.
    pub(super) fn learn(&mut self, stamp_us: u64, now: Stamp) {
        if self.domain.is_some() {
            return;
        }
        let utc = u64::try_from(now.real.as_micros()).unwrap_or(0);
        let (to_utc, to_boot) = (utc.abs_diff(stamp_us), now.monotonic_us.abs_diff(stamp_us));
        self.domain = (to_utc.min(to_boot) <= NEAR_US).then_some(if to_utc <= to_boot {
            Domain::Utc
        } else {
            Domain::SinceBoot
        });
    }

    /// A driver's stamp as monotonic time; none while the clock is not known.
    pub(super) fn monotonic_us(self, stamp_us: u64, scale: Timescale) -> Option<u64> {
        match self.domain? {
            Domain::SinceBoot => Some(stamp_us),
            Domain::Utc => {
                let at = gpuledger_domain::time::Instant::from_micros(i64::try_from(stamp_us).ok()?);
                Some(scale.monotonic_us(at))
            }
        }
    }

    /// Monotonic time as the driver would stamp it. While the clock is not known: as time since boot, which a driver that stamps by UTC
    /// takes for long ago, so that nothing is missed.
    pub(super) fn stamp_us(self, monotonic_us: u64, scale: Timescale) -> u64 {
        match self.domain {
            Some(Domain::Utc) => u64::try_from(scale.utc(monotonic_us).as_micros()).unwrap_or(0),
            Some(Domain::SinceBoot) | None => monotonic_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::time::Instant;

    const NOW: Stamp = Stamp { monotonic_us: 5_000_000, real: Instant::from_micros(1_790_000_000_000_000) };

    #[test]
    fn the_clock_is_learnt_from_a_sample() {
        let scale = Timescale::at(NOW);
        let mut utc = DriverTime::default();
        utc.learn(1_790_000_000_000_000 - 200_000, NOW);
        assert_eq!(utc.monotonic_us(1_790_000_000_000_000 - 200_000, scale), Some(4_800_000));
        assert_eq!(utc.stamp_us(4_800_000, scale), 1_790_000_000_000_000 - 200_000);
        let mut boot = DriverTime::default();
        boot.learn(4_900_000, NOW);
        assert_eq!(boot.monotonic_us(4_900_000, scale), Some(4_900_000));
    }

    #[test]
    fn garbage_teaches_nothing() {
        let mut time = DriverTime::default();
        time.learn(1_000_000_000_000_000, NOW);
        assert!(!time.is_known());
    }
}
