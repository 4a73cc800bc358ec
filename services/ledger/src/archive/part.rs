//! One part of an hour, from blocks to closed files.
//!
//! An object store and the database do not commit together. Were a file written and then recorded, a kill in between would leave a
//! file of which nobody knows whether it counts; were it recorded first, a record of nothing. So its name, which its digest makes, is committed as
//! an intent, then it is written, then one transaction closes it and marks its blocks (ADR 39).

use super::error::ArchivingError;
use super::fold::Minutes;
use crate::error::LedgerError;
use crate::points::point;
use gpuledger_archive::windows::{self, WindowRow};
use gpuledger_archive::{Archive, FileKey, Kind, Sealed, key, minutes};
use gpuledger_domain::time::Instant;
use gpuledger_storage::archive::{self, ClosedFile, WaitingBlock};
use gpuledger_storage::audit::{self, PendingRecord};
use gpuledger_storage::{Db, Tx};
use gpuledger_wire::arrived::{Arrived, Encoding};
use gpuledger_wire::block::{Opener, Staged};
use gpuledger_wire::canonical_json;
use gpuledger_wire::window::read_window;
use serde_json::json;
use std::borrow::Cow;

/// Bytes of windows in a part, about: what is held in memory at once, twice.
const PART_BYTES: i64 = 32 << 20;

/// What was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    /// Files.
    pub(super) files: u64,
    /// Windows in them.
    pub(super) windows: u64,
}

/// A file that is made and stands nowhere yet.
struct Made {
    kind: Kind,
    sealed: Sealed,
    gaps: i64,
    gap_us: i64,
}

/// Closes the next part of the earliest hour before `due`; none: nothing is due, or another process is at it.
pub(super) async fn close_next(
    db: &Db,
    files: &Archive,
    due: Instant,
    now: Instant,
) -> Result<Option<Closed>, LedgerError> {
    let mut tx = db.begin().await?;
    if !archive::try_lock(&mut tx).await? {
        return Ok(None);
    }
    let Some(hour_us) = archive::waiting_hour(&mut tx, due.as_micros()).await? else { return Ok(None) };
    let hour = Instant::from_micros(hour_us);
    refuse_foreign(&mut tx, files, hour).await?;
    let blocks = archive::waiting_blocks(&mut tx, hour_us, PART_BYTES).await?;
    let numbers: Vec<i64> = blocks.iter().map(|block| block.number).collect();
    let part = archive::next_part(&mut tx, hour_us).await?;
    let made = off_the_runtime(move || make(&blocks)).await?;
    let windows = made.first().map_or(0, |file| file.sealed.rows);
    let closed = Closed { files: u64::try_from(made.len()).unwrap_or(0), windows };
    let named: Vec<(FileKey, Made)> = made.into_iter().map(|file| (name(&file, hour, part), file)).collect();
    announce(db, &named, now).await?;
    for (key, file) in named {
        let record = record(&key, &file, now);
        files.put(&key, file.sealed).await.map_err(ArchivingError::from)?;
        archive::close(&mut tx, &record).await?;
        audit::append(&mut tx, &[audited(&record, now)]).await?;
        archive::forget(&mut tx, &[record.key]).await?;
    }
    point("ledger::archive-written");
    archive::mark_archived(&mut tx, hour_us, &numbers).await?;
    tx.commit().await?;
    Ok(Some(closed))
}

/// Files that the database does not know were written by another ledger, or by this one after the backup it was restored from. To add to them would
/// count windows twice.
async fn refuse_foreign(tx: &mut Tx, files: &Archive, hour: Instant) -> Result<(), LedgerError> {
    for kind in Kind::ALL {
        let keys = files
            .list_hour(kind, hour)
            .await
            .map_err(ArchivingError::from)?
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        if let Some(key) = archive::unknown(tx, &keys).await?.into_iter().next() {
            return Err(ArchivingError::Foreign { place: files.place().to_owned(), key }.into());
        }
    }
    Ok(())
}

/// Compressing takes a second or more, in which the runtime has other things to do.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArchivingError> + Send + 'static,
) -> Result<T, ArchivingError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
}

fn make(blocks: &[WaitingBlock]) -> Result<Vec<Made>, ArchivingError> {
    let mut opener = Opener::new()?;
    let mut rows = Vec::new();
    for block in blocks {
        for staged in opener.open(&block.body)?.windows() {
            rows.push(row(&staged?)?);
        }
    }
    // The order in which windows came is nobody's business, and neighbours alike compress well.
    rows.sort_by(|(a, _), (b, _)| (&a.node, &a.stream, a.sequence).cmp(&(&b.node, &b.stream, b.sequence)));
    let folded = fold(&rows);
    let rows: Vec<WindowRow> = rows.into_iter().map(|(row, _)| row).collect();
    let gaps = rows.iter().map(|row| i64::from(row.gaps)).sum();
    let gap_us = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.gap_us));
    let mut made = vec![Made { kind: Kind::Windows, sealed: windows::seal(&rows)?, gaps, gap_us }];
    if !folded.is_empty() {
        made.push(Made { kind: Kind::Minutes, sealed: minutes::seal(&folded)?, gaps: 0, gap_us: 0 });
    }
    Ok(made)
}

/// A window as a row, and its body in protobuf where it came as JSON.
fn row(staged: &Staged<'_>) -> Result<(WindowRow, Option<Vec<u8>>), ArchivingError> {
    let plain = staged.plain().map_err(|why| unreadable(staged, &why.to_string()))?;
    let Some(window) = read_window(&plain, |_, _| {}) else { return bare(staged).map(|row| (row, None)) };
    let held = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let row = WindowRow {
        stream: window.stream.to_owned(),
        sequence: window.sequence,
        start: window.start,
        end: window.end,
        units: held(window.units),
        processes: held(window.processes),
        gaps: held(window.gaps),
        gap_us: window.gap_us,
        ..envelope(staged)
    };
    Ok((
        row,
        match plain {
            Cow::Borrowed(_) => None,
            Cow::Owned(plain) => Some(plain),
        },
    ))
}

/// A window that only the reader of events reads: packed hours have nothing of it, and neither have minutes. It is kept.
fn bare(staged: &Staged<'_>) -> Result<WindowRow, ArchivingError> {
    let event = staged.to_event().map_err(|why| unreadable(staged, &why.to_string()))?;
    let window = Arrived::from_event(&event).ok_or_else(|| unreadable(staged, "is no telemetry"))?;
    Ok(WindowRow {
        stream: window.stream,
        sequence: window.sequence,
        start: window.start,
        end: window.end,
        ..envelope(staged)
    })
}

/// What a block says without a look at the body.
fn envelope(staged: &Staged<'_>) -> WindowRow {
    WindowRow {
        source: staged.source.to_owned(),
        id: staged.id.to_owned(),
        time: staged.time,
        node: staged.node.to_owned(),
        stream: String::new(),
        sequence: 0,
        start: staged.time,
        end: staged.time,
        units: 0,
        processes: 0,
        gaps: 0,
        gap_us: 0,
        encoding: match staged.encoding {
            Encoding::Protobuf => windows::Encoding::Protobuf,
            Encoding::Json => windows::Encoding::Json,
        },
        body: staged.body.to_vec(),
    }
}

fn unreadable(staged: &Staged<'_>, why: &str) -> ArchivingError {
    ArchivingError::Window {
        source_name: staged.source.to_owned(),
        id: staged.id.to_owned(),
        why: why.to_owned(),
    }
}

/// The minutes of windows that are sorted by node.
fn fold(rows: &[(WindowRow, Option<Vec<u8>>)]) -> Vec<minutes::MinuteRow> {
    let mut folded = Vec::new();
    for node in rows.chunk_by(|(a, _), (b, _)| a.node == b.node) {
        let mut minutes = Minutes::default();
        for (row, plain) in node {
            read_window(plain.as_deref().unwrap_or(&row.body), |window, reading| {
                minutes.add(window, reading)
            });
        }
        folded.extend(node.first().map(|(row, _)| minutes.take(&row.node)).unwrap_or_default());
    }
    folded
}

fn name(file: &Made, hour: Instant, part: i32) -> FileKey {
    file.sealed.key(file.kind, hour, u32::try_from(part).unwrap_or(0))
}

/// Commits the names before anything of them stands.
async fn announce(db: &Db, named: &[(FileKey, Made)], now: Instant) -> Result<(), LedgerError> {
    let keys: Vec<String> = named.iter().map(|(key, _)| key.to_string()).collect();
    let mut tx = db.begin().await?;
    archive::intend(&mut tx, &keys, now.as_micros()).await?;
    Ok(tx.commit().await?)
}

fn record(key: &FileKey, file: &Made, now: Instant) -> ClosedFile {
    let held = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    ClosedFile {
        key: key.to_string(),
        kind: key.kind.word().to_owned(),
        hour_us: key.hour.as_micros(),
        part: i32::try_from(key.part).unwrap_or(i32::MAX),
        digest: key.digest.to_vec(),
        bytes: i64::try_from(file.sealed.bytes.len()).unwrap_or(i64::MAX),
        rows: held(file.sealed.rows),
        gaps: file.gaps,
        gap_us: file.gap_us,
        first_us: file.sealed.first.as_micros(),
        last_us: file.sealed.last.as_micros(),
        closed_at_us: now.as_micros(),
    }
}

/// Telemetry enters the log as the digests of closed files (L-1).
fn audited(file: &ClosedFile, now: Instant) -> PendingRecord {
    let told = json!({
        "key": file.key,
        "kind": file.kind,
        "hour": Instant::from_micros(file.hour_us).to_string(),
        "part": file.part.to_string(),
        "digest": key::hex(&file.digest),
        "bytes": file.bytes.to_string(),
        "rows": file.rows.to_string(),
        "gaps": file.gaps.to_string(),
        "gap_us": file.gap_us.to_string(),
    });
    PendingRecord {
        fact_seq: None,
        kind: "archive_file".to_owned(),
        body: canonical_json(&told),
        recorded_at_us: now.as_micros(),
    }
}
