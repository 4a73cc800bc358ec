//! A reader that knows its line, and refuses to go on for ever.

use std::io::{self, BufRead, Read};

/// Bytes a capture file may have; a server of 16 GPUs takes about 1 MB a capture.
const MOST_BYTES: u64 = 1 << 30;

/// Counts the lines and bytes that were consumed.
pub(super) struct Counted<R> {
    inner: R,
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl<R> Counted<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, lines: 1, bytes: 0 }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let chunk = self.fill_buf()?;
        let size = chunk.len().min(out.len());
        out[..size].copy_from_slice(&chunk[..size]);
        self.consume(size);
        Ok(size)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is larger than 1 GiB"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, size: usize) {
        if let Ok(chunk) = self.inner.fill_buf() {
            let lines = chunk.iter().take(size).filter(|byte| **byte == b'\n').count();
            self.lines += u64::try_from(lines).unwrap_or(0);
        }
        self.bytes += u64::try_from(size).unwrap_or(0);
        self.inner.consume(size);
    }
}
