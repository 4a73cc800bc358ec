//! One parked event in words, or as JSON.

use super::{row_json, writer};
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::parking::{Difference, Explanation, explain};
use gpuledger_telemetry::terminal::{say, say_err};
use serde_json::{Value, json};

/// Bytes of an unreadable event that are shown; it may be any file.
const SHOWN_BYTES: usize = 4_096;

/// Explains the parked event with this number.
pub(super) async fn run(settings: &Settings, number: i64, format: &str) -> Result<Outcome> {
    let Some(found) = explain(&writer(settings).await?, number).await? else {
        say_err(&format!("gpuledger: there is no parked event {number}"));
        return Ok(Outcome::No);
    };
    match format {
        "json" => say(&serde_json::to_string_pretty(&as_json(&found))?),
        _ => in_words(&found)?.iter().for_each(|line| say(line)),
    }
    Ok(Outcome::Done)
}

fn as_json(found: &Explanation) -> Value {
    let mut value = row_json(&found.row);
    value["event"] = found.event.clone().unwrap_or_default();
    value["raw"] = if found.event.is_none() { json!(raw(found)) } else { Value::Null };
    value["stands"] = found.stands.as_ref().map_or(Value::Null, |(fact, event)| {
        json!({"fact": fact.seq.to_string(), "received": when(fact.received_at_us), "event": event})
    });
    value["differences"] = match &found.differences {
        Some(all) => {
            all.iter().map(|d| json!({"path": d.path, "parked": d.parked, "stands": d.stands})).collect()
        }
        None => Value::Null,
    };
    value["decision"] = found.decision.as_ref().map_or(Value::Null, |decision| {
        json!({"decision": decision.decision, "reason": decision.reason, "principal": decision.principal,
               "decided": when(decision.decided_at_us)})
    });
    value["retries"] = found.retries.iter().map(ToString::to_string).collect();
    value["remedies"] = json!(found.remedies);
    value
}

fn in_words(found: &Explanation) -> Result<Vec<String>> {
    let row = &found.row;
    let mut lines = vec![
        format!("number {}: {}", row.seq, row.reason),
        format!("  {}", row.detail),
        format!("  about {}, from {}, received {}", row.subject, row.origin, when(row.received_at_us)),
    ];
    lines.extend(row.retry_of.map(|number| format!("  a vain retry of number {number}")));
    lines.push(String::new());
    match &found.event {
        Some(event) => {
            lines.push("It says:".to_owned());
            lines.extend(indented(&serde_json::to_string_pretty(event)?));
        }
        None => {
            lines.push(format!("It is no JSON; its {} bytes begin:", row.body.len()));
            lines.extend(indented(&raw(found)));
        }
    }
    if let Some((fact, event)) = &found.stands {
        lines.push(String::new());
        lines.push(format!(
            "Under its identity stands fact {}, accepted {}:",
            fact.seq,
            when(fact.received_at_us)
        ));
        match found.differences.as_deref() {
            Some([]) => lines.push("  the same".to_owned()),
            Some(differences) => lines.extend(differences.iter().flat_map(difference)),
            None => lines.extend(indented(&serde_json::to_string_pretty(event)?)),
        }
    }
    lines.push(String::new());
    if let Some(decision) = &found.decision {
        let at = when(decision.decided_at_us);
        lines.push(format!("{} by {} at {at}: {}", decision.decision, decision.principal, decision.reason));
    }
    let numbers: Vec<String> = found.retries.iter().map(ToString::to_string).collect();
    if !numbers.is_empty() {
        lines.push(format!("What was still wrong is parked as number {}.", numbers.join(", ")));
    }
    lines.extend(found.remedies.iter().map(|remedy| format!("- {remedy}")));
    Ok(lines)
}

fn difference(found: &Difference) -> [String; 3] {
    let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    [
        format!("  {}", found.path),
        format!("    stands  {}", text(&found.stands)),
        format!("    parked  {}", text(&found.parked)),
    ]
}

fn indented(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("  {line}")).collect()
}

/// The beginning of the bytes as text; what is no text shows as such, and nothing moves the terminal.
fn raw(found: &Explanation) -> String {
    let body = &found.row.body;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

fn when(at_us: i64) -> String {
    Instant::from_micros(at_us).to_string()
}
