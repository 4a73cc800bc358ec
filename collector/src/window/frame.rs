//! Where windows begin and end.

use gpuledger_domain::time::{Instant, MINUTE_US, Window};

/// The length of windows. Edges are counted from each UTC minute, and the minute itself is always one: a length that does not divide it
/// makes the last window of each minute shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    length_us: i64,
}

impl Frame {
    /// Windows of `length_us` microseconds, at least one and at most a minute.
    pub fn new(length_us: i64) -> Self {
        Self { length_us: length_us.clamp(1, MINUTE_US) }
    }

    /// The window in which an instant lies. None: at the ends of what an instant can say.
    pub fn window_of(self, at: Instant) -> Option<Window> {
        let minute = at.floor(MINUTE_US);
        let start = minute.plus(at.since(minute) / self.length_us * self.length_us);
        Window::new(start, start.plus(self.length_us).min(minute.plus(MINUTE_US)))
    }

    /// A window cut at every edge, in order.
    pub fn cut(self, whole: Window) -> impl Iterator<Item = Window> {
        let mut at = whole.start();
        std::iter::from_fn(move || {
            let part = Window::new(at, self.window_of(at)?.end().min(whole.end()))?;
            at = part.end();
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: i64) -> Instant {
        Instant::from_micros(n * 1_000_000)
    }

    fn edges(length_s: i64, from: i64, to: i64) -> Vec<(i64, i64)> {
        Frame::new(length_s * 1_000_000)
            .cut(Window::new(second(from), second(to)).unwrap())
            .map(|part| (part.start().as_micros() / 1_000_000, part.end().as_micros() / 1_000_000))
            .collect()
    }

    #[test]
    fn edges_are_multiples_of_the_length_and_always_minutes() {
        assert_eq!(edges(10, 55, 75), [(55, 60), (60, 70), (70, 75)]);
        assert_eq!(edges(25, 0, 70), [(0, 25), (25, 50), (50, 60), (60, 70)]);
        assert_eq!(edges(3_600, 10, 130), [(10, 60), (60, 120), (120, 130)]);
    }

    #[test]
    fn a_window_holds_its_start_and_not_its_end() {
        let frame = Frame::new(10_000_000);
        assert_eq!(frame.window_of(second(10)).unwrap().start(), second(10));
        assert_eq!(frame.window_of(second(-1)).unwrap().start(), second(-10));
    }
}
