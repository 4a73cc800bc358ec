//! Events in: replay, of files and of an archive.

use super::writer;
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::progress::Progress;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_archive::{Archive, ArchiveSettings};
use gpuledger_domain::time::Instant;
use gpuledger_ledger::archive::restore;
use gpuledger_ledger::batch::Applied;
use gpuledger_ledger::horizon;
use gpuledger_ledger::replay::{Input, replay as replay_inputs};
use gpuledger_storage::Db;
use gpuledger_telemetry::terminal::say_err;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// An archive to take telemetry from: hours that begin in `[from, to)`.
pub(crate) struct Archived {
    pub(crate) url: String,
    pub(crate) from: Option<Instant>,
    pub(crate) to: Option<Instant>,
}

/// Replays an archive and files into the ledger.
pub(crate) async fn replay(
    settings: &Settings,
    files: &[PathBuf],
    archived: Option<Archived>,
    as_of: Option<Instant>,
    at: Option<Instant>,
) -> Result<Outcome> {
    let inputs = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let db = writer(settings).await?;
    let now = match at {
        Some(at) => at,
        None => now()?,
    };
    let restored = match archived {
        Some(archived) => restore_from(settings, &db, archived, now).await?,
        None => Applied::default(),
    };
    let mut progress = Progress::new("replaying");
    let mut tally = replay_inputs(&db, inputs, as_of, now, &mut |lines| progress.set(lines)).await?;
    progress.done();
    tally += restored.tally;
    // The newest of both is where the ledger stands, as if they had come together.
    if let Some(newest) = restored.newest.filter(|_| as_of.is_none()) {
        horizon::advance(&db, newest.min(now)).await?;
    }
    say_err(&format!(
        "{} accepted, {} windows, {} repeated, {} parked",
        tally.accepted, tally.windows, tally.repeated, tally.parked
    ));
    Ok(Outcome::Done)
}

async fn restore_from(settings: &Settings, db: &Db, archived: Archived, now: Instant) -> Result<Applied> {
    let Archived { url, from, to } = archived;
    let files = Archive::open_to_read(&ArchiveSettings { url, s3: settings.archive_s3.clone() })?;
    let hours = (from.unwrap_or(Instant::MIN), to.unwrap_or(Instant::MAX));
    let mut progress = Progress::new("restoring");
    let restored = restore(db, &files, hours, now, &mut |windows| progress.set(windows)).await?;
    progress.done();
    Ok(restored)
}

/// Opens a file of events; `-` is standard input.
pub(crate) fn open(path: &PathBuf) -> Result<Input> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok(Input {
            name: "standard input".to_owned(),
            reader: Box::new(BufReader::new(std::io::stdin())),
        });
    }
    let file = File::open(path).map_err(|error| Usage(format!("{name}: {error}")))?;
    Ok(Input { name, reader: Box::new(BufReader::new(file)) })
}
