//! A file as it will stand: its bytes, their digest, and what its rows span.

use crate::key::{FileKey, Kind};
use gpuledger_domain::time::Instant;
use sha2::{Digest as _, Sha256};

/// A file that is complete and stands nowhere yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// SHA-256 of them.
    pub digest: [u8; 32],
    /// Number of rows.
    pub rows: u64,
    /// Earliest instant of its rows.
    pub first: Instant,
    /// Latest instant of its rows: a window's end, a minute's begin.
    pub last: Instant,
}

impl Sealed {
    pub(crate) fn new(bytes: Vec<u8>, instants: impl Iterator<Item = (Instant, Instant)>) -> Self {
        let (mut rows, mut first, mut last) = (0, Instant::MAX, Instant::MIN);
        for (from, to) in instants {
            rows += 1;
            first = first.min(from);
            last = last.max(to);
        }
        Self { digest: digest(&bytes), bytes, rows, first, last }
    }

    /// Its name as a part of an hour.
    pub fn key(&self, kind: Kind, hour: Instant, part: u32) -> FileKey {
        FileKey { kind, hour, part, digest: self.digest }
    }
}

/// SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
