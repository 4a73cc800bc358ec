//! The segments: one file is written, older ones wait to be acknowledged.

use super::error::SpoolError;
use super::files::{segment_path, write_whole};
use super::frame::{Kind, Place, record};
use super::points::{disk, point, torn_at};
use gpuledger_domain::time::Instant;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// First bytes of a segment: what it is, and the version of its form.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"GLSPOOL1";

/// One file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Position at which it begins; its name.
    pub(crate) first: u64,
    /// Bytes of it that count.
    pub(crate) bytes: u64,
}

/// The files of the spool, the last of them open.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    sync: bool,
    /// Never empty; the last is the one that is written.
    segments: VecDeque<Segment>,
    file: File,
    /// The file has bytes behind those that count, which could not be cut off.
    spoilt: bool,
}

impl Disk {
    /// The folder with these segments, the last of them to be continued.
    pub(crate) fn resume(
        folder: PathBuf,
        sync: bool,
        segments: VecDeque<Segment>,
    ) -> Result<Self, SpoolError> {
        let (first, bytes) = segments.back().map_or((0, 0), |last| (last.first, last.bytes));
        let path = segment_path(&folder, first);
        let mut file = File::options().write(true).open(&path).map_err(SpoolError::io("open", &path))?;
        let cut = |file: &mut File| -> io::Result<()> {
            if file.metadata()?.len() != bytes {
                file.set_len(bytes)?;
                file.sync_all()?;
            }
            file.seek(SeekFrom::Start(bytes)).map(drop)
        };
        cut(&mut file).map_err(SpoolError::io("cut", &path))?;
        Ok(Self { folder, sync, segments, file, spoilt: false })
    }

    /// A first segment, or one more behind `segments`, at this place.
    pub(crate) fn begin(
        folder: PathBuf,
        sync: bool,
        mut segments: VecDeque<Segment>,
        place: Place,
    ) -> Result<Self, SpoolError> {
        let (segment, file) = begin_segment(&folder, sync, place)?;
        push(&mut segments, segment);
        Ok(Self { folder, sync, segments, file, spoilt: false })
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes of the segment that is written.
    pub(crate) fn current_bytes(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.bytes)
    }

    /// Position at which the segment that is written begins.
    pub(crate) fn current_first(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.first)
    }

    /// Whether the segment that is written can take no more.
    pub(crate) const fn spoilt(&self) -> bool {
        self.spoilt
    }

    /// The segment that holds the record at `position`, or would, and the position at which the next one begins.
    pub(crate) fn holding(&self, position: u64) -> Option<(Segment, Option<u64>)> {
        let index = self.segments.partition_point(|segment| segment.first <= position).checked_sub(1)?;
        Some((*self.segments.get(index)?, self.segments.get(index + 1).map(|next| next.first)))
    }

    /// Goes on in a new segment that begins at `place`.
    pub(crate) fn rotate(&mut self, place: Place) -> Result<(), SpoolError> {
        let (segment, file) = begin_segment(&self.folder, self.sync, place)?;
        push(&mut self.segments, segment);
        self.file = file;
        self.spoilt = false;
        Ok(())
    }

    /// Writes a record behind the last one. After an error nothing of it counts.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), SpoolError> {
        let first = self.current_first();
        point("spool::before-write");
        if let Err(error) = self.write(record) {
            self.cut_back();
            return Err(SpoolError::io("write", segment_path(&self.folder, first))(error));
        }
        point("spool::after-sync");
        if let Some(last) = self.segments.back_mut() {
            last.bytes = last.bytes.saturating_add(u64::try_from(record.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        disk("spool::disk")?;
        if let Some(bytes) = torn_at("spool::torn") {
            self.file.write_all(record.get(..bytes).unwrap_or(record))?;
            std::process::abort();
        }
        self.file.write_all(record)?;
        point("spool::after-write");
        if self.sync {
            let synced = self.file.sync_data();
            if synced.is_err() {
                // What a failed sync leaves is unknown, also after a later one that succeeds: this file is not written again.
                self.spoilt = true;
            }
            synced?;
        }
        Ok(())
    }

    /// Takes back what a failed write has left.
    fn cut_back(&mut self) {
        let good = self.current_bytes();
        let cut = self.file.set_len(good).and_then(|()| self.file.seek(SeekFrom::Start(good)));
        if let Err(error) = cut {
            tracing::error!(%error, "a failed write could not be cut off; the spool goes on in a new segment");
            self.spoilt = true;
        }
    }

    /// Removes segments whose records all lie before `position`.
    pub(crate) fn drop_before(&mut self, position: u64) -> Result<(), SpoolError> {
        while let (Some(oldest), Some(next)) = (self.segments.front(), self.segments.get(1)) {
            if next.first > position {
                break;
            }
            let path = segment_path(&self.folder, oldest.first);
            point("spool::before-remove");
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(SpoolError::io("remove", path)(error));
                }
                _ => self.segments.pop_front(),
            };
            point("spool::after-remove");
        }
        Ok(())
    }
}

/// A segment that begins where the last one does replaces it: that one holds no record that counts.
fn push(segments: &mut VecDeque<Segment>, segment: Segment) {
    while segments.back().is_some_and(|last| last.first >= segment.first) {
        segments.pop_back();
    }
    segments.push_back(segment);
}

fn begin_segment(folder: &Path, sync: bool, place: Place) -> Result<(Segment, File), SpoolError> {
    let path = segment_path(folder, place.position);
    let at = place.window_end().unwrap_or(Instant::MIN);
    let begin = record(Kind::Begin, place, at, at, &[]).map(|(_, bytes)| bytes).unwrap_or_default();
    let content = [FILE_MAGIC.as_slice(), &begin].concat();
    let file = write_whole(&path, &content, sync, ("spool::segment-written", "spool::segment-named"))?;
    let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
    Ok((Segment { first: place.position, bytes }, file))
}
