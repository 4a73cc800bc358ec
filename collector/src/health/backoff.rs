//! When to try a GPU again that did not answer: soon, then less and less often.

/// First pause in microseconds.
const FIRST_US: u64 = 1_000_000;
/// Longest pause in microseconds: a GPU that comes back is seen within a minute.
const LONGEST_US: u64 = 60_000_000;

/// Pauses that double, from a second to a minute, and begin anew after a success. Instants are monotonic microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    pause_us: u64,
    next_us: u64,
}

impl Backoff {
    /// Whether it is time to try.
    pub const fn is_due(self, now_us: u64) -> bool {
        now_us >= self.next_us
    }

    /// When to try next.
    pub const fn next_us(self) -> u64 {
        self.next_us
    }

    /// It failed again.
    pub fn failed(&mut self, now_us: u64) {
        self.pause_us = self.pause_us.saturating_mul(2).clamp(FIRST_US, LONGEST_US);
        self.next_us = now_us.saturating_add(self.pause_us);
    }

    /// It worked.
    pub const fn worked(&mut self) {
        *self = Self { pause_us: 0, next_us: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_due(0), "the first try waits for nothing");
        let mut now_us = 0;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            backoff.failed(now_us);
            pauses.push((backoff.next_us() - now_us) / 1_000_000);
            assert!(!backoff.is_due(backoff.next_us() - 1) && backoff.is_due(backoff.next_us()));
            now_us = backoff.next_us();
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        backoff.worked();
        assert!(backoff.is_due(now_us));
        backoff.failed(now_us);
        assert_eq!(backoff.next_us() - now_us, 1_000_000);
    }
}
