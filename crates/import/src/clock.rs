//! Times of foreign files, in a zone that the file does not name.

use crate::report::shown;
use chrono::{DateTime, Datelike, MappedLocalTime, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use gpuledger_domain::time::Instant;

/// An instant a local time may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The only one.
    One(Instant),
    /// The clock was set back over it: the earlier and the later.
    Two(Instant, Instant),
}

impl Read {
    /// All meanings, the earlier first.
    pub(crate) fn all(self) -> Vec<Instant> {
        match self {
            Self::One(at) => vec![at],
            Self::Two(earlier, later) => vec![earlier, later],
        }
    }
}

/// Why a text is no instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClockError {
    #[error(
        "{0} is not a time; write `YYYY-MM-DDTHH:MM:SS`, with an offset or without, or seconds since 1970"
    )]
    Text(String),
    #[error("{0} lies outside the years 1970 to 9999")]
    Range(String),
    #[error("{text} did not occur in {zone}: the clock was set forward over it; give the zone of the dump")]
    Skipped { text: String, zone: String },
}

/// The instants that the text may mean: `YYYY-MM-DDTHH:MM:SS` in the zone, the same with an offset, or whole seconds since 1970.
pub(crate) fn read(text: &str, zone: Tz) -> Result<Read, ClockError> {
    if let Ok(local) = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f") {
        return in_zone(local, text, zone);
    }
    let fixed = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .map(|at| at.with_timezone(&Utc));
    let at = match fixed {
        Ok(at) => at,
        Err(_) => epoch(text).ok_or_else(|| ClockError::Text(shown(text)))?,
    };
    instant(at).map(Read::One).ok_or_else(|| ClockError::Range(shown(text)))
}

/// The instants that a local time means in the zone.
pub(crate) fn in_zone(local: NaiveDateTime, text: &str, zone: Tz) -> Result<Read, ClockError> {
    let range = || ClockError::Range(shown(text));
    match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(at) => instant(at.with_timezone(&Utc)).map(Read::One).ok_or_else(range),
        MappedLocalTime::Ambiguous(a, b) => {
            let a = instant(a.with_timezone(&Utc)).ok_or_else(range)?;
            let b = instant(b.with_timezone(&Utc)).ok_or_else(range)?;
            Ok(Read::Two(a.min(b), a.max(b)))
        }
        MappedLocalTime::None => Err(ClockError::Skipped { text: shown(text), zone: zone.name().to_owned() }),
    }
}

/// The instant, where its year is one that events may carry.
pub(crate) fn instant(at: DateTime<Utc>) -> Option<Instant> {
    (1970..=9999).contains(&at.year()).then(|| Instant::from_micros(at.timestamp_micros()))
}

fn epoch(text: &str) -> Option<DateTime<Utc>> {
    if !(1..=12).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    DateTime::from_timestamp(text.parse().ok()?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, zone: Tz) -> String {
        match read(text, zone).unwrap() {
            Read::One(at) => at.to_string(),
            Read::Two(..) => panic!("{text} is read twice"),
        }
    }

    #[test]
    fn zone_offset_and_epoch() {
        assert_eq!(one("2016-12-22T07:15:13", Tz::UTC), "2016-12-22T07:15:13Z");
        assert_eq!(one("2016-12-22T07:15:13", Tz::Europe__Berlin), "2016-12-22T06:15:13Z");
        assert_eq!(one("2016-12-22T07:15:13+0100", Tz::UTC), "2016-12-22T06:15:13Z");
        assert_eq!(one("2016-12-22T07:15:13-05:00", Tz::UTC), "2016-12-22T12:15:13Z");
        assert_eq!(one("1482390913", Tz::Europe__Berlin), "2016-12-22T07:15:13Z");
    }

    #[test]
    fn clock_changes() {
        let twice = read("2026-10-25T02:30:00", Tz::Europe__Berlin).unwrap();
        let texts: Vec<String> = twice.all().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
        let skipped = read("2026-03-29T02:30:00", Tz::Europe__Berlin).unwrap_err();
        assert!(skipped.to_string().contains("did not occur in Europe/Berlin"), "{skipped}");
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "NaN", "yesterday", "2016-13-01T00:00:00", "-1", "99999999999999999999"] {
            assert!(matches!(read(text, Tz::UTC), Err(ClockError::Text(_))), "{text}");
        }
        for text in ["1969-12-31T23:59:59", "999999999999", "+10000-01-01T00:00:00"] {
            assert!(
                matches!(read(text, Tz::UTC), Err(ClockError::Range(_))),
                "{text}: {:?}",
                read(text, Tz::UTC)
            );
        }
    }
}
