//! Billing periods: calendar months of a zone.

use crate::time::{Instant, Window};
use chrono::{Datelike, NaiveDate, TimeZone};
use chrono_tz::Tz;
use std::fmt;
use std::str::FromStr;

/// A calendar month, such as `2026-10`. Which instants it holds depends on the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    /// The first day of the month, in a year from 1 to 9998, so that the next month is a date too.
    first_day: NaiveDate,
}

impl Period {
    /// The month `year`-`month`; none outside the years 1 to 9998.
    fn new(year: i32, month: u32) -> Option<Self> {
        let first_day = NaiveDate::from_ymd_opt(year, month, 1)?;
        (1..=9998).contains(&year).then_some(Self { first_day })
    }

    /// The period that contains `at` in `zone`; none outside the years 1 to 9998.
    pub fn containing(at: Instant, zone: Tz) -> Option<Self> {
        let local = chrono::DateTime::from_timestamp_micros(at.as_micros())?.with_timezone(&zone);
        Self::new(local.year(), local.month())
    }

    /// Its year, 1 to 9998.
    pub fn year(self) -> i32 {
        self.first_day.year()
    }

    /// The period after this one; none after the last.
    pub fn next(self) -> Option<Self> {
        let day = self.first_day.checked_add_months(chrono::Months::new(1))?;
        Self::new(day.year(), day.month())
    }

    /// From the first instant of the month in `zone` to the first of the next.
    ///
    /// # Errors
    /// The zone's rules leave no such instant.
    pub fn window(self, zone: Tz) -> Result<Window, PeriodError> {
        let error = || PeriodError::Edge(self.to_string(), zone.name());
        let next = self.first_day.checked_add_months(chrono::Months::new(1)).ok_or_else(error)?;
        let start = first_instant(self.first_day, zone).ok_or_else(error)?;
        let end = first_instant(next, zone).ok_or_else(error)?;
        Window::new(start, end).ok_or_else(error)
    }
}

/// The first instant of a local day. Where a clock change skips midnight, the day begins when the clock goes on; where midnight comes
/// twice, it begins at the first.
fn first_instant(day: NaiveDate, zone: Tz) -> Option<Instant> {
    let midnight = day.and_hms_opt(0, 0, 0)?;
    let quarters = (0..=96).map(|quarter| midnight + chrono::TimeDelta::minutes(15 * quarter));
    let found = quarters.filter_map(|local| zone.from_local_datetime(&local).earliest()).next()?;
    Some(Instant::from_micros(found.timestamp_micros()))
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.first_day.year(), self.first_day.month())
    }
}

impl FromStr for Period {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let error = || PeriodError::Text(text.to_owned());
        let (year, month) = text.split_once('-').ok_or_else(error)?;
        let digits = |part: &str, width| part.len() == width && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) {
            return Err(error());
        }
        let period = Self::new(year.parse().map_err(|_| error())?, month.parse().map_err(|_| error())?);
        period.ok_or_else(error)
    }
}

/// Why a text or a zone gives no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// Not a month.
    #[error("{0:?} is no period: a month such as \"2026-10\" is wanted")]
    Text(String),
    /// No instant begins it.
    #[error("period {0} has no edge in zone {1}")]
    Edge(String, &'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_have_the_edges_of_their_zone() {
        // period | zone | start | end
        for (period, zone, start, end) in [
            ("2026-10", "UTC", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
            ("2026-10", "Europe/Berlin", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"),
            ("2026-12", "Asia/Kathmandu", "2026-11-30T18:15:00Z", "2026-12-31T18:15:00Z"),
            // Clocks went from 0:00 to 1:00 on 1 October 2017: the day began at 1:00.
            ("2017-10", "America/Asuncion", "2017-10-01T04:00:00Z", "2017-11-01T03:00:00Z"),
            ("2024-02", "America/New_York", "2024-02-01T05:00:00Z", "2024-03-01T05:00:00Z"),
        ] {
            let window = period.parse::<Period>().unwrap().window(zone.parse().unwrap()).unwrap();
            assert_eq!(
                (window.start().to_string(), window.end().to_string()),
                (start.to_owned(), end.to_owned()),
                "{zone}"
            );
        }
    }

    #[test]
    fn neighbours_meet_without_gap_in_every_zone() {
        for zone in chrono_tz::TZ_VARIANTS {
            let mut period: Period = "2025-01".parse().unwrap();
            for _ in 0..24 {
                let next = period.next().unwrap();
                let window = period.window(zone).unwrap();
                assert_eq!(window.end(), next.window(zone).unwrap().start(), "{period} {zone}");
                assert_eq!(Period::containing(window.start(), zone), Some(period), "{period} {zone}");
                assert_eq!(Period::containing(window.end().plus(-1), zone), Some(period), "{period} {zone}");
                period = next;
            }
        }
    }

    #[test]
    fn what_is_no_month_is_refused() {
        for text in [
            "",
            "2026",
            "2026-13",
            "2026-00",
            "26-10",
            "2026-1",
            "2026-10-01",
            "0000-01",
            "9999-01",
            "2026/10",
        ] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }
}
