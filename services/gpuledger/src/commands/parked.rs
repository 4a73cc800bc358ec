//! Events that were not applied: list, explain, retry, discard.

mod explain;

use super::writer;
use crate::cli::{Parked, ParkedOf};
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use crate::table;
use anyhow::Result;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::batch::Tally;
use gpuledger_ledger::parking::{CorrectionError, Decider, correct, discard, retry};
use gpuledger_storage::parked::{Choice, ParkedRow, open};
use gpuledger_telemetry::terminal::{say, say_err};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// Who decides here.
const PRINCIPAL: &str = "cli";

/// Runs a command about parked events.
pub(crate) async fn run(settings: &Settings, what: Parked) -> Result<Outcome> {
    match what {
        Parked::List { of, format } => list(settings, choice(None, of), &format).await,
        Parked::Explain { number, format } => explain::run(settings, number, &format).await,
        Parked::Retry { number: Some(number), with: Some(file), reason, .. } => {
            take_instead(settings, number, &file, &reason).await
        }
        Parked::Retry { number, of, reason, .. } => take_again(settings, choice(number, of), &reason).await,
        Parked::Discard { number, of, reason } => give_up(settings, choice(number, of), &reason).await,
    }
}

fn choice(number: Option<i64>, of: ParkedOf) -> Choice {
    Choice { number, reason: of.kind, source: of.source }
}

async fn list(settings: &Settings, choice: Choice, format: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let rows = open(&mut tx, &choice).await?;
    if format == "json" {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        say(&serde_json::to_string_pretty(&json!({"rows": rows}))?);
        return Ok(Outcome::Done);
    }
    let cells = |row: &ParkedRow| {
        vec![row.seq.to_string(), row.reason.clone(), row.subject.clone(), row.detail.clone()]
    };
    say(&table::render(
        &["number", "reason", "subject", "detail"],
        &["number"],
        &rows.iter().map(cells).collect::<Vec<_>>(),
    ));
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
        "retry_of": row.retry_of.map(|number| number.to_string()),
    })
}

async fn take_again(settings: &Settings, choice: Choice, reason: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let (retried, tally) = retry(&db, &choice, &decider(reason)?).await?;
    if retried == 0 && choice.number.is_some() {
        return Ok(none_open(&choice));
    }
    Ok(tell(tally))
}

/// Takes the event of a file in for a parked one.
async fn take_instead(settings: &Settings, number: i64, file: &Path, reason: &str) -> Result<Outcome> {
    let with = read(file)?;
    let db = writer(settings).await?;
    match correct(&db, number, with, &decider(reason)?).await {
        Ok(tally) => Ok(tell(tally)),
        Err(CorrectionError::Ledger(error)) => Err(error.into()),
        Err(error @ CorrectionError::NotOpen(_)) => {
            say_err(&format!("gpuledger: {error}"));
            Ok(Outcome::No)
        }
        Err(error @ (CorrectionError::Unreadable(_) | CorrectionError::Identity(_))) => {
            Err(Usage(format!("{}: {error}", file.display())).into())
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let done = match file.to_str() {
        Some("-") => std::io::stdin().lock().read_to_end(&mut bytes).map(drop),
        _ => std::fs::read(file).map(|read| bytes = read),
    };
    done.map_err(|error| Usage(format!("{}: {error}", file.display())))?;
    Ok(bytes)
}

async fn give_up(settings: &Settings, choice: Choice, reason: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let discarded = discard(&db, &choice, &decider(reason)?).await?;
    if discarded == 0 && choice.number.is_some() {
        return Ok(none_open(&choice));
    }
    say(&format!("{discarded} discarded"));
    Ok(Outcome::Done)
}

fn decider(reason: &str) -> Result<Decider<'_>> {
    if reason.trim().is_empty() {
        return Err(Usage("--reason is empty: say why, it is on record".to_owned()).into());
    }
    Ok(Decider { principal: PRINCIPAL, reason, now: now()? })
}

fn none_open(choice: &Choice) -> Outcome {
    let number = choice.number.unwrap_or_default();
    say_err(&format!("gpuledger: no parked event {number} is open"));
    Outcome::No
}

fn tell(tally: Tally) -> Outcome {
    say(&format!(
        "{} accepted, {} repeated, {} parked again",
        tally.accepted + tally.windows,
        tally.repeated,
        tally.parked
    ));
    if tally.parked == 0 { Outcome::Done } else { Outcome::No }
}
