//! How fast: pauses after failures, and a bucket for what has piled up. Both are functions of the instants they are given.

use super::settings::PublishSettings;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Growing pauses with jitter.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    current: Duration,
}

impl Backoff {
    pub(crate) fn new(settings: &PublishSettings) -> Self {
        let first = Duration::from_millis(settings.first_pause_ms.max(1).into());
        let longest = Duration::from_millis(settings.longest_pause_ms.into()).max(first);
        Self { first, longest, current: first }
    }

    /// It works again.
    pub(crate) fn reset(&mut self) {
        self.current = self.first;
    }

    /// The next pause: half of it at least, so that it grows; the rest by chance, so that nodes do not come back together. Not less
    /// than what the sink asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let half = self.current / 2;
        self.current = self.current.saturating_mul(2).min(self.longest);
        let pause = half.saturating_add(share(half, chance()));
        asked.map_or(pause, |asked| asked.saturating_add(share(half, chance())).max(pause))
    }
}

/// 0 to 65535, evenly.
fn chance() -> u16 {
    let bytes = Uuid::new_v4().into_bytes();
    u16::from_le_bytes([bytes[0], bytes[1]])
}

/// `chance` of 65536 parts.
fn share(whole: Duration, chance: u16) -> Duration {
    whole.saturating_mul(chance.into()) / 65_536
}

/// Lets records through at an even rate, and as many at once as a second has.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// Time of one record; none: no bound.
    each: Option<Duration>,
    /// When the bucket is full again.
    full_at: Instant,
}

impl Bucket {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self { each: Duration::from_secs(1).checked_div(per_second), full_at: now }
    }

    /// When so many records may go that are ready `now`.
    pub(crate) fn take(&mut self, records: usize, now: Instant) -> Instant {
        let Some(each) = self.each else { return now };
        let cost = each.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        self.full_at = self.full_at.max(now) + cost;
        // What a second holds goes at once; the rest when it has come together.
        let due = self.full_at.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        due.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let settings =
            PublishSettings { first_pause_ms: 100, longest_pause_ms: 1_000, ..PublishSettings::default() };
        let mut backoff = Backoff::new(&settings);
        for whole in [100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.next(None);
            let (low, high) = (Duration::from_millis(whole / 2), Duration::from_millis(whole));
            assert!(low <= pause && pause <= high, "{pause:?} is not within {low:?}..={high:?}");
        }
        backoff.reset();
        assert!(backoff.next(None) <= Duration::from_millis(100));
        assert!(backoff.next(Some(Duration::from_secs(5))) >= Duration::from_secs(5));
    }

    #[test]
    fn a_second_goes_at_once_and_the_rest_evenly() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, start);
        assert_eq!(bucket.take(10, start), start);
        assert_eq!(bucket.take(10, start), start + Duration::from_secs(1));
        assert_eq!(bucket.take(5, start), start + Duration::from_millis(1_500));
        let later = start + Duration::from_secs(60);
        assert_eq!(bucket.take(10, later), later, "what was not used does not pile up");
        assert_eq!(bucket.take(10, later), later + Duration::from_secs(1));
        assert_eq!(Bucket::new(0, start).take(1_000_000, start), start);
    }
}
