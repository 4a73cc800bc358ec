//! The energy counter, in epochs (M-7).

use crate::window::Span;

/// Follows a counter of millijoules that only grows until the driver is loaded anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Energy {
    last: Option<(u64, u64)>,
    is_new_epoch: bool,
}

/// What a reading of the counter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first one: it tells nothing yet.
    Seed,
    /// So many millijoules over this time.
    Used(Span, u64),
    /// It went back though the driver was not loaded anew: what was used in this time nobody knows.
    Reset(Span),
}

impl Energy {
    /// The driver was loaded anew: the counter may begin again at zero, and then its value is what was used since.
    pub(super) fn reload(&mut self) {
        self.is_new_epoch = true;
    }

    /// Begins anew with the next reading.
    pub(super) fn reseed(&mut self) {
        self.last = None;
    }

    /// Takes a reading. `limit_us`: two readings further apart tell nothing.
    pub(super) fn read(&mut self, value_mj: u64, at_us: u64, limit_us: u64) -> Step {
        let before = self.last.replace((value_mj, at_us));
        let is_new_epoch = std::mem::take(&mut self.is_new_epoch);
        let Some((known_mj, known_us)) = before else { return Step::Seed };
        let Some(span) = Span::new(known_us, at_us).filter(|span| span.length_us() <= limit_us) else {
            return Step::Seed;
        };
        match value_mj.checked_sub(known_mj) {
            Some(used_mj) => Step::Used(span, used_mj),
            None if is_new_epoch => Step::Used(span, value_mj),
            None => Step::Reset(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64) -> Span {
        Span::new(from, to).unwrap()
    }

    #[test]
    fn a_decrease_is_a_new_epoch_only_if_the_driver_was_loaded_anew() {
        let mut energy = Energy::default();
        assert_eq!(energy.read(1_000, 0, 100), Step::Seed);
        assert_eq!(energy.read(1_500, 10, 100), Step::Used(span(0, 10), 500));
        assert_eq!(energy.read(200, 20, 100), Step::Reset(span(10, 20)));
        assert_eq!(energy.read(300, 30, 100), Step::Used(span(20, 30), 100));
        energy.reload();
        assert_eq!(energy.read(40, 40, 100), Step::Used(span(30, 40), 40));
    }

    #[test]
    fn a_new_library_on_the_same_driver_goes_on_counting() {
        let mut energy = Energy::default();
        energy.read(1_000, 0, 100);
        energy.reload();
        assert_eq!(energy.read(1_100, 10, 100), Step::Used(span(0, 10), 100));
    }

    #[test]
    fn readings_too_far_apart_tell_nothing() {
        let mut energy = Energy::default();
        energy.read(1_000, 0, 100);
        assert_eq!(energy.read(9_000, 101, 100), Step::Seed);
    }
}
