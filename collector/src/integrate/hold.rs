//! A value that was seen once and is held for a bounded time.

use crate::window::Span;

/// A value with the instant at which it was seen, held forward from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold<T> {
    value: T,
    until_us: u64,
    told_us: u64,
}

impl<T: Copy> Hold<T> {
    /// Seen at `at_us`, held for at most `cap_us`.
    pub(super) fn new(value: T, at_us: u64, cap_us: u64) -> Self {
        Self { value, until_us: at_us.saturating_add(cap_us), told_us: at_us }
    }

    /// What it covers since the last call, up to now.
    pub(super) fn advance(&mut self, now_us: u64) -> Option<(Span, T)> {
        let span = Span::new(self.told_us, now_us.min(self.until_us))?;
        self.told_us = span.to_us();
        Some((span, self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_held_to_its_cap_and_covers_each_microsecond_once() {
        let mut hold = Hold::new(7, 100, 20);
        assert_eq!(hold.advance(110), Span::new(100, 110).map(|span| (span, 7)));
        assert_eq!(hold.advance(110), None);
        assert_eq!(hold.advance(200), Span::new(110, 120).map(|span| (span, 7)));
        assert_eq!(hold.advance(300), None);
    }
}
