//! Signals: what was ordered, and what became of it.

use super::writer;
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::table;
use anyhow::Result;
use gpuledger_domain::time::Instant;
use gpuledger_storage::signals::{SignalRow, all};
use gpuledger_telemetry::terminal::say;
use serde_json::{Value, json};

/// Lists all signals, in the order of raising.
pub(crate) async fn list(settings: &Settings, format: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let rows = all(&mut *db.snapshot().await?).await?;
    if format == "json" {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        say(&serde_json::to_string_pretty(&json!({"rows": rows}))?);
    } else {
        let headings = ["signal", "action", "tenant", "gpu", "slices", "raised", "state"];
        say(&table::render(&headings, &[], &rows.iter().map(cells).collect::<Vec<_>>()));
    }
    Ok(Outcome::Done)
}

fn row_json(row: &SignalRow) -> Value {
    let at = |us: Option<i64>| us.map(|us| Instant::from_micros(us).to_string());
    json!({
        "signal": row.signal, "action": row.action, "tenant": row.tenant, "gpu": row.gpu, "slices": row.slices, "cause": row.cause,
        "state": row.state(), "since": at(Some(row.since_us)), "raised_at": at(Some(row.raised_at_us)), "due_at": at(Some(row.due_at_us)),
        "withdrawn_at": at(row.withdrawn_at_us), "published_at": at(row.published_at_us), "attempts": row.attempts.to_string(),
        "outcome": row.outcome, "answered_at": at(row.answered_at_us), "lifted_at": at(row.lifted_at_us),
    })
}

fn cells(row: &SignalRow) -> Vec<String> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    vec![
        row.signal.clone(),
        row.action.clone(),
        row.tenant.clone(),
        or_none(&row.gpu),
        or_none(&row.slices),
        Instant::from_micros(row.raised_at_us).to_string(),
        row.state().to_owned(),
    ]
}
