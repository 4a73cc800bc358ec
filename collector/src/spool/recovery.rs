//! Opening: what the folder holds, where it goes on, and what was lost since.

use super::disk::{Disk, FILE_MAGIC, Segment};
use super::error::SpoolError;
use super::files::{segment_path, segments};
use super::frame::Place;
use super::reason::Reason;
use super::scan::{Step, step};
use super::settings::{SpoolSettings, Sync};
use super::state::State;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use uuid::Uuid;

/// A spool as it was found, or begun.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Its files.
    pub(crate) disk: Disk,
    /// The place after the last record.
    pub(crate) tip: Place,
    /// The place before the first record that is not acknowledged.
    pub(crate) acknowledged: Place,
    /// Why time is missing before the first window of this run.
    pub(crate) missing: Reason,
}

/// The end of the last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// Ends with a sound record.
    Sound,
    /// Ends with a write that was interrupted; nobody has seen that record.
    Torn,
    /// Ends with bytes that may have been records, and may have been sent.
    Ruined,
}

/// What a scan of the last segment found.
#[derive(Debug)]
struct Scanned {
    tip: Option<Place>,
    bytes: u64,
    tail: Tail,
}

/// Opens the spool in its folder, which exists and is ours.
pub(crate) fn recover(settings: &SpoolSettings) -> Result<Recovered, SpoolError> {
    let folder = &settings.folder;
    let sync = settings.sync == Sync::Each;
    let state = State::read(folder)?;
    let firsts = segments(folder)?;
    let Some((last, older)) = firsts.split_last() else { return begin(settings, state) };
    let scanned = scan(folder, *last)?;
    let stated = state.map(|state| state.tip);
    let first = *older.first().unwrap_or(last);
    let oldest = first_place(folder, first)?;
    // Without a sound record and without a state nothing is known of the stream: only that this segment once held something.
    let unknown =
        Place { stream: Uuid::nil(), position: last.saturating_add(1), sequence: 0, window_end_us: None };
    let tip = scanned.tip.or(stated).unwrap_or(unknown);
    let behind = stated.is_some_and(|stated| stated.position > tip.position);
    report(folder, &scanned, behind);
    let lost = scanned.tail == Tail::Ruined || behind;
    let acknowledged = acknowledged(state, first, oldest, tip);
    let missing = if lost { Reason::Damaged } else { Reason::Stopped };
    let mut known = measured(folder, older)?;
    known.push_back(Segment { first: *last, bytes: scanned.bytes });
    if !lost && sync {
        let disk = Disk::resume(folder.clone(), sync, known)?;
        return Ok(Recovered { disk, tip, acknowledged, missing });
    }
    let position = tip.position.max(stated.map_or(0, |stated| stated.position));
    let tip = Place { stream: Uuid::new_v4(), position, sequence: 0, ..tip };
    let disk = Disk::begin(folder.clone(), sync, known, tip)?;
    Ok(Recovered { disk, tip, acknowledged, missing })
}

/// A spool without segments: new, or emptied by hand. It goes on behind what it once had; what was not acknowledged is lost.
fn begin(settings: &SpoolSettings, state: Option<State>) -> Result<Recovered, SpoolError> {
    let lost = state.is_some_and(|state| state.acknowledged.position < state.tip.position);
    let tip = Place {
        stream: Uuid::new_v4(),
        position: state.map_or(0, |state| state.tip.position),
        sequence: 0,
        window_end_us: state.and_then(|state| state.acknowledged.window_end_us),
    };
    let disk = Disk::begin(settings.folder.clone(), settings.sync == Sync::Each, VecDeque::new(), tip)?;
    let missing = if lost { Reason::Damaged } else { Reason::Stopped };
    Ok(Recovered { disk, tip, acknowledged: tip, missing })
}

fn report(folder: &Path, scanned: &Scanned, behind: bool) {
    let folder = folder.display();
    match scanned.tail {
        Tail::Sound => {}
        Tail::Torn => {
            tracing::warn!(%folder, "the last write of the spool was interrupted; its begin is cut off")
        }
        Tail::Ruined => {
            tracing::error!(%folder, "the end of the spool is damaged; what stood there becomes a gap, and a new stream begins");
        }
    }
    if behind {
        tracing::error!(%folder, "the spool lacks records that it once had; they become a gap, and a new stream begins");
    }
}

/// What was acknowledged: as the state says, but never before the oldest segment that is left, nor behind the last record. `first` is where that
/// segment begins by its name: its oldest sound record may lie behind damage that is still to be told.
fn acknowledged(state: Option<State>, first: u64, oldest: Option<Place>, tip: Place) -> Place {
    let stated = state.map(|state| state.acknowledged);
    let found = match (stated, oldest) {
        (Some(stated), Some(oldest)) if stated.position < first => oldest,
        (Some(stated), _) => stated,
        (None, oldest) => oldest.unwrap_or(tip),
    };
    if found.position > tip.position { tip } else { found }
}

/// The segments before the last, with their lengths.
fn measured(folder: &Path, firsts: &[u64]) -> Result<VecDeque<Segment>, SpoolError> {
    let measure = |first: &u64| {
        let path = segment_path(folder, *first);
        let bytes = fs::metadata(&path).map_err(SpoolError::io("look at", &path))?.len();
        Ok(Segment { first: *first, bytes })
    };
    firsts.iter().map(measure).collect()
}

fn read(folder: &Path, first: u64) -> Result<Vec<u8>, SpoolError> {
    let path = segment_path(folder, first);
    fs::read(&path).map_err(SpoolError::io("read", path))
}

/// The place before the first sound record of a segment.
pub(crate) fn first_place(folder: &Path, first: u64) -> Result<Option<Place>, SpoolError> {
    let bytes = read(folder, first)?;
    let mut at = FILE_MAGIC.len();
    loop {
        match step(&bytes, at, true) {
            Step::Record { head, .. } => return Ok(Some(head.place)),
            Step::Damage { next } => at = next,
            Step::End | Step::Torn | Step::Ruin | Step::More => return Ok(None),
        }
    }
}

/// Reads the last segment to its end.
fn scan(folder: &Path, first: u64) -> Result<Scanned, SpoolError> {
    let bytes = read(folder, first)?;
    let (mut at, mut tip) = (FILE_MAGIC.len(), None);
    let tail = loop {
        match step(&bytes, at, true) {
            Step::Record { head, next } => {
                tip = Some(head.after());
                at = next;
            }
            Step::Damage { next } => at = next,
            Step::End => break Tail::Sound,
            Step::Torn => break Tail::Torn,
            Step::Ruin | Step::More => break Tail::Ruined,
        }
    };
    let bytes = u64::try_from(at).unwrap_or(u64::MAX);
    // Segments get their name when they are whole: one without a begin was damaged later.
    let tail = if tip.is_none() { Tail::Ruined } else { tail };
    Ok(Scanned { tip, bytes, tail })
}
