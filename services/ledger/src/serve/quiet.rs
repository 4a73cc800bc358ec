//! Waiting until something that comes in bursts is over.

use std::time::{Duration, Instant};

/// Tells by a count that only grows whether it still grows.
pub(super) struct Quiet {
    longest: Duration,
    seen: u64,
    since: Option<Instant>,
}

impl Quiet {
    /// One that waits for quiet no longer than this.
    pub(super) fn within(longest: Duration) -> Self {
        Self { longest, seen: 0, since: None }
    }

    /// Whether the count stands where the last look found it, or it was waited for long enough.
    pub(super) fn has_come(&mut self, count: u64, now: Instant) -> bool {
        let grows = count != std::mem::replace(&mut self.seen, count);
        if grows && now.saturating_duration_since(*self.since.get_or_insert(now)) < self.longest {
            return false;
        }
        self.since = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_comes_once_the_count_stands_or_after_the_longest_wait() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut quiet = Quiet::within(Duration::from_secs(10));
        assert!(quiet.has_come(0, after(0)), "nothing came yet");
        assert!(!quiet.has_come(3, after(1)));
        assert!(!quiet.has_come(5, after(10)));
        assert!(quiet.has_come(5, after(10)), "it stands");
        assert!(!quiet.has_come(6, after(20)), "a new burst has its own time");
        assert!(!quiet.has_come(7, after(29)));
        assert!(quiet.has_come(8, after(30)), "waited for long enough");
    }
}
