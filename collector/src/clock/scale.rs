//! From the monotonic clock to UTC, without the noise between two readings.

use super::Stamp;
use gpuledger_domain::time::Instant;

/// UTC may differ so much from what the last anchor says before it counts as a jump: the two clocks of a stamp are read one after the
/// other, and the thread may lose the processor between them. Slewing does not show here: it moves both clocks alike.
const TOLERANCE_US: i64 = 50_000;

/// A fixed distance between both clocks, held until UTC is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timescale {
    offset_us: i64,
}

/// UTC was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// What UTC would be now without it.
    pub from: Instant,
    /// What it is.
    pub to: Instant,
}

impl Jump {
    /// Whether instants come twice.
    pub fn is_back(self) -> bool {
        self.to < self.from
    }
}

impl Timescale {
    /// The scale by one stamp.
    pub fn at(stamp: Stamp) -> Self {
        Self { offset_us: stamp.real.as_micros().saturating_sub(signed(stamp.monotonic_us)) }
    }

    /// Takes the next stamp. Some: UTC was set, and the scale follows it.
    pub fn follow(&mut self, stamp: Stamp) -> Option<Jump> {
        let from = self.utc(stamp.monotonic_us);
        if stamp.real.since(from).saturating_abs() <= TOLERANCE_US {
            return None;
        }
        *self = Self::at(stamp);
        Some(Jump { from, to: stamp.real })
    }

    /// The instant of a monotonic time.
    pub fn utc(self, monotonic_us: u64) -> Instant {
        Instant::from_micros(signed(monotonic_us)).plus(self.offset_us)
    }

    /// The monotonic time of an instant; 0 for what was before boot.
    pub fn monotonic_us(self, at: Instant) -> u64 {
        u64::try_from(at.as_micros().saturating_sub(self.offset_us)).unwrap_or(0)
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(monotonic_us: u64, real_us: i64) -> Stamp {
        Stamp { monotonic_us, real: Instant::from_micros(real_us) }
    }

    #[test]
    fn noise_of_reading_does_not_move_the_scale() {
        let mut scale = Timescale::at(stamp(100, 1_000_100));
        assert_eq!(scale.follow(stamp(1_000, 1_000_000 + 51_000)), None);
        assert_eq!(scale.utc(1_000), Instant::from_micros(1_001_000));
        assert_eq!(scale.monotonic_us(Instant::from_micros(1_001_000)), 1_000);
        assert_eq!(scale.monotonic_us(Instant::from_micros(7)), 0);
    }

    #[test]
    fn setting_utc_is_a_jump_either_way() {
        let mut scale = Timescale::at(stamp(0, 0));
        let on = scale.follow(stamp(1_000_000, 1_050_001)).unwrap();
        assert_eq!((on.from.as_micros(), on.to.as_micros(), on.is_back()), (1_000_000, 1_050_001, false));
        let back = scale.follow(stamp(2_000_000, 0)).unwrap();
        assert!(back.is_back());
        assert_eq!(scale.utc(2_000_000), Instant::from_micros(0));
    }
}
