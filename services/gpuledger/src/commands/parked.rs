//! Events that were not applied: list, retry, discard.

use super::writer;
use crate::cli::{Format, Parked};
use crate::clock::now;
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::table;
use crate::text::{say, say_err};
use anyhow::Result;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::parking::retry;
use gpuledger_storage::parked::{Decision, ParkedRow, decide, find_open, open};
use serde_json::{Value, json};

/// Runs a command about parked events.
pub(crate) async fn run(settings: &Settings, what: Parked) -> Result<Outcome> {
    match what {
        Parked::List { format } => list(settings, format).await,
        Parked::Retry { number } => {
            let tally = retry(&writer(settings).await?, number, now()?).await?;
            say(&format!(
                "{} accepted, {} repeated, {} parked again",
                tally.accepted + tally.windows,
                tally.repeated,
                tally.parked
            ));
            Ok(if tally.parked == 0 { Outcome::Done } else { Outcome::No })
        }
        Parked::Discard { number, reason } => discard(settings, number, &reason).await,
    }
}

async fn list(settings: &Settings, format: Format) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let rows = open(&mut tx).await?;
    match format {
        Format::Json => say(&serde_json::to_string_pretty(
            &json!({"rows": rows.iter().map(row_json).collect::<Vec<_>>()}),
        )?),
        Format::Table | Format::Csv => {
            let cells = |row: &ParkedRow| {
                vec![row.seq.to_string(), row.reason.clone(), row.subject.clone(), row.detail.clone()]
            };
            say(&table::render(
                &["number", "reason", "subject", "detail"],
                &["number"],
                &rows.iter().map(cells).collect::<Vec<_>>(),
            ));
        }
    }
    Ok(Outcome::Done)
}

fn row_json(row: &ParkedRow) -> Value {
    json!({
        "number": row.seq.to_string(),
        "reason": row.reason,
        "detail": row.detail,
        "source": row.source,
        "id": row.id,
        "subject": row.subject,
        "time": row.at_us.map(|at| Instant::from_micros(at).to_string()),
        "received": Instant::from_micros(row.received_at_us).to_string(),
        "origin": row.origin,
    })
}

async fn discard(settings: &Settings, number: i64, reason: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.begin().await?;
    if find_open(&mut tx, number).await?.is_none() {
        say_err(&format!("gpuledger: no parked event {number} is open"));
        return Ok(Outcome::No);
    }
    decide(&mut tx, number, Decision::Discarded, reason, now()?.as_micros()).await?;
    tx.commit().await?;
    Ok(Outcome::Done)
}
