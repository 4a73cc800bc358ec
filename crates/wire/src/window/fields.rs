//! Fields of a protobuf message, one after the other.

use crate::text::Name;
use gpuledger_domain::time::Instant;

/// Bytes of a text that is looked at byte by byte: as long as a name may be in characters.
const SHORT: usize = crate::text::MAX_NAME;
/// Years 1 to 9999, as event times are bounded.
const YEARS_US: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// What is left of a message. Each method is none where the bytes are not as our writer puts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes of a field that must come now.
    pub(super) fn bytes(&mut self, number: u8) -> Option<&'a [u8]> {
        self.begin(number, 2)?;
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Bytes of a field that may come now; the inner none: another one does, or none.
    pub(super) fn bytes_or_none(&mut self, number: u8) -> Option<Option<&'a [u8]>> {
        if self.comes(number, 2) { self.bytes(number).map(Some) } else { Some(None) }
    }

    /// A number that may come now; the inner none: another field does, or none.
    pub(super) fn number_or_none(&mut self, number: u8) -> Option<Option<u64>> {
        if !self.comes(number, 0) {
            return Some(None);
        }
        self.begin(number, 0)?;
        self.varint().map(Some)
    }

    /// A number, which is not written where it is zero.
    pub(super) fn number_or_zero(&mut self, number: u8) -> Option<u64> {
        self.number_or_none(number).map(Option::unwrap_or_default)
    }

    /// A number of either sign.
    pub(super) fn signed_or_zero(&mut self, number: u8) -> Option<i64> {
        let zigzag = self.number_or_zero(number)?;
        let half = i64::try_from(zigzag >> 1).ok()?;
        Some(if zigzag & 1 == 0 { half } else { -half - 1 })
    }

    /// Eight bytes, which are not written where they are zero.
    pub(super) fn fixed_or_zero(&mut self, number: u8) -> Option<u64> {
        if !self.comes(number, 1) {
            return Some(0);
        }
        self.begin(number, 1)?;
        let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Passes the tag of a field that must come now.
    fn begin(&mut self, number: u8, kind: u8) -> Option<()> {
        let (tag, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*tag == (number << 3 | kind)).then_some(())
    }

    /// Field numbers of telemetry are below 16, so a tag is one byte.
    fn comes(&self, number: u8, kind: u8) -> bool {
        self.rest.first() == Some(&(number << 3 | kind))
    }

    fn varint(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first()?;
        if *first < 128 {
            self.rest = rest;
            return Some(u64::from(*first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for (place, byte) in self.rest.iter().enumerate().take(10) {
            let part = u64::from(byte & 127);
            if place == 9 && *byte > 1 {
                return None;
            }
            value |= part << (7 * place);
            if *byte < 128 {
                self.rest = self.rest.get(place + 1..)?;
                return Some(value);
            }
        }
        None
    }
}

/// A name as [`Name`] takes it.
pub(super) fn name(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_plain =
        !bytes.is_empty() && bytes.len() <= SHORT && bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    (is_plain || Name::new(text).is_ok()).then_some(text)
}

/// An instant as events may carry it.
pub(super) fn instant(us: i64) -> Option<Instant> {
    YEARS_US.contains(&us).then(|| Instant::from_micros(us))
}
