//! Replay: NDJSON events straight into the ledger, the same code as behind Kafka.

use crate::batch::{Applied, Tally, apply};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use crate::{horizon, measured, pack};
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, retry, state};
use std::io::BufRead;

/// Events of one transaction.
const BATCH_EVENTS: usize = 10_000;
/// A line longer than this is not read into memory whole; the event is refused with its place.
const LINE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// One input.
pub struct Input {
    /// Its name in messages.
    pub name: String,
    /// Its lines.
    pub reader: Box<dyn BufRead + Send>,
}

/// Replays inputs one after the other, then moves the horizon to `as_of` (default: the newest accepted event time). `progress` is told
/// the lines read so far.
///
/// # Errors
/// The database or an unreadable input. Bad events are parked, and counted.
pub async fn replay(
    db: &Db,
    inputs: Vec<Input>,
    as_of: Option<Instant>,
    now: Instant,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Tally, LedgerError> {
    horizon::accept_clock(db, now).await?;
    let mut total = Applied { tally: crate::parking::retry_due(db, now).await?, newest: None };
    let mut lines = 0;
    for mut input in inputs {
        let mut reading = Lines { input: &mut input, line: 0 };
        loop {
            let batch = reading.batch()?;
            if batch.is_empty() {
                break;
            }
            lines += u64::try_from(batch.len()).unwrap_or(0);
            let applied = apply_alone(db, &batch, now).await?;
            total.tally += applied.tally;
            total.newest = total.newest.max(applied.newest);
            progress(lines);
        }
    }
    // Hours are packed before anything of them is posted: pools may divide by what was measured.
    pack::everything(db).await?;
    if let Some(to) = as_of.or(total.newest.map(|newest| newest.min(now))) {
        horizon::advance(db, to).await?;
    }
    measured::settle(db).await?;
    Ok(total.tally)
}

/// Applies one batch in a transaction of its own, again where it lost against another one.
///
/// # Errors
/// The database.
pub async fn apply_alone(db: &Db, batch: &[Incoming], now: Instant) -> Result<Applied, LedgerError> {
    retry::retry(async || {
        let mut tx = db.begin().await?;
        let applied = apply(&mut tx, batch, now).await?;
        tx.commit().await?;
        Ok(applied)
    })
    .await
}

/// The newest horizon, or none before anything was replayed.
///
/// # Errors
/// The database.
pub async fn horizon_of(db: &Db) -> Result<Option<Instant>, LedgerError> {
    let mut tx = db.snapshot().await?;
    Ok(state::load(&mut tx).await?.horizon_us.map(Instant::from_micros))
}

struct Lines<'i> {
    input: &'i mut Input,
    line: u64,
}

impl Lines<'_> {
    fn batch(&mut self) -> Result<Vec<Incoming>, LedgerError> {
        let mut batch = Vec::new();
        while batch.len() < BATCH_EVENTS {
            let Some(raw) = self.next()? else { break };
            if !raw.iter().all(u8::is_ascii_whitespace) {
                batch.push(Incoming::trusted(raw, format!("{}:{}", self.input.name, self.line)));
            }
        }
        Ok(batch)
    }

    /// The next line without its end; of one that is too long only the beginning, so that it is refused and the rest goes on.
    fn next(&mut self) -> Result<Option<Vec<u8>>, LedgerError> {
        let broken = |source| LedgerError::Input { file: self.input.name.clone(), source };
        let mut raw = Vec::new();
        let reader = &mut self.input.reader;
        let read =
            std::io::Read::take(&mut *reader, LINE_BYTES_MAX).read_until(b'\n', &mut raw).map_err(broken)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if raw.last() == Some(&b'\n') {
            raw.pop();
        } else if raw.len() >= usize::try_from(LINE_BYTES_MAX).unwrap_or(usize::MAX) {
            skip_line(reader.as_mut()).map_err(broken)?;
        }
        if raw.last() == Some(&b'\r') {
            raw.pop();
        }
        Ok(Some(raw))
    }
}

fn skip_line(reader: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let (used, done) = {
            let buffer = reader.fill_buf()?;
            match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            }
        };
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}
