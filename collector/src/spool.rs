//! The spool: every event lies on disk, numbered, before it is sent, and leaves it when it was acknowledged.
//!
//! ```text
//! spool/lock                       held while a collector runs
//! spool/state.json                 what is acknowledged, how far numbers were given
//! spool/00000000000000000000.seg   records, append-only; named after the first
//! spool/refused/                   what the sink refuses for ever, with the reason
//! ```
//!
//! What holds at any instant, whatever is killed:
//! - A number is given to one event only. A record that nobody can have seen (its write was interrupted) gives its number back;
//!   wherever something may have been seen and is gone, a new stream begins.
//! - A window that is kept has the next sequence of its stream (I-2). One that cannot be kept has none: the next kept window
//!   carries its time as a gap. The gap is made of the end of the last kept window, which is on disk, so a kill loses at most
//!   the reason.
//! - What is kept and can no longer be read is replaced, sequence by sequence, by windows that only say so.

mod disk;
mod error;
mod files;
mod frame;
mod gaps;
mod lost;
pub(crate) mod points;
mod reader;
mod reason;
mod recovery;
mod refused;
mod scan;
mod settings;
mod state;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use error::{NotKept, SpoolError};
pub use frame::Place;
pub use reader::Reader;
pub use reason::Reason;
pub use settings::{SpoolSettings, Sync};
pub use status::SpoolStatus;

use crate::window::ClosedWindow;
use disk::{Disk, Segment};
use frame::{HEAD_BYTES, Kind, record};
use gaps::{Missed, Refused};
use gpuledger_domain::time::Instant;
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use gpuledger_wire::{Event, EventData, EventError, Fault, MAX_EVENT_BYTES, encode_structured};
use lost::LostWindow;
use recovery::{Recovered, recover};
use state::State;
use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The spool of one node. Cheap to clone; clones are the same spool.
#[derive(Clone, Debug)]
pub struct Spool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: SpoolSettings,
    node: Name,
    source: String,
    inner: Mutex<Inner>,
    changed: Notify,
    /// Locked for as long as the spool is open.
    _lock: File,
}

#[derive(Debug)]
struct Inner {
    disk: Disk,
    tip: Place,
    acknowledged: Place,
    refused: Refused,
    /// Why time is missing between the last kept window and the next one.
    missing: Reason,
    /// Why the last window was not kept, as long as none is.
    trouble: Option<Reason>,
    status: SpoolStatus,
}

/// An event on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The event as canonical structured JSON.
    pub event: Vec<u8>,
    /// The place behind it: to be acknowledged once it and all before it have arrived.
    pub after: Place,
    /// Of a window: what has to be said in its place if it never arrives.
    window: Option<LostWindow>,
}

impl Spool {
    /// Opens the spool of `node`, or begins one. What was written and never finished is cut off.
    ///
    /// # Errors
    /// The folder cannot be made or read, or another process has it.
    pub fn open(settings: SpoolSettings, node: Name) -> Result<Self, SpoolError> {
        let settings = settings.within_bounds();
        let folder = &settings.folder;
        // Events name containers, pods and jobs: nobody else's business on the node.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(SpoolError::io("make", folder))?;
        let lock = lock(folder)?;
        let Recovered { disk, tip, acknowledged, missing } = recover(&settings)?;
        let status = SpoolStatus::default();
        let inner =
            Inner { disk, tip, acknowledged, refused: Refused::default(), missing, trouble: None, status };
        let source = format!("/nodes/{node}/collector");
        let spool = Self {
            shared: Arc::new(Shared {
                settings,
                node,
                source,
                inner: Mutex::new(inner),
                changed: Notify::new(),
                _lock: lock,
            }),
        };
        spool.inner().settle(&spool.shared.settings);
        Ok(spool)
    }

    /// Keeps a window under the next sequence of the stream, and gives that back. Times of which nothing was kept before it are
    /// added to its gaps.
    ///
    /// # Errors
    /// [`NotKept`]: the window's time becomes a gap of the next window that is kept. Nothing needs to be done.
    pub fn append_window(&self, closed: ClosedWindow) -> Result<u64, NotKept> {
        let (start, end) = (closed.window.start(), closed.window.end());
        let mut inner = self.inner();
        match inner.keep_window(&self.shared, closed) {
            Ok(sequence) => {
                inner.kept();
                self.shared.changed.notify_one();
                Ok(sequence)
            }
            Err(why) => {
                inner.not_kept(Missed { start, end, reason: why.reason() }, &why);
                Err(why)
            }
        }
    }

    /// Keeps another event of this node, and gives back its id.
    ///
    /// # Errors
    /// [`NotKept`]: it must be offered again as long as it holds.
    pub fn append_fact(&self, time: Instant, data: EventData) -> Result<String, NotKept> {
        let mut inner = self.inner();
        let id = inner.tip.id();
        let event = Event::new(&self.shared.source, &id, time, data).map_err(NotKept::Invalid)?;
        let limit = self.shared.settings.max_bytes;
        inner.keep(&self.shared.settings, limit, Kind::Fact, (time, time), &encode_structured(&event))?;
        inner.status.facts += 1;
        self.shared.changed.notify_one();
        Ok(id)
    }

    /// Reads what is not acknowledged, from the oldest record on.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// Everything before `place` has arrived, or was set aside: it may go. A kill before the state is on disk has it sent again,
    /// under the same names.
    pub fn acknowledge(&self, place: Place) {
        let mut inner = self.inner();
        inner.acknowledged = place;
        inner.settle(&self.shared.settings);
    }

    /// Sets aside what the sink refuses for ever, and gives back the event to send in its place: of a window the gap, else none.
    pub fn set_aside(&self, outgoing: &Outgoing, why: &str) -> Option<Outgoing> {
        let kept = refused::keep(self.folder(), &outgoing.event, outgoing.after.position, why);
        self.inner().status.refused += 1;
        match kept {
            Ok(file) => {
                tracing::error!(file = %file.display(), why, "the sink refuses an event for ever; it is set aside")
            }
            Err(error) => {
                tracing::error!(%error, why, "the sink refuses an event for ever, and it could not be set aside")
            }
        }
        let event = outgoing.window.as_ref()?.event(self.source(), self.node())?;
        Some(Outgoing { event, after: outgoing.after, window: None })
    }

    /// Waits until something was appended since this was last waited for.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// How it stands.
    pub fn status(&self) -> SpoolStatus {
        let inner = self.inner();
        SpoolStatus {
            bytes: inner.disk.bytes(),
            max_bytes: self.shared.settings.max_bytes,
            waiting: inner.tip.position.saturating_sub(inner.acknowledged.position),
            stream: inner.tip.stream.to_string(),
            acknowledged_window_end: inner.acknowledged.window_end(),
            window_end: inner.tip.window_end(),
            trouble: inner.trouble,
            ..inner.status.clone()
        }
    }

    /// Source of the node's events.
    pub fn source(&self) -> &str {
        &self.shared.source
    }

    pub(crate) fn node(&self) -> &Name {
        &self.shared.node
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.shared.settings.folder
    }

    pub(crate) fn acknowledged(&self) -> Place {
        self.inner().acknowledged
    }

    /// The place after the last record, the segment in which `position` lies, and where the next one begins.
    pub(crate) fn segment_at(&self, position: u64) -> (Place, Option<(Segment, Option<u64>)>) {
        let inner = self.inner();
        (inner.tip, inner.disk.holding(position))
    }

    /// Counts what can no longer be read, and says so.
    pub(crate) fn lost(&self, records: u64, windows: u64) {
        tracing::error!(records, windows, "records of the spool are damaged; windows are replaced by gaps");
        let mut inner = self.inner();
        inner.status.damaged_records += records;
        inner.status.damaged_windows += windows;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn keep_window(&mut self, shared: &Shared, closed: ClosedWindow) -> Result<u64, NotKept> {
        let (start, end) = (closed.window.start(), closed.window.end());
        if self.tip.window_end_us.is_none() {
            self.begin_time(&shared.settings, start)?;
        }
        let sequence = self.tip.sequence;
        let stream = Name::new(&self.tip.stream.to_string()).map_err(unfit)?;
        let number = i64::try_from(sequence)
            .ok()
            .and_then(Count::new)
            .ok_or_else(|| unfit("sequence has passed 2^63 - 1, remove the spool to begin a new stream"))?;
        let mut window = closed.numbered(stream, number);
        for missed in self.refused.before(self.tip.window_end(), start, &window.gaps, self.missing) {
            window.gaps.push(missed.gap().map_err(unfit)?);
        }
        let event = Event::new(&shared.source, &self.tip.id(), end, EventData::from(window))
            .map_err(NotKept::Invalid)?;
        let limit = shared.settings.bytes_for_windows();
        self.keep(&shared.settings, limit, Kind::Window, (start, end), &encode_structured(&event))?;
        Ok(sequence)
    }

    /// Notes where the first window of all begins, before it is written: were it damaged later, its time would still be known.
    fn begin_time(&mut self, settings: &SpoolSettings, start: Instant) -> Result<(), NotKept> {
        let tip = Place { window_end_us: Some(start.as_micros()), ..self.tip };
        self.disk.rotate(tip).map_err(NotKept::Disk)?;
        if self.acknowledged.position == tip.position {
            self.acknowledged = tip;
        }
        self.tip = tip;
        self.settle(settings);
        Ok(())
    }

    /// Writes one record, within `limit` bytes of all.
    fn keep(
        &mut self,
        settings: &SpoolSettings,
        limit: u64,
        kind: Kind,
        times: (Instant, Instant),
        event: &[u8],
    ) -> Result<(), NotKept> {
        let too_large = || NotKept::TooLarge { bytes: event.len(), limit: MAX_EVENT_BYTES };
        if event.len() > MAX_EVENT_BYTES {
            return Err(too_large());
        }
        let (head, bytes) = record(kind, self.tip, times.0, times.1, event).ok_or_else(too_large)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.make_room(settings, limit, length)?;
        self.disk.append(&bytes).map_err(NotKept::Disk)?;
        self.tip = head.after();
        Ok(())
    }

    /// Sees to it that a record of this length may be written to the current segment.
    fn make_room(&mut self, settings: &SpoolSettings, limit: u64, length: u64) -> Result<(), NotKept> {
        let begin = u64::try_from(HEAD_BYTES + disk::FILE_MAGIC.len()).unwrap_or(u64::MAX);
        let fits = |disk: &Disk, more: u64| disk.bytes().saturating_add(more) <= limit;
        let empty = self.disk.current_first() == self.tip.position;
        let all_arrived = self.acknowledged.position == self.tip.position;
        let large = self.disk.current_bytes().saturating_add(length) > settings.segment_bytes;
        let rotate = self.disk.spoilt() || !empty && (large || all_arrived && !fits(&self.disk, length));
        if rotate && (all_arrived || fits(&self.disk, length.saturating_add(begin))) {
            self.disk.rotate(self.tip).map_err(NotKept::Disk)?;
            self.settle(settings);
        }
        if self.disk.spoilt() || !fits(&self.disk, length) {
            return Err(NotKept::SpoolFull { bytes: self.disk.bytes(), limit });
        }
        Ok(())
    }

    fn kept(&mut self) {
        self.refused.clear();
        self.missing = Reason::NotSampled;
        self.status.windows += 1;
        if let Some(trouble) = self.trouble.take() {
            tracing::info!(trouble = trouble.word(), "windows are kept again; the time between is a gap");
        }
    }

    fn not_kept(&mut self, missed: Missed, why: &NotKept) {
        self.refused.add(missed);
        *self.status.not_kept.entry(missed.reason).or_default() += 1;
        // Once for each kind of trouble, not once a window.
        if self.trouble.replace(missed.reason) != Some(missed.reason) {
            tracing::error!(%why, reason = missed.reason.word(), "windows cannot be kept; their time becomes a gap");
        }
    }

    /// Brings the state to disk and drops what is acknowledged. A failure costs repetitions, not events.
    fn settle(&mut self, settings: &SpoolSettings) {
        let state = State { acknowledged: self.acknowledged, tip: self.tip };
        let written = state.write(&settings.folder, settings.sync == Sync::Each);
        let dropped = self.disk.drop_before(self.acknowledged.position);
        for error in [written.err(), dropped.err()].into_iter().flatten() {
            tracing::warn!(%error, "the spool could not be tidied; tried again with the next acknowledgement");
        }
    }
}

/// A window that cannot become an event.
fn unfit(problem: impl ToString) -> NotKept {
    let fault = Fault::BadField { field: "data".to_owned(), problem: problem.to_string() };
    NotKept::Invalid(EventError { fault, about: Box::default() })
}

fn lock(folder: &Path) -> Result<File, SpoolError> {
    let path = folder.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(SpoolError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SpoolError::InUse { folder: folder.to_owned() }),
        Err(TryLockError::Error(error)) => Err(SpoolError::io("lock", path)(error)),
    }
}
