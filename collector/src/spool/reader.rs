//! Reading records in order from the first that is not acknowledged.

use super::disk::{FILE_MAGIC, Segment};
use super::error::SpoolError;
use super::files::segment_path;
use super::frame::{HEAD_BYTES, Head, Kind, Place};
use super::gaps::Missed;
use super::lost::{LostWindow, between};
use super::reason::Reason;
use super::recovery::first_place;
use super::scan::{Step, step};
use super::{Outgoing, Spool};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are read at once, where a record has not more.
const CHUNK_BYTES: usize = 128 << 10;
/// Failed reads of a segment in a row before the rest of it is given up.
const PATIENCE: u32 = 5;

/// What lies in front of the reader.
#[derive(Clone, Copy, Debug)]
struct View {
    segment: Segment,
    /// The segment behind it, or none where this one is still written.
    next: Option<u64>,
    tip: Place,
}

/// Reads a spool. It may be made anew at any time: it begins at what is acknowledged.
#[derive(Debug)]
pub struct Reader {
    spool: Spool,
    /// The place before what is read next.
    at: Place,
    /// Where that lies: segment and offset, once it is found.
    offset: Option<(u64, u64)>,
    /// Found and not handed out yet.
    ready: VecDeque<Outgoing>,
    /// Failed reads in a row.
    failures: u32,
}

impl Reader {
    pub(crate) fn new(spool: Spool) -> Self {
        let at = spool.acknowledged();
        Self { spool, at, offset: None, ready: VecDeque::new(), failures: 0 }
    }

    /// Up to so many records, of so many bytes in all, but at least one where there is one. Empty: nothing waits.
    ///
    /// # Errors
    /// A segment that cannot be opened or read. The reader stays where it is.
    pub fn next(&mut self, records: usize, bytes: usize) -> Result<Vec<Outgoing>, SpoolError> {
        let (mut batch, mut left) = (Vec::new(), bytes);
        while batch.len() < records {
            if self.ready.is_empty() && !self.fill()? {
                break;
            }
            let Some(next) = self.ready.front() else { continue };
            match left.checked_sub(next.event.len()) {
                Some(rest) => left = rest,
                None if batch.is_empty() => left = 0,
                None => break,
            }
            batch.extend(self.ready.pop_front());
        }
        Ok(batch)
    }

    /// Reads on. Whether there was anything.
    fn fill(&mut self) -> Result<bool, SpoolError> {
        let Some(view) = self.view() else { return Ok(false) };
        let path = segment_path(self.spool.folder(), view.segment.first);
        match self.read(&path, &view) {
            Ok(()) => self.failures = 0,
            Err(error) if error.kind() != io::ErrorKind::NotFound && self.failures < PATIENCE => {
                self.failures += 1;
                return Err(SpoolError::io("read", path)(error));
            }
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "the rest of a segment cannot be read and is given up");
                self.failures = 0;
                self.leave(&view)?;
            }
        }
        Ok(true)
    }

    /// Reads until a record is found or the segment ends.
    fn read(&mut self, path: &Path, view: &View) -> io::Result<()> {
        let file = File::open(path)?;
        let end = view.segment.bytes.min(file.metadata()?.len());
        let mut from = match self.offset {
            Some((first, offset)) if first == view.segment.first => offset,
            _ => bytes(FILE_MAGIC.len()),
        };
        let mut wanted = CHUNK_BYTES;
        loop {
            let rest = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
            let mut chunk = vec![0; rest.min(wanted)];
            file.read_exact_at(&mut chunk, from)?;
            let (used, ended) = self.take(&chunk, chunk.len() == rest, view);
            from = from.saturating_add(bytes(used));
            self.offset = Some((view.segment.first, from));
            if ended {
                return self.leave(view).map_err(io::Error::other);
            }
            if !self.ready.is_empty() {
                return Ok(());
            }
            if used == 0 {
                wanted = wanted.saturating_mul(2);
            }
        }
    }

    /// The segment that is to be read, unless nothing waits.
    fn view(&mut self) -> Option<View> {
        let (tip, found) = self.spool.segment_at(self.at.position);
        if self.at.position >= tip.position {
            return None;
        }
        let (segment, next) = found?;
        Some(View { segment, next, tip })
    }

    /// Takes what is whole in `chunk`. How many bytes that was, and whether the segment ends there.
    fn take(&mut self, chunk: &[u8], whole: bool, view: &View) -> (usize, bool) {
        let limit = view.next.unwrap_or(view.tip.position);
        let mut at = 0;
        loop {
            match step(chunk, at, whole) {
                // A write that did not count and could not be cut off; the next segment has the record of this number.
                Step::Record { head, .. } if head.kind != Kind::Begin && head.place.position >= limit => {
                    return (at, true);
                }
                Step::Record { head, next } => {
                    self.record(head, chunk.get(at + HEAD_BYTES..next).unwrap_or_default());
                    at = next;
                }
                Step::Damage { next } => at = next,
                Step::End | Step::Torn | Step::Ruin => return (at, true),
                Step::More => return (at, false),
            }
        }
    }

    fn record(&mut self, head: Head, event: &[u8]) {
        if head.kind == Kind::Begin || head.place.position < self.at.position {
            return;
        }
        self.reach(head.place);
        self.at = head.after();
        let window = (head.kind == Kind::Window).then(|| LostWindow {
            stream: head.place.stream.to_string(),
            sequence: head.place.sequence,
            missed: Missed {
                start: head.place.window_end().unwrap_or(head.start).min(head.start),
                end: head.end,
                reason: Reason::Refused,
            },
        });
        self.ready.push_back(Outgoing { event: event.to_vec(), after: self.at, window });
    }

    /// Goes on at `place`. What lies between is lost: its windows are replaced, its facts are counted.
    fn reach(&mut self, place: Place) {
        let records = place.position.saturating_sub(self.at.position);
        if records > 0 {
            let lost = between(self.at, place, Reason::Damaged);
            self.spool.lost(records, bytes(lost.len()));
            let last = lost.len().saturating_sub(1);
            for (nth, window) in lost.into_iter().enumerate() {
                // Which of the lost records were windows is not known: only behind the last is the position.
                let between = Place {
                    sequence: window.sequence.saturating_add(1),
                    window_end_us: Some(window.missed.end.as_micros()),
                    ..self.at
                };
                let after = if nth == last { place } else { between };
                let event = window.event(self.spool.source(), self.spool.node());
                self.ready.extend(event.map(|event| Outgoing { event, after, window: None }));
            }
        }
        self.at = place;
    }

    /// The segment is read to its end: what it should have held and did not is lost.
    fn leave(&mut self, view: &View) -> Result<(), SpoolError> {
        match view.next {
            None => self.reach(view.tip),
            Some(first) => {
                // Its begin says where this segment ended; where that is damaged, its first sound record does.
                if let Some(place) = first_place(self.spool.folder(), first)? {
                    self.reach(place);
                }
                self.at.position = self.at.position.max(first);
            }
        }
        Ok(())
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
