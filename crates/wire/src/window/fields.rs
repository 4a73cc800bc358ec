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

    /// One of up to eight bytes is read at once: the first byte without its highest bit set is the last of it.
    fn long_varint(&mut self) -> Option<u64> {
        let Some(next) = self.rest.first_chunk::<8>() else { return self.longest_varint() };
        let word = u64::from_le_bytes(*next);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.longest_varint();
        }
        // Bits up to the one that ends it; then the sevens are pushed together: pairs of bytes, of two, of four.
        let own = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
        let pairs = (own & 0x007f_007f_007f_007f) | (own & 0x7f00_7f00_7f00_7f00) >> 1;
        let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        let value = (fours & 0x0000_0000_0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
        let length = usize::try_from(ends.trailing_zeros() / 8 + 1).ok()?;
        self.rest = self.rest.get(length..)?;
        Some(value)
    }

    fn longest_varint(&mut self) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 128 {
            bytes.push(u8::try_from(value & 127).unwrap() | 128);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    }

    #[test]
    fn numbers_of_every_length_are_read_wherever_they_stand() {
        for bits in 0..64 {
            for value in [1_u64 << bits, (1 << bits) - 1, u64::MAX >> bits, 0x0123_4567_89ab_cdef >> bits] {
                for behind in 0..10 {
                    let mut bytes = written(value);
                    let length = bytes.len();
                    bytes.extend(std::iter::repeat_n(0xff, behind));
                    let mut fields = Fields::new(&bytes);
                    assert_eq!(fields.varint(), Some(value), "{value} and {behind} bytes behind it");
                    assert_eq!(fields.rest().len(), bytes.len() - length);
                    assert_eq!(Fields::new(&bytes[..length - 1]).varint(), None, "{value} cut off");
                }
            }
        }
    }
}
