//! From the archive back into a ledger: windows as they came, by the way every window takes.

use super::error::ArchivingError;
use crate::batch::{Applied, apply_all};
use crate::consume::is_timely;
use crate::error::LedgerError;
use crate::horizon;
use crate::incoming::{Arrivals, Incoming, Origin};
use gpuledger_archive::windows::{self, WindowReader, WindowRow};
use gpuledger_archive::{Archive, FileKey, Kind};
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, retry};
use gpuledger_wire::arrived::{Arrived, Encoding};
use gpuledger_wire::block::Staged;
use gpuledger_wire::window::read_window;
use std::sync::Arc;

/// Takes in the windows of the archive whose hours begin in `[from, to)`, some megabytes a transaction. Those that count already count
/// once, so it may be stopped and begun again. The horizon stays where it is, and nothing is packed yet. `progress` is told the windows read so far.
///
/// # Errors
/// The database; the archive, or a file whose bytes are not what its name says.
pub async fn restore(
    db: &Db,
    files: &Archive,
    (from, to): (Instant, Instant),
    now: Instant,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Applied, LedgerError> {
    horizon::accept_clock(db, now).await?;
    let (mut total, mut read) = (Applied::default(), 0);
    for key in files.list(Kind::Windows, from, to).await.map_err(ArchivingError::from)? {
        for rows in open(files, &key).await? {
            let rows = rows.map_err(ArchivingError::from)?;
            read += u64::try_from(rows.len()).unwrap_or(0);
            let applied = take_in(db, &arrivals(&key, rows, now), now).await?;
            total.tally += applied.tally;
            total.newest = total.newest.max(applied.newest);
            progress(read);
        }
    }
    Ok(total)
}

async fn open(files: &Archive, key: &FileKey) -> Result<WindowReader, ArchivingError> {
    Ok(WindowReader::new(key, files.get(key).await?)?)
}

async fn take_in(db: &Db, arrivals: &Arrivals, now: Instant) -> Result<Applied, LedgerError> {
    retry::retry(async || {
        let mut tx = db.begin().await?;
        let applied = apply_all(&mut tx, arrivals, now).await?;
        tx.commit().await?;
        Ok(applied)
    })
    .await
}

fn arrivals(key: &FileKey, rows: Vec<WindowRow>, now: Instant) -> Arrivals {
    let file: Arc<str> = key.to_string().into();
    let (mut events, mut windows, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    for (place, row) in rows.into_iter().enumerate() {
        // A file is no topic, but its name and the place in a row group say as well where a window came from.
        let origin = Origin {
            topic: Arc::clone(&file),
            partition: 0,
            offset: i64::try_from(place).unwrap_or(i64::MAX),
        };
        match arrived(&row) {
            Some(window) if is_timely(&window, now) => {
                windows.push(window);
                origins.push(origin);
            }
            _ => events.push(judged(&staged(&row), &origin)),
        }
    }
    Arrivals { events, windows: Arc::new(windows), origins, ..Arrivals::default() }
}

/// A window in plain form; others are for the reader of events to judge.
fn arrived(row: &WindowRow) -> Option<Arrived> {
    if row.encoding != windows::Encoding::Protobuf {
        return None;
    }
    let window = read_window(&row.body, |_, _| {})?;
    Some(Arrived {
        node: window.node.to_owned(),
        stream: window.stream.to_owned(),
        sequence: window.sequence,
        start: window.start,
        end: window.end,
        rows: window.units.saturating_add(window.processes),
        encoding: Encoding::Protobuf,
        source: row.source.clone(),
        id: row.id.clone(),
        time: row.time,
        body: row.body.clone(),
    })
}

fn judged(staged: &Staged<'_>, origin: &Origin) -> Incoming {
    Incoming {
        event: staged.to_event(),
        origin: origin.to_string(),
        raw: None,
        not_entitled: None,
        retry_of: None,
    }
}

/// A row of a file, as it stood in its block.
pub fn staged(row: &WindowRow) -> Staged<'_> {
    Staged {
        source: &row.source,
        id: &row.id,
        time: row.time,
        node: &row.node,
        encoding: match row.encoding {
            windows::Encoding::Protobuf => Encoding::Protobuf,
            windows::Encoding::Json => Encoding::Json,
        },
        body: &row.body,
    }
}
