//! Events in and out: replay, export.

use super::writer;
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::text::{say, say_err};
use anyhow::Result;
use gpuledger_books::facts::event_of;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::replay::{Input, replay as replay_inputs};
use gpuledger_storage::{facts, telemetry};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Facts of one page of an export.
const PAGE: i64 = 5_000;

/// Replays files into the ledger.
pub(crate) async fn replay(
    settings: &Settings,
    files: &[PathBuf],
    as_of: Option<Instant>,
    at: Option<Instant>,
) -> Result<Outcome> {
    let inputs = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let db = writer(settings).await?;
    let now = match at {
        Some(at) => at,
        None => now()?,
    };
    let mut progress = Progress::new("replaying");
    let tally = replay_inputs(&db, inputs, as_of, now, &mut |lines| progress.set(lines)).await?;
    progress.done();
    say_err(&format!(
        "{} accepted, {} windows, {} repeated, {} parked",
        tally.accepted, tally.windows, tally.repeated, tally.parked
    ));
    Ok(Outcome::Done)
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

/// Prints all accepted facts and telemetry windows, in the order they were accepted.
pub(crate) async fn export(
    settings: &Settings,
    from: Option<Instant>,
    to: Option<Instant>,
) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let inside = |at: Instant| from.is_none_or(|from| from <= at) && to.is_none_or(|to| at < to);
    let mut after = 0;
    loop {
        let page = facts::load_page(&mut tx, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for stored in &page {
            if inside(event_of(stored)?.time) {
                say(&String::from_utf8_lossy(&stored.body));
            }
        }
    }
    let mut after = None;
    loop {
        let page = telemetry::load_staged(&mut tx, after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for window in page.iter().filter(|window| inside(Instant::from_micros(window.end_us))) {
            say(&String::from_utf8_lossy(&window.body));
        }
    }
    Ok(Outcome::Done)
}
