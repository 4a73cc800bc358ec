//! `windows/`: every accepted window with its envelope and its bytes as they came.

use crate::columns::{Column, Group, Groups, write};
use crate::error::ArchiveError;
use crate::key::FileKey;
use crate::sealed::Sealed;
use bytes::Bytes;
use gpuledger_domain::time::Instant;
use parquet::errors::{ParquetError, Result};
use std::str::FromStr;

/// Bytes of bodies in a row group, about: what a reader holds at once.
const GROUP_BYTES: usize = 4 << 20;

/// Names are those of the event, `start` and `end` those of the window; the counts say what the body holds.
const SCHEMA: &str = "message windows {
    required binary source (STRING);
    required binary id (STRING);
    required int64 time (TIMESTAMP(MICROS, true));
    required binary node (STRING);
    required binary stream (STRING);
    required int64 sequence;
    required int64 start (TIMESTAMP(MICROS, true));
    required int64 end (TIMESTAMP(MICROS, true));
    required int32 units;
    required int32 processes;
    required int32 gaps;
    required int64 gap_us;
    required binary encoding (STRING);
    required binary body;
}";

/// What the bytes of a body are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// `schemas/telemetry.proto`.
    Protobuf,
    /// The event's `data` as JSON.
    Json,
}

impl Encoding {
    fn word(self) -> &'static str {
        match self {
            Self::Protobuf => "protobuf",
            Self::Json => "json",
        }
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let found = [Self::Protobuf, Self::Json].into_iter().find(|encoding| encoding.word() == text);
        found.ok_or_else(|| format!("encoding `{text}`, expected protobuf or json"))
    }
}

/// One window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRow {
    /// CloudEvents `source`.
    pub source: String,
    /// CloudEvents `id`.
    pub id: String,
    /// CloudEvents `time`.
    pub time: Instant,
    /// Node that was measured.
    pub node: String,
    /// Its stream.
    pub stream: String,
    /// Place in the stream (I-2).
    pub sequence: i64,
    /// First instant of the window.
    pub start: Instant,
    /// First instant after it.
    pub end: Instant,
    /// Readings of units in the body.
    pub units: i32,
    /// Readings of processes in the body.
    pub processes: i32,
    /// Gaps in the body.
    pub gaps: i32,
    /// Microseconds of all of these gaps.
    pub gap_us: i64,
    /// What the body is.
    pub encoding: Encoding,
    /// The bytes as they came.
    pub body: Vec<u8>,
}

/// Makes the file of these windows, in the order given.
///
/// # Errors
/// [`ArchiveError::Format`]: a fault of ours.
pub fn seal(rows: &[WindowRow]) -> std::result::Result<Sealed, ArchiveError> {
    write(SCHEMA, groups(rows).map(columns), rows.iter().map(|row| (row.start, row.end)))
}

/// Cuts the rows where the bodies reach the size of a group.
fn groups(rows: &[WindowRow]) -> impl Iterator<Item = &[WindowRow]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let full = rest.iter().position(|row| {
            bytes += row.body.len();
            bytes >= GROUP_BYTES
        });
        let (group, others) = rest.split_at(full.map_or(rest.len(), |last| last + 1));
        rest = others;
        (!group.is_empty()).then_some(group)
    })
}

fn columns(rows: &[WindowRow]) -> Vec<Column> {
    vec![
        Column::text(rows.iter().map(|row| row.source.as_str())),
        Column::text(rows.iter().map(|row| row.id.as_str())),
        Column::int64(rows.iter().map(|row| row.time.as_micros())),
        Column::text(rows.iter().map(|row| row.node.as_str())),
        Column::text(rows.iter().map(|row| row.stream.as_str())),
        Column::int64(rows.iter().map(|row| row.sequence)),
        Column::int64(rows.iter().map(|row| row.start.as_micros())),
        Column::int64(rows.iter().map(|row| row.end.as_micros())),
        Column::int32(rows.iter().map(|row| row.units)),
        Column::int32(rows.iter().map(|row| row.processes)),
        Column::int32(rows.iter().map(|row| row.gaps)),
        Column::int64(rows.iter().map(|row| row.gap_us)),
        Column::text(rows.iter().map(|row| row.encoding.word())),
        Column::bytes(rows.iter().map(|row| row.body.as_slice())),
    ]
}

/// The windows of a file, a row group at a time.
pub struct WindowReader {
    key: String,
    groups: Groups,
}

impl WindowReader {
    /// Reads the bytes of the file `key`.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`]: they are no Parquet file.
    pub fn new(key: &FileKey, bytes: Bytes) -> std::result::Result<Self, ArchiveError> {
        let key = key.to_string();
        match Groups::open(bytes) {
            Ok(groups) => Ok(Self { key, groups }),
            Err(why) => Err(ArchiveError::Damaged { key, why: why.to_string() }),
        }
    }
}

/// Row groups of some megabytes, in the order they were written; [`ArchiveError::Damaged`] where a column is missing or is no column of such a file.
impl Iterator for WindowReader {
    type Item = std::result::Result<Vec<WindowRow>, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.groups.next().and_then(|group| group.map(|group| rows(&group)).transpose());
        let damaged =
            |why: ParquetError| ArchiveError::Damaged { key: self.key.clone(), why: why.to_string() };
        read.map_err(damaged).transpose()
    }
}

fn rows(group: &Group<'_>) -> Result<Vec<WindowRow>> {
    let mut sources = group.text("source")?.into_iter();
    let mut ids = group.text("id")?.into_iter();
    let mut times = group.int64("time")?.into_iter();
    let mut nodes = group.text("node")?.into_iter();
    let mut streams = group.text("stream")?.into_iter();
    let mut sequences = group.int64("sequence")?.into_iter();
    let mut starts = group.int64("start")?.into_iter();
    let mut ends = group.int64("end")?.into_iter();
    let mut units = group.int32("units")?.into_iter();
    let mut processes = group.int32("processes")?.into_iter();
    let mut gaps = group.int32("gaps")?.into_iter();
    let mut gap_us = group.int64("gap_us")?.into_iter();
    let mut encodings = group.text("encoding")?.into_iter();
    let bodies = group.bytes("body")?;
    let mut rows = Vec::with_capacity(bodies.len());
    for body in bodies {
        // Every column was read to the same number of rows.
        rows.push(WindowRow {
            source: take(&mut sources)?,
            id: take(&mut ids)?,
            time: Instant::from_micros(take(&mut times)?),
            node: take(&mut nodes)?,
            stream: take(&mut streams)?,
            sequence: take(&mut sequences)?,
            start: Instant::from_micros(take(&mut starts)?),
            end: Instant::from_micros(take(&mut ends)?),
            units: take(&mut units)?,
            processes: take(&mut processes)?,
            gaps: take(&mut gaps)?,
            gap_us: take(&mut gap_us)?,
            encoding: take(&mut encodings)?.parse().map_err(ParquetError::General)?,
            body,
        });
    }
    Ok(rows)
}

fn take<T>(values: &mut impl Iterator<Item = T>) -> Result<T> {
    values.next().ok_or_else(|| ParquetError::General("a column is shorter than the others".to_owned()))
}
