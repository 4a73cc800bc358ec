//! One record as it lies on disk: a head of fixed length with a checksum of its own, then the event.
//!
//! The head alone says which window the record is and what time it covers, so that a record whose event is damaged is still
//! known for what it was. Numbers are little-endian.
//!
//! ```text
//!  0 magic             4 length of the event    8 kind         12 position     20 sequence   28 end of the window before
//! 36 start            44 end                   52 stream       68 CRC32C of the event        72 CRC32C of bytes 0 to 71
//! ```

use crc::{CRC_32_ISCSI, Crc};
use gpuledger_domain::time::Instant;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 76;
/// No UTF-8 text has these bytes, so no event looks like the begin of a record.
const MAGIC: [u8; 4] = [0xfa, b'G', b'L', 0xf5];
/// CRC32C (Castagnoli), as iSCSI and ext4 use it.
const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first record of a segment: no event, only the place at which the segment begins.
    Begin,
    /// A telemetry window, which has a sequence.
    Window,
    /// Another event.
    Fact,
}

impl Kind {
    const fn code(self) -> u32 {
        match self {
            Self::Begin => 0,
            Self::Window => 1,
            Self::Fact => 2,
        }
    }

    const fn of_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Begin),
            1 => Some(Self::Window),
            2 => Some(Self::Fact),
            _ => None,
        }
    }
}

/// A place between two records: what the next one will be numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Random id of the stream (I-2).
    pub stream: Uuid,
    /// Number of the next record, over windows and facts; never used twice in a stream.
    pub position: u64,
    /// Sequence of the next window.
    pub sequence: u64,
    /// Up to when all time is told, in microseconds since the Unix epoch: the end of the last kept window, or the start of the first
    /// one. None before that.
    pub window_end_us: Option<i64>,
}

impl Place {
    /// Id of the next event (I-1): with the node's source it names one event for ever.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.stream, self.position)
    }

    /// End of the last kept window.
    pub(crate) fn window_end(&self) -> Option<Instant> {
        self.window_end_us.map(Instant::from_micros)
    }
}

/// A record's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// What it is.
    pub(crate) kind: Kind,
    /// Bytes of the event.
    pub(crate) length: u32,
    /// The place before it: its own position, and of a window its own sequence.
    pub(crate) place: Place,
    /// Begin of the window; of others nothing.
    pub(crate) start: Instant,
    /// End of the window; of others nothing.
    pub(crate) end: Instant,
    checksum: u32,
}

impl Head {
    /// The place after it.
    pub(crate) fn after(&self) -> Place {
        let place = self.place;
        match self.kind {
            Kind::Begin => place,
            Kind::Fact => Place { position: place.position.saturating_add(1), ..place },
            Kind::Window => Place {
                position: place.position.saturating_add(1),
                sequence: place.sequence.saturating_add(1),
                window_end_us: Some(self.end.as_micros()),
                ..place
            },
        }
    }

    /// Whether this is the event the head was written for.
    pub(crate) fn fits(&self, event: &[u8]) -> bool {
        CRC32C.checksum(event) == self.checksum
    }

    /// Bytes of the whole record.
    pub(crate) fn record_bytes(&self) -> usize {
        HEAD_BYTES.saturating_add(usize::try_from(self.length).unwrap_or(usize::MAX))
    }

    /// Reads a head from the first bytes; none where they are too few or are no head.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.get(..HEAD_BYTES)?.try_into().ok()?;
        let (fields, checksum) = bytes.split_at(HEAD_BYTES - 4);
        if !bytes.starts_with(&MAGIC) || CRC32C.checksum(fields) != u32::from_le_bytes(array(checksum, 0)?) {
            return None;
        }
        let window_end_us = i64::from_le_bytes(array(bytes, 28)?);
        let place = Place {
            stream: Uuid::from_bytes(array(bytes, 52)?),
            position: u64::from_le_bytes(array(bytes, 12)?),
            sequence: u64::from_le_bytes(array(bytes, 20)?),
            window_end_us: (window_end_us != i64::MIN).then_some(window_end_us),
        };
        Some(Self {
            kind: Kind::of_code(u32::from_le_bytes(array(bytes, 8)?))?,
            length: u32::from_le_bytes(array(bytes, 4)?),
            place,
            start: Instant::from_micros(i64::from_le_bytes(array(bytes, 36)?)),
            end: Instant::from_micros(i64::from_le_bytes(array(bytes, 44)?)),
            checksum: u32::from_le_bytes(array(bytes, 68)?),
        })
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Where the next record may begin: the first magic in `bytes` from `from` on.
pub(crate) fn next_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(MAGIC.len()).position(|found| found == MAGIC).map(|at| from + at)
}

/// A whole record. None where the event is longer than a head can say.
pub(crate) fn record(
    kind: Kind,
    place: Place,
    start: Instant,
    end: Instant,
    event: &[u8],
) -> Option<(Head, Vec<u8>)> {
    let length = u32::try_from(event.len()).ok()?;
    let head = Head { kind, length, place, start, end, checksum: CRC32C.checksum(event) };
    let mut bytes = Vec::with_capacity(HEAD_BYTES + event.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&kind.code().to_le_bytes());
    bytes.extend_from_slice(&place.position.to_le_bytes());
    bytes.extend_from_slice(&place.sequence.to_le_bytes());
    bytes.extend_from_slice(&place.window_end_us.unwrap_or(i64::MIN).to_le_bytes());
    bytes.extend_from_slice(&start.as_micros().to_le_bytes());
    bytes.extend_from_slice(&end.as_micros().to_le_bytes());
    bytes.extend_from_slice(place.stream.as_bytes());
    bytes.extend_from_slice(&head.checksum.to_le_bytes());
    let checksum = CRC32C.checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(event);
    Some((head, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_as_it_was_written() {
        let place = Place { stream: Uuid::new_v4(), position: 7, sequence: 3, window_end_us: Some(-5) };
        let (start, end) = (Instant::from_micros(10), Instant::from_micros(20));
        let (head, bytes) = record(Kind::Window, place, start, end, b"{}").unwrap();
        assert_eq!(bytes.len(), head.record_bytes());
        let read = Head::read(&bytes).unwrap();
        assert_eq!(read, head);
        assert!(read.fits(b"{}") && !read.fits(b"[]"));
        let after = Place { position: 8, sequence: 4, window_end_us: Some(20), ..place };
        assert_eq!(read.after(), after);
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(CRC32C.checksum(b"123456789"), 0xe306_9283);
    }
}
