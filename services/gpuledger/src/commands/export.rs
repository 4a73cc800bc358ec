//! Events out: accepted facts, sealed values opened or said to be erased, and telemetry from blocks and archive. A window stands in one of these two: a block that is archived is not looked at.

use super::writer;
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_archive::windows::WindowReader;
use gpuledger_archive::{Archive, FileKey, Kind};
use gpuledger_books::facts::event_of;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::archive::staged;
use gpuledger_storage::{Tx, archive, blocks, facts};
use gpuledger_telemetry::terminal::say;
use gpuledger_trail::sealed::{Gone, open, terms};
use gpuledger_wire::block::{Opener, Staged};
use gpuledger_wire::{Event, EventData};

/// Facts of one page.
const PAGE: i64 = 5_000;
/// Blocks of one page, of about half a MiB.
const BLOCKS: i64 = 16;

/// What is wanted: events in `[from, to)`, windows by their end.
struct Wanted {
    from: Option<Instant>,
    to: Option<Instant>,
}

impl Wanted {
    fn has(&self, at: Instant) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }
}

/// Prints accepted facts in the order they were accepted, then telemetry where it is wanted too.
pub(crate) async fn events(
    settings: &Settings,
    telemetry: bool,
    from: Option<Instant>,
    to: Option<Instant>,
) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let wanted = Wanted { from, to };
    print_facts(&mut tx, &wanted).await?;
    if telemetry {
        print_archived(settings, &mut tx, &wanted).await?;
        print_blocks(&mut tx, &wanted).await?;
    }
    Ok(Outcome::Done)
}

async fn print_facts(tx: &mut Tx, wanted: &Wanted) -> Result<()> {
    let mut after = 0;
    loop {
        let mut page = facts::load_page(tx, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        let terms = terms(tx);
        open(tx, &terms.seal, page.iter_mut().map(|stored| &mut stored.body).collect(), Gone::Said).await?;
        for stored in &page {
            if wanted.has(event_of(stored)?.time) {
                say(&String::from_utf8_lossy(&stored.body));
            }
        }
    }
}

/// The files that the database has as closed, whatever else lies there. Without such files the archive is not opened.
async fn print_archived(settings: &Settings, tx: &mut Tx, wanted: &Wanted) -> Result<()> {
    let closed = archive::files(tx, Kind::Windows.word(), i64::MIN, i64::MAX).await?;
    let reached = |first_us: i64, last_us: i64| {
        wanted.from.is_none_or(|from| from.as_micros() <= last_us)
            && wanted.to.is_none_or(|to| first_us < to.as_micros())
    };
    let closed: Vec<_> = closed.into_iter().filter(|file| reached(file.first_us, file.last_us)).collect();
    if closed.is_empty() {
        return Ok(());
    }
    let files = Archive::open_to_read(&settings.archive())?;
    for file in closed {
        let key: FileKey = file.key.parse().map_err(anyhow::Error::msg)?;
        for rows in WindowReader::new(&key, files.get(&key).await?)? {
            for row in rows?.iter().filter(|row| wanted.has(row.end)) {
                print(&event_of_window(&staged(row))?);
            }
        }
    }
    Ok(())
}

async fn print_blocks(tx: &mut Tx, wanted: &Wanted) -> Result<()> {
    let mut opener = Opener::new()?;
    let mut after = None;
    loop {
        let page = blocks::page(tx, after, BLOCKS).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.hour_us, last.number));
        for block in &page {
            for window in opener.open(&block.body)?.windows() {
                let event = event_of_window(&window?)?;
                let end = match &event.data {
                    EventData::TelemetryWindow(window) => window.end.get(),
                    _ => event.time,
                };
                if wanted.has(end) {
                    print(&event);
                }
            }
        }
    }
}

fn event_of_window(window: &Staged<'_>) -> Result<Event> {
    let event = window.to_event();
    event.map_err(|why| anyhow::anyhow!("window {} of {}: {}", window.id, window.source, why.fault))
}

fn print(event: &Event) {
    say(&String::from_utf8_lossy(&event.canonical_bytes()));
}
