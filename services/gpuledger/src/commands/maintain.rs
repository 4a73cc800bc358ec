//! A round of maintenance by hand: partitions, archive, retention.

use super::writer;
use crate::clock::now;
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_ledger::archive::{maintain, make_ahead};
use gpuledger_telemetry::terminal::say;

/// Runs one round and says what it did.
pub(crate) async fn run(settings: &Settings) -> Result<Outcome> {
    let (db, now) = (writer(settings).await?, now()?);
    say(&format!("{} partitions made", make_ahead(&db, now).await?));
    let kept = maintain(&db, &settings.archive(), settings.keeping(), now).await?;
    say(&format!("{} windows archived in {} files at {}", kept.windows, kept.files, settings.archive_url));
    if kept.orphans > 0 {
        say(&format!("{} files removed that were begun and never closed", kept.orphans));
    }
    kept.dropped.iter().for_each(|name| say(&format!("dropped {name}")));
    kept.stay
        .iter()
        .for_each(|name| say(&format!("{name} stays: it is in use, or some of it is not archived")));
    Ok(Outcome::Done)
}
