//! A restored database: its offsets beside the broker, before it is served.

use super::publish::kafka;
use super::writer;
use crate::cli::Backup;
use crate::clock::now;
use crate::outcome::{OutOfReach, Outcome, Usage};
use crate::settings::Settings;
use crate::table;
use anyhow::Result;
use gpuledger_ledger::LedgerError;
use gpuledger_ledger::offsets::{Checked, check, rewind};
use gpuledger_ledger::parking::Decider;
use gpuledger_messaging::{KafkaSettings, MessagingError, OffsetCheck, manifest};
use gpuledger_storage::Db;
use gpuledger_telemetry::terminal::{say, say_err};
use serde_json::{Value, json};

/// Faults that an error spells out; the command shows all.
const SPELLED_OUT: usize = 5;

/// Runs a command about a restored database.
pub(crate) async fn run(settings: &Settings, what: Backup) -> Result<Outcome> {
    let kafka = kafka(settings)?;
    let db = writer(settings).await?;
    let checked = checked(&db, &kafka, settings).await?;
    match what {
        Backup::Check { format } => {
            show(&checked, &format)?;
            Ok(if checked.faults().next().is_none() { Outcome::Done } else { Outcome::No })
        }
        Backup::Rewind { reason } => {
            if reason.trim().is_empty() {
                return Err(Usage("--reason is empty: say why, it is on record".to_owned()).into());
            }
            let decider = Decider { principal: "cli", reason: &reason, now: now()? };
            rewind(&db, &settings.kafka_group, &checked, &decider).await?;
            for check in checked.faults() {
                say(&format!("{}: read from {} on", check.partition, oldest(check)));
            }
            say(&format!("{} of {} rewound", checked.faults().count(), checked.offsets.len()));
            Ok(Outcome::Done)
        }
    }
}

/// Says no where a stored offset does not fit the broker: nothing may be read before somebody has decided.
pub(crate) async fn must_fit(db: &Db, kafka: &KafkaSettings, settings: &Settings) -> Result<()> {
    let checked = checked(db, kafka, settings).await?;
    let faults: Vec<String> =
        checked.faults().filter_map(|check| check.fault.as_ref()).map(ToString::to_string).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(SPELLED_OUT);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let shown = faults[..faults.len().min(SPELLED_OUT)].join("\n  ");
    Err(anyhow::anyhow!(
        "{} of {} stored offsets do not fit the broker, so nothing is read:\n  {shown}{more}\n`gpuledger backup check` shows all. Is the \
         database, the group and the broker the right one? Then restore a newer backup, or let `gpuledger backup rewind` read these partitions \
         from their oldest record",
        faults.len(),
        checked.offsets.len()
    ))
}

async fn checked(db: &Db, kafka: &KafkaSettings, settings: &Settings) -> Result<Checked> {
    let topics: Vec<String> = manifest(kafka).into_iter().map(|spec| spec.name).collect();
    check(db, kafka, &settings.kafka_group, &topics).await.map_err(|error| match error {
        LedgerError::Messaging(error) if error.is_out_of_reach() => OutOfReach(error.to_string()).into(),
        error => error.into(),
    })
}

fn show(checked: &Checked, format: &str) -> Result<()> {
    if format == "json" {
        let rows: Vec<Value> = checked.offsets.iter().map(as_json).collect();
        say(&serde_json::to_string_pretty(&json!({"rows": rows}))?);
    } else {
        let cells = |check: &OffsetCheck| {
            let mark = |of: fn(&gpuledger_messaging::Watermarks) -> i64| {
                check.live.as_ref().map_or_else(String::new, |(_, marks)| of(marks).to_string())
            };
            vec![
                check.partition.to_string(),
                check.stored.next_offset.to_string(),
                mark(|marks| marks.low),
                mark(|marks| marks.high),
                verdict(check).to_owned(),
            ]
        };
        say(&table::render(
            &["partition", "stored", "oldest", "end", "verdict"],
            &["stored", "oldest", "end"],
            &checked.offsets.iter().map(cells).collect::<Vec<_>>(),
        ));
    }
    for fault in checked.faults().filter_map(|check| check.fault.as_ref()) {
        say_err(&format!("gpuledger: {fault}"));
    }
    if !checked.of_others.is_empty() {
        let first = &checked.of_others[0];
        say_err(&format!(
            "gpuledger: {} more offsets are of other groups or topics, such as group {} on {}: are `kafka_group` and \
             `kafka_topic_prefix` the right ones?",
            checked.of_others.len(),
            first.group_name,
            first.topic
        ));
    }
    Ok(())
}

fn as_json(check: &OffsetCheck) -> Value {
    let live = check.live.as_ref();
    json!({
        "topic": &*check.partition.topic,
        "partition": check.partition.partition.to_string(),
        "stored": check.stored.next_offset.to_string(),
        "oldest": live.map(|(_, marks)| marks.low.to_string()),
        "end": live.map(|(_, marks)| marks.high.to_string()),
        "verdict": verdict(check),
        "detail": check.fault.as_ref().map(ToString::to_string),
    })
}

/// In one word each: `fits`, `deleted` (records are gone that were not read), `past_the_end`, `foreign`, `missing`.
fn verdict(check: &OffsetCheck) -> &'static str {
    match &check.fault {
        None => "fits",
        Some(MessagingError::OffsetOutOfRange { offset, low, .. }) if offset < low => "deleted",
        Some(MessagingError::OffsetOutOfRange { .. }) => "past_the_end",
        Some(MessagingError::MissingPartition { .. }) => "missing",
        Some(_) => "foreign",
    }
}

fn oldest(check: &OffsetCheck) -> String {
    check.live.as_ref().map_or_else(|| "the beginning".to_owned(), |(_, marks)| marks.low.to_string())
}
