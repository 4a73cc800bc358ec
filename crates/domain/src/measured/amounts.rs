//! Amounts that were measured, and the part of them that a part of the time has.

use crate::time::Window;

/// Sums of readings; absent where nothing was measured, which is not zero (M-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// SM-active time in microseconds.
    pub sm_active_us: Option<i128>,
    /// Bytes times microseconds.
    pub memory_byte_us: Option<i128>,
    /// Millijoules.
    pub energy_mj: Option<i128>,
    /// Held time that readings of SM-active time cover, in microseconds.
    pub covered_us: i128,
}

impl Amounts {
    /// Adds what was measured elsewhere.
    pub fn add(&mut self, more: &Self) {
        let sum = |a: Option<i128>, b: Option<i128>| a.map_or(b, |a| Some(a + b.unwrap_or_default()));
        self.sm_active_us = sum(self.sm_active_us, more.sm_active_us);
        self.memory_byte_us = sum(self.memory_byte_us, more.memory_byte_us);
        self.energy_mj = sum(self.energy_mj, more.energy_mj);
        self.covered_us += more.covered_us;
    }

    /// The part of amounts over `whole` that `part` of it has. Parts of a whole add up to it.
    #[must_use]
    pub fn cut(&self, whole: Window, part: Window) -> Self {
        let slice = Slice {
            before_us: i128::from(part.start().since(whole.start())),
            own_us: i128::from(part.micros()),
            all_us: i128::from(whole.micros()),
        };
        Self {
            sm_active_us: self.sm_active_us.map(|n| slice.of(n)),
            memory_byte_us: self.memory_byte_us.map(|n| slice.of(n)),
            energy_mj: self.energy_mj.map(|n| slice.of(n)),
            covered_us: slice.of(self.covered_us),
        }
    }
}

/// A stretch of something that is spread evenly.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) before_us: i128,
    pub(super) own_us: i128,
    pub(super) all_us: i128,
}

impl Slice {
    /// The stretch's part of `total`: the difference of two prefixes, each rounded half up.
    pub(super) fn of(self, total: i128) -> i128 {
        let prefix = |upto: i128| (2 * total * upto + self.all_us).div_euclid(2 * self.all_us);
        prefix(self.before_us + self.own_us) - prefix(self.before_us)
    }
}
