//! Instants as they travel: RFC 3339 with up to six fractional digits and any offset.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime};
use gpuledger_domain::time::{Instant, MINUTE_US, SECOND_US};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Why a text is no instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Not of the form of RFC 3339.
    #[error("is no RFC 3339 time, expected one such as 2026-10-01T00:00:00Z or 2026-10-01T02:00:00.25+02:00")]
    Form,
    /// A month, day, hour or offset that does not exist.
    #[error("is no time of any calendar day, expected one such as 2026-10-01T00:00:00Z")]
    Calendar,
    /// Finer than a microsecond.
    #[error("has more than 6 fractional digits, expected microseconds at most")]
    Fine,
    /// A leap second.
    #[error("is a leap second, expected second 59 or the next minute")]
    Leap,
    /// Outside the years 1 to 9999, in UTC.
    #[error("lies outside the years 1 to 9999 in UTC")]
    Year,
}

/// Reads an RFC 3339 time.
///
/// # Errors
/// Says which part of the form is broken.
pub fn parse_time(text: &str) -> Result<Instant, TimeError> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() {
        return Err(TimeError::Form);
    }
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| bytes[*at].to_ascii_uppercase() != *byte) {
        return Err(TimeError::Form);
    }
    let date = date(number(&text[0..4])?, number(&text[5..7])?, number(&text[8..10])?)?;
    let (fraction, offset) = split_rest(&text[19..])?;
    let time = time(number(&text[11..13])?, number(&text[14..16])?, number(&text[17..19])?)?;
    let local = NaiveDateTime::new(date, time).and_utc().timestamp_micros() + micros(fraction)?;
    let utc = Instant::from_micros(local - offset_us(offset)?);
    let year = chrono::DateTime::from_timestamp_micros(utc.as_micros()).map(|at| at.year());
    year.is_some_and(|y| (1..=9999).contains(&y)).then_some(utc).ok_or(TimeError::Year)
}

fn number(text: &str) -> Result<u32, TimeError> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(TimeError::Form)
}

fn date(year: u32, month: u32, day: u32) -> Result<NaiveDate, TimeError> {
    let year = i32::try_from(year).map_err(|_| TimeError::Form)?;
    NaiveDate::from_ymd_opt(year, month, day).ok_or(TimeError::Calendar)
}

fn time(hour: u32, minute: u32, second: u32) -> Result<NaiveTime, TimeError> {
    if second == 60 {
        return Err(TimeError::Leap);
    }
    NaiveTime::from_hms_opt(hour, minute, second).ok_or(TimeError::Calendar)
}

/// Splits `.25+02:00` into its fraction digits and its offset.
fn split_rest(rest: &str) -> Result<(&str, &str), TimeError> {
    let Some(tail) = rest.strip_prefix('.') else { return Ok(("", rest)) };
    let end = tail.bytes().position(|b| !b.is_ascii_digit()).ok_or(TimeError::Form)?;
    if end == 0 { Err(TimeError::Form) } else { Ok(tail.split_at(end)) }
}

fn micros(fraction: &str) -> Result<i64, TimeError> {
    if fraction.len() > 6 {
        return Err(TimeError::Fine);
    }
    format!("{fraction:0<6}").parse().map_err(|_| TimeError::Form)
}

fn offset_us(offset: &str) -> Result<i64, TimeError> {
    if offset.eq_ignore_ascii_case("z") {
        return Ok(0);
    }
    let sign = match offset.bytes().next() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(TimeError::Form),
    };
    if offset.len() != 6 || !offset[3..].starts_with(':') {
        return Err(TimeError::Form);
    }
    let (hours, minutes) = (number(&offset[1..3])?, number(&offset[4..6])?);
    if hours > 23 || minutes > 59 {
        return Err(TimeError::Calendar);
    }
    Ok(sign * i64::from(hours * 60 + minutes) * MINUTE_US)
}

/// An instant inside a body or a business object. Written in UTC with as few fractional digits as it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Instant);

impl Time {
    /// The instant.
    pub const fn get(self) -> Instant {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time such as 2026-10-01T00:00:00Z")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                parse_time(text).map(Time).map_err(|why| E::custom(format_args!("`{text}` {why}")))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// The pattern of [`parse_time`]; which days a month has is left to the reader.
pub(crate) const TIME_PATTERN: &str = "^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3])\
    :[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time", "pattern": TIME_PATTERN})
    }
}

/// A length of time in configuration, written `1s`, `60s`, `10m`, `1h`, `90d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// Microseconds, 0 or more.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads `10m` and the like: a whole number and one of `s`, `m`, `h`, `d`; up to 100 years.
    pub fn parse(text: &str) -> Option<Self> {
        let unit = text.bytes().last()?;
        let digits = text.get(..text.len().checked_sub(1)?)?;
        if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let seconds = match unit {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        let total = digits.parse::<i64>().ok()?.checked_mul(seconds)?;
        (total <= 100 * 366 * 86_400).then_some(Self(total * SECOND_US))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / SECOND_US;
        let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
        match units.into_iter().find(|(size, _)| seconds > 0 && seconds % size == 0) {
            Some((size, letter)) => write!(f, "{}{letter}", seconds / size),
            None => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format_args!("`{text}` is no duration, expected one such as 60s, 10m or 1h"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_names_the_same_instant() {
        let at = parse_time("2026-10-01T00:00:00.25Z").unwrap();
        assert_eq!(parse_time("2026-10-01T02:00:00.250000+02:00").unwrap(), at);
        assert_eq!(parse_time("2026-09-30t19:30:00.25-04:30").unwrap(), at);
        assert_eq!(at.to_string(), "2026-10-01T00:00:00.25Z");
        assert_eq!(
            parse_time("9999-12-31T23:59:59.999999Z").unwrap().to_string(),
            "9999-12-31T23:59:59.999999Z"
        );
        assert_eq!(parse_time("0001-01-01T00:00:00Z").unwrap().to_string(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_no_time_says_why() {
        for (text, why) in [
            ("2026-10-01", TimeError::Form),
            ("2026-10-01 00:00:00Z", TimeError::Form),
            ("2026-10-01T00:00:00", TimeError::Form),
            ("2026-10-01T00:00:00.Z", TimeError::Form),
            ("2026-10-01T00:00:00+0200", TimeError::Form),
            ("+026-10-01T00:00:00Z", TimeError::Form),
            ("2026-02-30T00:00:00Z", TimeError::Calendar),
            ("2026-10-01T24:00:00Z", TimeError::Calendar),
            ("2026-10-01T00:00:00+24:00", TimeError::Calendar),
            ("2026-12-31T23:59:60Z", TimeError::Leap),
            ("2026-10-01T00:00:00.1234567Z", TimeError::Fine),
            ("0001-01-01T00:00:00+01:00", TimeError::Year),
            ("9999-12-31T23:59:59-01:00", TimeError::Year),
            ("0000-06-01T00:00:00Z", TimeError::Year),
        ] {
            assert_eq!(parse_time(text), Err(why), "{text}");
        }
    }

    #[test]
    fn spans_are_a_number_and_a_unit() {
        assert_eq!(Span::parse("60s").map(Span::micros), Some(MINUTE_US));
        assert_eq!(Span::parse("10m").unwrap().to_string(), "10m");
        assert_eq!(Span::parse("0s").unwrap().to_string(), "0s");
        assert!(
            ["", "s", "1", "-1s", "1.5h", "1w", "99999999999s", "é"].iter().all(|t| Span::parse(t).is_none())
        );
    }
}
