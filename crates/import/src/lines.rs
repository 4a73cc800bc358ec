//! Lines of a file, one at a time, never longer in memory than the limit.

use crate::report::{Reason, Reject};
use std::io::{self, BufRead};

/// A reader of numbered lines.
pub(crate) struct Lines<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
    ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), number: 0, bytes: 0, ended: true }
    }

    /// Number of the line last read, from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Bytes read so far.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the line last read had a line end.
    pub(crate) const fn ended(&self) -> bool {
        self.ended
    }

    /// The next line without its end, or why it is none; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Result<&str, Reject>>> {
        let Some(length) = self.fill()? else { return Ok(None) };
        self.number += 1;
        if length > u64::try_from(self.limit).unwrap_or(u64::MAX) {
            let message = format!("the line has {length} bytes, the limit is {}", self.limit);
            return Ok(Some(Err(Reject::new(Reason::BadLine, None, message))));
        }
        let mut line = self.buffer.as_slice();
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        Ok(Some(match std::str::from_utf8(line) {
            Err(e) => {
                let at = e.valid_up_to() + 1;
                Err(Reject::new(
                    Reason::BadLine,
                    None,
                    format!("not UTF-8 at byte {at} of the line; convert the file to UTF-8"),
                ))
            }
            Ok(text) if text.contains('\0') => Err(Reject::new(
                Reason::BadLine,
                None,
                "the line holds a NUL byte; the file is damaged or not a text",
            )),
            Ok(text) => Ok(text),
        }))
    }

    /// Reads up to the line end, keeping no more than the limit; gives the line's length in bytes.
    fn fill(&mut self) -> io::Result<Option<u64>> {
        self.buffer.clear();
        let (mut length, mut any) = (0_u64, false);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                self.ended &= !any;
                return Ok(any.then_some(length));
            }
            any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = self.limit.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            length += u64::try_from(part.len()).unwrap_or(u64::MAX);
            let used = part.len() + usize::from(end.is_some());
            self.bytes += u64::try_from(used).unwrap_or(u64::MAX);
            self.input.consume(used);
            if end.is_some() {
                self.ended = true;
                return Ok(Some(length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn all(text: &[u8], limit: usize) -> (Vec<Result<String, String>>, bool) {
        let mut lines = Lines::new(BufReader::with_capacity(3, text), limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            out.push(line.map(str::to_owned).map_err(|r| r.message));
        }
        let ended = lines.ended();
        (out, ended)
    }

    #[test]
    fn line_ends_and_mark_are_stripped() {
        let (lines, ended) = all(b"\xef\xbb\xbfab\r\n\ncd", 100);
        assert_eq!(lines, [Ok("ab".to_owned()), Ok(String::new()), Ok("cd".to_owned())]);
        assert!(!ended, "the last line has no end");
    }

    #[test]
    fn long_and_foreign_lines_are_refused_and_the_next_goes_on() {
        let (lines, _) = all(b"12345678901\nab\xffc\na\0b\nok\n", 10);
        assert!(lines[0].as_ref().unwrap_err().contains("11 bytes, the limit is 10"));
        assert!(lines[1].as_ref().unwrap_err().contains("not UTF-8 at byte 3"));
        assert!(lines[2].as_ref().unwrap_err().contains("NUL"));
        assert_eq!(lines[3], Ok("ok".to_owned()));
    }

    #[test]
    fn memory_stays_within_the_limit() {
        let text = vec![b'x'; 10 << 20];
        let mut lines = Lines::new(BufReader::new(text.as_slice()), 1 << 16);
        assert!(lines.next_line().unwrap().unwrap().is_err());
        assert!(lines.buffer.capacity() < 1 << 18);
    }
}
