//! Names of files: `windows/date=2026-10-01/hour=07/part-0-DIGEST.parquet`. Folders of the form `name=value` are columns to readers
//! of such archives, and let them skip days.

use chrono::{DateTime, NaiveDate, Timelike as _};
use gpuledger_domain::time::{HOUR_US, Instant};
use std::fmt;
use std::str::FromStr;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One row a window, with its bytes.
    Windows,
    /// One row a unit, owner and minute.
    Minutes,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Windows, Self::Minutes];

    /// The first folder of its files' names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Minutes => "minutes",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == text);
        found.ok_or_else(|| format!("`{text}` is no kind of file, expected windows or minutes"))
    }
}

/// The name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey {
    /// What it holds.
    pub kind: Kind,
    /// Begin of the UTC hour it is about.
    pub hour: Instant,
    /// Its place among the files of the hour, from 0.
    pub part: u32,
    /// SHA-256 of its bytes.
    pub digest: [u8; 32],
}

impl FileKey {
    /// The folder of an hour's files of a kind.
    pub fn folder(kind: Kind, hour: Instant) -> String {
        let at = DateTime::from_timestamp_micros(hour.floor(HOUR_US).as_micros()).unwrap_or_default();
        format!("{}/date={}/hour={:02}", kind.word(), at.date_naive(), at.hour())
    }
}

impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/part-{}-{}.parquet", Self::folder(self.kind, self.hour), self.part, hex(&self.digest))
    }
}

impl FromStr for FileKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = || {
            format!(
                "`{text}` is no name of a file: expected KIND/date=YYYY-MM-DD/hour=HH/part-N-DIGEST.parquet"
            )
        };
        let mut steps = text.split('/');
        let (Some(kind), Some(date), Some(hour), Some(file), None) =
            (steps.next(), steps.next(), steps.next(), steps.next(), steps.next())
        else {
            return Err(wanted());
        };
        let hour = hour_of(date, hour).ok_or_else(wanted)?;
        let (part, digest) = file
            .strip_prefix("part-")
            .and_then(|rest| rest.strip_suffix(".parquet"))
            .and_then(|rest| rest.split_once('-'))
            .ok_or_else(wanted)?;
        let key = Self {
            kind: kind.parse()?,
            hour,
            part: part.parse().map_err(|_| wanted())?,
            digest: unhex(digest).ok_or_else(wanted)?,
        };
        // One spelling a file: `part-00` or capital digits would be a second name of it.
        if key.to_string() == text { Ok(key) } else { Err(wanted()) }
    }
}

fn hour_of(date: &str, hour: &str) -> Option<Instant> {
    let date: NaiveDate = date.strip_prefix("date=")?.parse().ok()?;
    let hour: u32 = hour.strip_prefix("hour=")?.parse().ok()?;
    Some(Instant::from_micros(date.and_hms_opt(hour, 0, 0)?.and_utc().timestamp_micros()))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> FileKey {
        // 2026-10-01T07:00:00Z
        FileKey {
            kind: Kind::Windows,
            hour: Instant::from_micros(1_790_838_000_000_000),
            part: 2,
            digest: [0xab; 32],
        }
    }

    #[test]
    fn a_name_is_read_back() {
        let name = key().to_string();
        assert_eq!(name, format!("windows/date=2026-10-01/hour=07/part-2-{}.parquet", "ab".repeat(32)));
        assert_eq!(name.parse(), Ok(key()));
    }

    #[test]
    fn names_that_are_not_ours_are_refused() {
        let name = key().to_string();
        let others = [
            name.replace("windows", "seconds"),
            name.replace("hour=07", "hour=24"),
            name.replace("hour=07", "hour=7"),
            name.replace("part-2", "part-02"),
            name.replace("abab", "ABAB"),
            name.replace("ab.parquet", ".parquet"),
            name.replace(".parquet", ".parquet#1"),
            name.replace("windows/", "windows//"),
        ];
        for other in others {
            assert!(other.parse::<FileKey>().is_err(), "{other}");
        }
    }
}
