//! Instants and half-open windows in integer microseconds, UTC (rule M-1).

use chrono::Timelike;
use std::fmt;

/// Microseconds in one second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds in one minute.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// Microseconds in one hour; a journal covers one UTC hour.
pub const HOUR_US: i64 = 60 * MINUTE_US;
/// Microseconds in the 15-minute cell in which shares are split: every zone's hours and days are made of such cells (M-3).
pub const CELL_US: i64 = 15 * MINUTE_US;

/// An instant: microseconds since 1970-01-01T00:00:00Z. Years 1 to 9999 fit with room to spare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

impl Instant {
    /// Earlier than every instant a fact may carry.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than every instant a fact may carry.
    pub const MAX: Self = Self(i64::MAX);

    /// The instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This instant moved by `micros`, held at the ends of the range.
    #[must_use]
    pub const fn plus(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Microseconds from `earlier` to this instant; negative when it is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The last multiple of `step_us` (counted from the epoch) that is not after this instant.
    #[must_use]
    pub const fn floor(self, step_us: i64) -> Self {
        Self(self.0 - self.0.rem_euclid(step_us))
    }

    /// The first multiple of `step_us` that is not before this instant.
    #[must_use]
    pub const fn ceil(self, step_us: i64) -> Self {
        let floor = self.floor(step_us);
        if floor.0 == self.0 { floor } else { floor.plus(step_us) }
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC with as many of six fractional digits as are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp_micros(self.0) {
            Some(at) => {
                let (date, time) = (at.date_naive(), at.time());
                write!(f, "{date}T{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())?;
                let (mut fraction, mut digits) = (self.0.rem_euclid(SECOND_US), 6);
                while fraction != 0 && fraction % 10 == 0 {
                    (fraction, digits) = (fraction / 10, digits - 1);
                }
                if fraction == 0 { f.write_str("Z") } else { write!(f, ".{fraction:0digits$}Z") }
            }
            None => write!(f, "{} us", self.0),
        }
    }
}

/// A half-open, non-empty span of time `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    start: Instant,
    end: Instant,
}

impl Window {
    /// `[start, end)`, or none where nothing lies between.
    pub fn new(start: Instant, end: Instant) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The UTC hour that contains `at`.
    pub fn hour_of(at: Instant) -> Self {
        let start = at.floor(HOUR_US);
        Self { start, end: start.plus(HOUR_US) }
    }

    /// First instant inside.
    pub const fn start(self) -> Instant {
        self.start
    }

    /// First instant after it.
    pub const fn end(self) -> Instant {
        self.end
    }

    /// Length in microseconds, above zero.
    pub const fn micros(self) -> i64 {
        self.end.since(self.start)
    }

    /// Whether `at` lies inside.
    pub fn contains(self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }

    /// The part both windows cover, or none.
    pub fn intersect(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// The window cut at every multiple of `step_us`, in order.
    pub fn split(self, step_us: i64) -> impl Iterator<Item = Self> {
        let mut at = self.start;
        std::iter::from_fn(move || {
            let next = at.plus(1).ceil(step_us).min(self.end);
            let part = Self::new(at, next)?;
            at = next;
            Some(part)
        })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::Instant;

    #[test]
    fn an_instant_has_as_many_digits_as_it_needs() {
        for (us, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_500_000, "1970-01-01T00:00:01.5Z"),
            (1_120_000, "1970-01-01T00:00:01.12Z"),
            (1_000_100, "1970-01-01T00:00:01.0001Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
            (253_402_300_800_000_000, "+10000-01-01T00:00:00Z"),
            (i64::MAX, "9223372036854775807 us"),
        ] {
            assert_eq!(Instant::from_micros(us).to_string(), text);
        }
    }
}
