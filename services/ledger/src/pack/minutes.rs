//! The minutes of a window. Collectors cut windows at UTC minutes; a longer one is divided evenly over its time.

use gpuledger_domain::time::{Instant, MINUTE_US};
use gpuledger_wire::window::Window;

/// A minute of a window, or what it has of one.
pub(crate) struct Part<'w> {
    window: &'w Window<'w>,
    /// First instant.
    pub(crate) from: Instant,
    to: Instant,
}

/// The parts of a window in their order; one where it has no length.
pub(crate) fn parts<'w>(window: &'w Window<'_>) -> impl Iterator<Item = Part<'w>> {
    let mut next = Some(window.start);
    std::iter::from_fn(move || {
        let from = next?;
        let to = from.floor(MINUTE_US).plus(MINUTE_US).min(window.end);
        next = Some(to).filter(|to| *to < window.end);
        Some(Part { window, from, to })
    })
}

impl Part<'_> {
    /// Whether the window begins with it: what was seen at most counts there.
    pub(crate) fn is_first(&self) -> bool {
        self.from == self.window.start
    }

    /// What of an amount falls into it: the difference of what falls before its edges, so that the parts add up.
    pub(crate) fn of(&self, amount: u128) -> u128 {
        let until = |at: Instant| {
            let length = u128::from(self.window.length_us().unsigned_abs());
            let passed = u128::from(at.since(self.window.start).unsigned_abs());
            if length == 0 || passed >= length {
                return amount;
            }
            // Amounts end at 10^36, and an hour has less than 2^32 microseconds: the whole times go first.
            amount / length * passed + amount % length * passed / length
        };
        if self.is_first() { until(self.to) } else { until(self.to) - until(self.from) }
    }

    /// As [`Part::of`], for amounts that end at 2^64.
    pub(crate) fn narrow(&self, amount: u64) -> u64 {
        u64::try_from(self.of(u128::from(amount))).unwrap_or(u64::MAX)
    }
}
