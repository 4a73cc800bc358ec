//! The ring of the device's utilisation samples: one after the other, without a hole while it is read often enough.

use super::SAMPLE_US;
use crate::window::Span;

/// A sample by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// When it was taken; it speaks of the time since the one before it.
    pub(super) at_us: u64,
    /// Busy share of that time.
    pub(super) percent: u32,
}

/// How far the ring was told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    told_us: Option<u64>,
}

/// Samples are not taken to the microsecond.
const LONGEST_US: u64 = SAMPLE_US + SAMPLE_US / 10;

impl Ring {
    /// Begins anew with the next reply.
    pub(super) fn reseed(&mut self) {
        self.told_us = None;
    }

    /// Takes a reply, oldest sample first, read at an instant. The first reply seeds. An empty one says that the device was idle, up to the
    /// sample that may still be on its way.
    pub(super) fn read(&mut self, samples: &[Sample], read_us: u64) -> Vec<(Span, u32)> {
        let settled_us = read_us.saturating_sub(SAMPLE_US);
        let Some(told_us) = self.told_us else {
            self.told_us = Some(samples.last().map_or(settled_us, |sample| sample.at_us));
            return Vec::new();
        };
        let mut pieces = Vec::new();
        let mut from_us = told_us;
        if samples.is_empty() {
            pieces.extend(Span::new(from_us, settled_us).map(|span| (span, 0)));
            from_us = from_us.max(settled_us);
        }
        for sample in samples.iter().filter(|sample| sample.at_us <= read_us.saturating_add(SAMPLE_US)) {
            let Some(span) = Span::new(from_us, sample.at_us) else { continue };
            if span.length_us() <= LONGEST_US && sample.percent <= 100 {
                pieces.push((span, sample.percent));
            }
            from_us = sample.at_us;
        }
        self.told_us = Some(from_us);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[(u64, u32)]) -> Vec<Sample> {
        list.iter().map(|(at, percent)| Sample { at_us: at * 100_000, percent: *percent }).collect()
    }

    fn told(pieces: &[(Span, u32)]) -> Vec<(u64, u64, u32)> {
        pieces.iter().map(|(s, p)| (s.from_us() / 100_000, s.to_us() / 100_000, *p)).collect()
    }

    #[test]
    fn the_first_reply_seeds_and_the_next_goes_on_without_a_hole() {
        let mut ring = Ring::default();
        assert_eq!(ring.read(&samples(&[(1, 90), (3, 90)]), 400_000), []);
        let pieces = ring.read(&samples(&[(5, 10), (7, 20)]), 800_000);
        assert_eq!(told(&pieces), [(3, 5, 10), (5, 7, 20)]);
    }

    #[test]
    fn a_sample_after_a_hole_says_nothing_of_the_hole() {
        let mut ring = Ring::default();
        ring.read(&samples(&[(1, 0)]), 100_000);
        let pieces = ring.read(&samples(&[(50, 100), (52, 100)]), 5_300_000);
        assert_eq!(told(&pieces), [(50, 52, 100)]);
    }

    #[test]
    fn an_idle_device_covers_up_to_the_sample_on_its_way() {
        let mut ring = Ring::default();
        ring.read(&[], 2_000_000);
        assert_eq!(told(&ring.read(&[], 3_000_000)), [(10, 20, 0)]);
    }

    #[test]
    fn a_garbage_sample_is_no_time() {
        let mut ring = Ring::default();
        ring.read(&samples(&[(10, 0)]), 1_000_000);
        let pieces = ring.read(&samples(&[(12, 37_100), (14, 50), (999, 50)]), 1_500_000);
        assert_eq!(told(&pieces), [(12, 14, 50)]);
    }
}
