//! Blocks of telemetry windows as they came: what is stored from their acceptance until they are archived.
//!
//! A byte of version (1), four bytes with the length before compression, lowest first, then one zstd frame. In it, window after window: a byte of
//! encoding, eight bytes of the event's time in microseconds, lowest first, and source, id, node and body, each after its length as a varint.

use crate::arrived::{Arrived, Encoding};
use gpuledger_domain::time::Instant;
use zstd::bulk::{Compressor, Decompressor};

const VERSION: u8 = 1;
/// Fast, and telemetry repeats itself so much that more effort gains little.
const LEVEL: i32 = 1;
/// No block of ours is longer before compression: they end soon after a quarter of a MiB, and a window has at most one.
const LONGEST: usize = 16 << 20;

/// Why bytes are no block.
#[derive(Debug, thiserror::Error)]
#[error("a block of telemetry cannot be read: {0}")]
pub struct BlockError(String);

/// A window in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged<'b> {
    /// CloudEvents `source`.
    pub source: &'b str,
    /// CloudEvents `id`.
    pub id: &'b str,
    /// CloudEvents `time`.
    pub time: Instant,
    /// Its node.
    pub node: &'b str,
    /// What its body is.
    pub encoding: Encoding,
    /// The event's data as it came.
    pub body: &'b [u8],
}

/// Makes blocks.
pub struct Sealer {
    raw: Vec<u8>,
    compressor: Compressor<'static>,
}

impl Sealer {
    /// One that makes block after block.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Self, BlockError> {
        let compressor = Compressor::new(LEVEL).map_err(|why| BlockError(why.to_string()))?;
        Ok(Self { raw: Vec::new(), compressor })
    }

    /// Adds a window to the block that is being made.
    pub fn push(&mut self, window: &Arrived) {
        self.raw.push(window.encoding.into());
        self.raw.extend(window.time.as_micros().to_le_bytes());
        for bytes in [window.source.as_bytes(), window.id.as_bytes(), window.node.as_bytes(), &window.body] {
            length(&mut self.raw, bytes.len());
            self.raw.extend(bytes);
        }
    }

    /// Bytes of the block that is being made, before compression.
    pub fn raw_bytes(&self) -> usize {
        self.raw.len()
    }

    /// Ends the block, and begins the next.
    ///
    /// # Errors
    /// It is longer than any block may be, or the compressor refuses.
    pub fn seal(&mut self) -> Result<Vec<u8>, BlockError> {
        let size = u32::try_from(self.raw.len()).ok().filter(|_| self.raw.len() <= LONGEST);
        let size = size.ok_or_else(|| BlockError(format!("{} bytes are too many", self.raw.len())))?;
        let frame = self.compressor.compress(&self.raw).map_err(|why| BlockError(why.to_string()))?;
        self.raw.clear();
        let mut block = Vec::with_capacity(frame.len() + 5);
        block.push(VERSION);
        block.extend(size.to_le_bytes());
        block.extend(frame);
        Ok(block)
    }
}

/// A block that was opened.
pub struct Block {
    raw: Vec<u8>,
}

/// Opens blocks.
pub struct Opener {
    decompressor: Decompressor<'static>,
}

impl Opener {
    /// One that opens block after block.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Self, BlockError> {
        let decompressor = Decompressor::new().map_err(|why| BlockError(why.to_string()))?;
        Ok(Self { decompressor })
    }

    /// Opens a block.
    ///
    /// # Errors
    /// The bytes are no block of this version.
    pub fn open(&mut self, block: &[u8]) -> Result<Block, BlockError> {
        let [version, a, b, c, d, frame @ ..] = block else {
            return Err(BlockError("it is cut off".to_owned()));
        };
        let size = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
        if *version != VERSION || size > LONGEST {
            return Err(BlockError(format!(
                "version {version} and {size} bytes, expected version {VERSION}"
            )));
        }
        let raw = self.decompressor.decompress(frame, size).map_err(|why| BlockError(why.to_string()))?;
        if raw.len() == size {
            Ok(Block { raw })
        } else {
            Err(BlockError(format!("{} bytes, expected {size}", raw.len())))
        }
    }
}

impl Block {
    /// Its windows in order.
    pub fn windows(&self) -> impl Iterator<Item = Result<Staged<'_>, BlockError>> {
        let mut rest = self.raw.as_slice();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let window = staged(&mut rest);
            if window.is_none() {
                rest = &[];
            }
            Some(window.ok_or_else(|| BlockError("a window is cut off".to_owned())))
        })
    }
}

fn staged<'b>(rest: &mut &'b [u8]) -> Option<Staged<'b>> {
    let (encoding, after) = rest.split_first()?;
    let (time, after) = after.split_first_chunk::<8>()?;
    *rest = after;
    let mut next = || part(rest);
    Some(Staged {
        encoding: Encoding::try_from(*encoding).ok()?,
        time: Instant::from_micros(i64::from_le_bytes(*time)),
        source: std::str::from_utf8(next()?).ok()?,
        id: std::str::from_utf8(next()?).ok()?,
        node: std::str::from_utf8(next()?).ok()?,
        body: next()?,
    })
}

fn part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let mut length = 0;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        length |= usize::from(byte & 127) << shift;
        if *byte < 128 {
            let (part, after) = rest.split_at_checked(length)?;
            *rest = after;
            return Some(part);
        }
    }
    None
}

fn length(out: &mut Vec<u8>, mut length: usize) {
    loop {
        let low = u8::try_from(length & 127).unwrap_or(127);
        length >>= 7;
        if length == 0 {
            out.push(low);
            return;
        }
        out.push(low | 128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(node: &str, body: Vec<u8>) -> Arrived {
        Arrived {
            source: format!("/nodes/{node}"),
            id: format!("{node}-1"),
            time: Instant::from_micros(-5),
            node: node.to_owned(),
            stream: "s".to_owned(),
            sequence: 1,
            start: Instant::from_micros(0),
            end: Instant::from_micros(5),
            rows: 0,
            encoding: if body.len().is_multiple_of(2) { Encoding::Protobuf } else { Encoding::Json },
            body,
        }
    }

    #[test]
    fn windows_come_back_as_they_came() {
        let mut sealer = Sealer::new().unwrap();
        let mut opener = Opener::new().unwrap();
        for lengths in [vec![0, 127, 128], vec![70_001], vec![]] {
            let windows: Vec<Arrived> = lengths.iter().map(|n| window("n1", vec![7; *n])).collect();
            windows.iter().for_each(|window| sealer.push(window));
            let block = opener.open(&sealer.seal().unwrap()).unwrap();
            let back: Vec<_> = block.windows().map(Result::unwrap).collect();
            let wanted: Vec<_> = windows.iter().map(Arrived::staged).collect();
            assert_eq!(back, wanted);
        }
    }

    #[test]
    fn what_is_cut_or_foreign_is_refused() {
        let mut sealer = Sealer::new().unwrap();
        sealer.push(&window("n1", vec![1; 300]));
        let bytes = sealer.seal().unwrap();
        let mut opener = Opener::new().unwrap();
        for end in 0..bytes.len() {
            assert!(opener.open(&bytes[..end]).is_err(), "{end}");
        }
        let foreign = [&[2], &bytes[1..]].concat();
        assert!(opener.open(&foreign).is_err());
        let cut = Block { raw: vec![0; 20] };
        assert!(cut.windows().any(|window| window.is_err()));
    }
}
