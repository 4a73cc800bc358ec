//! Quantities as they stand in a scenario: `1m30s`, `10GiB`, `37.5%`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A length of time in microseconds; in text a number with a unit, or several: `1m30s`, `250ms`, `15us`, `2h`, `1d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Span {
    /// Whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds * 1_000_000)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// What stands there and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no length of time, expected such as 1m30s, 250ms or 15us");
        let mut rest = text;
        let mut sum = 0_u64;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let (_, us) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
            let number: u64 = number.parse().map_err(|_| wrong())?;
            sum = number.checked_mul(*us).and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
            rest = tail;
        }
        if text.is_empty() { Err(wrong()) } else { Ok(Self(sum)) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, us) in UNITS {
            if rest >= us {
                write!(f, "{}{unit}", rest / us)?;
                rest %= us;
            }
        }
        Ok(())
    }
}

/// A step of the real-time clock: `+5m`, `-30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump(pub i64);

impl Jump {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no step of a clock, expected such as +5m or -30s");
        let (sign, length) = match text.split_at_checked(1) {
            Some(("+", length)) => (1, length),
            Some(("-", length)) => (-1, length),
            _ => return Err(wrong()),
        };
        let us = i64::try_from(Span::parse(length)?.0).map_err(|_| wrong())?;
        Ok(Self(sign * us))
    }
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.0 < 0 { '-' } else { '+' }, Span(self.0.unsigned_abs()))
    }
}

/// An amount of memory in bytes: `10GiB`, `512MiB`, `4096B`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Bytes {
    /// Whole mebibytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no amount of memory, expected such as 10GiB, 512MiB or 4096B");
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(digits);
        let (_, size) = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(*size).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = SIZES
            .iter()
            .find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size))
            .copied()
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

/// A share in parts per million: `40%`, `37.5%`, at most 100 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(pub u32);

impl Percent {
    /// All of it.
    pub const ALL: Self = Self(1_000_000);

    /// Whole per cent.
    pub const fn whole(percent: u32) -> Self {
        Self(percent * 10_000)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no share, expected 0% to 100% with at most four decimals");
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !is_plain(whole) || !is_plain(fraction) || whole.len() > 3 || fraction.len() > 4 {
            return Err(wrong());
        }
        let ppm = format!("{whole}{fraction:0<4}").parse().map_err(|_| wrong())?;
        if ppm > Self::ALL.0 { Err(wrong()) } else { Ok(Self(ppm)) }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 10_000, self.0 % 10_000);
        if fraction == 0 {
            write!(f, "{whole}%")
        } else {
            let digits = format!("{fraction:04}");
            write!(f, "{whole}.{}%", digits.trim_end_matches('0'))
        }
    }
}

/// An instant of UTC in microseconds since 1970; in text RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc(pub i64);

impl Utc {
    fn parse(text: &str) -> Result<Self, String> {
        chrono::DateTime::parse_from_rfc3339(text)
            .map(|at| Self(at.timestamp_micros()))
            .map_err(|_| format!("`{text}` is no instant, expected such as 2026-10-01T00:00:00Z"))
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = chrono::DateTime::from_timestamp_micros(self.0) else {
            return write!(f, "{} us", self.0);
        };
        let text = at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string();
        write!(f, "{}Z", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Text in and out by `parse` and `Display`.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    )*};
}

as_text!(Span, Jump, Bytes, Percent, Utc);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_come_back_as_they_were_written() {
        for text in ["1m30s", "250ms", "1d2h", "15us", "0s"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for text in ["+5m", "-30s"] {
            assert_eq!(Jump::parse(text).unwrap().to_string(), text);
        }
        for text in ["10GiB", "512MiB", "4097B", "0B"] {
            assert_eq!(Bytes::parse(text).unwrap().to_string(), text);
        }
        for text in ["0%", "100%", "37.5%", "0.0001%"] {
            assert_eq!(Percent::parse(text).unwrap().to_string(), text);
        }
        for text in ["2026-10-01T00:00:00Z", "2026-10-01T00:00:00.25Z"] {
            assert_eq!(Utc::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn quantities_without_a_unit_or_out_of_bounds_are_refused() {
        for text in ["", "5", "s", "1x", "1.5s", "99999999999999d"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
        assert!(Jump::parse("5m").is_err());
        assert!(Bytes::parse("5").is_err() && Bytes::parse("5GB").is_err());
        for text in ["40", "100.1%", "-1%", "1.00001%", "%", ".5%"] {
            assert!(Percent::parse(text).is_err(), "{text}");
        }
        assert!(Utc::parse("2026-10-01").is_err());
    }
}
