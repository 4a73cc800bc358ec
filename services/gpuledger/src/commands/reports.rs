//! Reports: usage, balance, verification, findings.

use super::writer;
use crate::cli::{Format, UsageArgs};
use crate::findings::found;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use crate::table;
use anyhow::Result;
use chrono_tz::Tz;
use gpuledger_books::usage::measure;
use gpuledger_books::usage_json::{QUANTITIES, usage_json};
use gpuledger_books::{Books, objects, standing};
use gpuledger_domain::finding::Finding;
use gpuledger_domain::ids::{GpuId, TenantId};
use gpuledger_domain::report::{GroupKey, Report, ReportContext, UsageRow, Weight};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_domain::usage::{AllocationView, UsageSpan};
use gpuledger_ledger::balance::{BalanceRow, balance as fleet_balance};
use gpuledger_ledger::horizon::settled;
use gpuledger_ledger::verify::{verify as verify_ledger, verify_part};
use gpuledger_storage::spans::SpanFilter;
use gpuledger_storage::{Tx, state};
use gpuledger_telemetry::terminal::{say, say_err};
use gpuledger_trail::sealed::{open_labels, terms};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Loads the books and the horizon to look from.
async fn books_at(settings: &Settings, as_of: Option<Instant>) -> Result<(Books, Instant, Tx)> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let books = Books::load(&mut tx).await?;
    // A ledger nothing was replayed into has no horizon: every report is empty there.
    let horizon = as_of.or(books.horizon).unwrap_or(Instant::from_micros(0));
    Ok((books, horizon, tx))
}

fn window(from: Instant, to: Instant) -> Result<Window> {
    Ok(Window::new(from, to).ok_or_else(|| Usage(format!("--from {from} is not before --to {to}")))?)
}

/// Reports usage.
pub(crate) async fn usage(settings: &Settings, args: UsageArgs) -> Result<Outcome> {
    let window = window(args.from, args.to)?;
    let keys = group_keys(&args.group_by)?;
    let weight = Weight::parse(&args.weight)
        .ok_or_else(|| Usage(format!("--weight {}: want memory, compute, dominant or sm", args.weight)))?;
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let horizon = state::load(&mut tx).await?.horizon_us.map(Instant::from_micros);
    let as_of = args.as_of.or(horizon).unwrap_or(Instant::from_micros(0));
    let labelled = keys.iter().any(|key| matches!(key, GroupKey::Label(_)));
    let settled = settled(&mut tx).await? == Some(as_of);
    let (spans, mut views, zones) = if settled {
        at_the_horizon(&mut tx, &args, labelled).await?
    } else {
        from_facts(&mut tx, &args, as_of).await?
    };
    if labelled {
        // Before rows are made by them: values that are sealed differently may say the same.
        let terms = terms(&tx);
        open_labels(&mut tx, &terms.seal, views.iter_mut().map(|view| &mut view.labels)).await?;
    }
    let allocations = views.iter().map(|view| (view.allocation.as_str(), view)).collect();
    let context = ReportContext { zones, allocations, weight };
    let mut report = Report::new(spans, window, &keys, &context);
    measure(&mut tx, &mut report).await?;
    let rows = report.into_rows();
    print_usage(&args, as_of, &keys, &rows)?;
    Ok(Outcome::Done)
}

type Found = (Vec<UsageSpan>, Vec<AllocationView>, BTreeMap<TenantId, Tz>);

/// At the ledger's own horizon the read model has the answer.
async fn at_the_horizon(tx: &mut Tx, args: &UsageArgs, labelled: bool) -> Result<Found> {
    let filter = SpanFilter {
        from_us: args.from.as_micros(),
        to_us: args.to.as_micros(),
        tenant: args.tenant.as_deref(),
        project: args.project.as_deref(),
        allocation: None,
    };
    let spans = standing::spans(tx, &filter).await?;
    let views = if labelled { standing::labelled(tx, &spans).await? } else { Vec::new() };
    Ok((spans, views, objects::load(tx).await?.zones()))
}

/// At any other horizon the facts have it.
async fn from_facts(tx: &mut Tx, args: &UsageArgs, as_of: Instant) -> Result<Found> {
    let books = Books::load(tx).await?;
    let ledger = books.attribute(as_of);
    let is = |wanted: Option<&str>, own: Option<&str>| wanted.is_none() || wanted == own;
    let wanted = |span: &UsageSpan| {
        is(args.tenant.as_deref(), Some(span.tenant.as_str()))
            && is(args.project.as_deref(), span.project.as_ref().map(|project| project.as_str()))
    };
    let spans = ledger.spans.into_iter().filter(wanted).collect();
    Ok((spans, ledger.allocations, books.objects.zones()))
}

fn group_keys(words: &[String]) -> Result<Vec<GroupKey>> {
    let read = |word: &String| {
        let wrong = || {
            Usage(format!(
                "--group-by {word}: want tenant, project, sku, class, allocation, node, day, hour, month or label.NAME"
            ))
        };
        GroupKey::parse(word).ok_or_else(wrong)
    };
    Ok(words.iter().map(read).collect::<Result<Vec<_>, _>>()?)
}

fn print_usage(args: &UsageArgs, as_of: Instant, keys: &[GroupKey], rows: &[UsageRow]) -> Result<()> {
    let json = usage_json(args.from, args.to, as_of, keys, rows);
    match args.format {
        Format::Json => say(&serde_json::to_string_pretty(&json)?),
        Format::Csv => say(csv_of(&headings(keys), &json["rows"])?.trim_end()),
        Format::Table => {
            let names: Vec<String> = keys.iter().map(GroupKey::name).collect();
            let numbers = ["allocated h", "unit h", "GPU h", "SM-active h"];
            let all: Vec<&str> = names.iter().map(String::as_str).chain(numbers).chain(["quality"]).collect();
            say(&table::render(&all, &numbers, &rows.iter().map(usage_cells).collect::<Vec<_>>()));
        }
    }
    Ok(())
}

fn headings(keys: &[GroupKey]) -> Vec<String> {
    keys.iter().map(GroupKey::name).chain(QUANTITIES.map(str::to_owned)).collect()
}

fn usage_cells(row: &UsageRow) -> Vec<String> {
    let hours = |us: Option<Share>| us.map_or_else(|| "–".to_owned(), hours_text);
    let exact = |us: i128| Some(Share::from_integer(us));
    let keys = row.keys.iter().map(|key| key.clone().unwrap_or_else(|| "–".to_owned()));
    let active = row.measured.sm_active_us.and_then(exact);
    let quantities = [exact(row.allocated_us), exact(row.billed_us), row.gpu_us, active];
    keys.chain(quantities.map(hours)).chain([row.quality.clone()]).collect()
}

/// Hours with three places, for people; JSON and CSV are exact.
pub(crate) fn hours_text(us: Share) -> String {
    let thousandths = (us / Share::from_integer(3_600_000)).round().to_integer();
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// CSV of JSON rows; null is an empty field.
fn csv_of(headings: &[String], rows: &Value) -> Result<String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(headings)?;
    for row in rows.as_array().into_iter().flatten() {
        writer.write_record(headings.iter().map(|name| row[name].as_str().unwrap_or_default()))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Where each GPU's slice-time stands.
pub(crate) async fn balance(
    settings: &Settings,
    from: Instant,
    to: Instant,
    gpu: Option<&str>,
    as_of: Option<Instant>,
    format: Format,
) -> Result<Outcome> {
    let window = window(from, to)?;
    let (books, horizon, mut tx) = books_at(settings, as_of).await?;
    let rows = fleet_balance(&mut tx, &books, horizon, window, gpu).await?;
    let json: Vec<Value> = rows.iter().map(balance_json).collect();
    let headings = ["gpu", "account", "tenant", "compute_slice_us", "memory_slice_us"];
    match format {
        Format::Json => say(&serde_json::to_string_pretty(
            &json!({"from": from.to_string(), "to": to.to_string(), "as_of": horizon.to_string(), "rows": json}),
        )?),
        Format::Csv => say(csv_of(&headings.map(str::to_owned), &Value::Array(json))?.trim_end()),
        Format::Table => {
            let cells: Vec<Vec<String>> = rows.iter().map(balance_cells).collect();
            say(&table::render(
                &["GPU", "account", "tenant", "compute slice h", "memory slice h"],
                &["compute slice h", "memory slice h"],
                &cells,
            ));
        }
    }
    Ok(Outcome::Done)
}

fn balance_json(row: &BalanceRow) -> Value {
    json!({
        "gpu": row.gpu.as_str(),
        "account": row.account,
        "tenant": row.tenant.as_ref().map(ToString::to_string),
        "compute_slice_us": row.compute_slice_us.to_string(),
        "memory_slice_us": row.memory_slice_us.to_string(),
    })
}

fn balance_cells(row: &BalanceRow) -> Vec<String> {
    let tenant = row.tenant.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string);
    let hours = |us: i128| hours_text(Share::from_integer(us));
    vec![
        row.gpu.to_string(),
        row.account.clone(),
        tenant,
        hours(row.compute_slice_us),
        hours(row.memory_slice_us),
    ]
}

/// Derives everything anew by the second, naive method and compares.
pub(crate) async fn verify(settings: &Settings, gpus: &[String], from: Option<Instant>) -> Result<Outcome> {
    let db = writer(settings).await?;
    let verdict = match from {
        Some(from) => {
            let gpus: Vec<GpuId> = gpus.iter().map(|gpu| GpuId::new(gpu)).collect();
            verify_part(&db, &gpus, from).await?
        }
        None => verify_ledger(&db).await?,
    };
    for difference in verdict.differences.iter().take(50) {
        say_err(difference);
    }
    let more = verdict.differences.len().saturating_sub(50);
    if more > 0 {
        say_err(&format!("… and {more} more"));
    }
    let counts = format!(
        "{} GPUs, {} journals, {} sums, {} allocations of unplaced units",
        verdict.gpus, verdict.journals, verdict.sums, verdict.unplaced
    );
    if verdict.waiting > 0 {
        say_err(&format!(
            "{} accepted facts of a backlog wait to be settled: journals and read models are compared once `serve` has settled them",
            verdict.waiting
        ));
        return Ok(Outcome::No);
    }
    if verdict.holds() {
        say(&format!("the ledger holds: {counts}, derived anew by the naive painter, are equal"));
        return Ok(Outcome::Done);
    }
    say_err(&format!("the ledger does not hold: {} differences in {counts}", verdict.differences.len()));
    Ok(Outcome::No)
}

/// What a person should look at.
pub(crate) async fn findings(settings: &Settings, as_of: Option<Instant>, format: Format) -> Result<Outcome> {
    let (books, horizon, mut tx) = books_at(settings, as_of).await?;
    let findings = found(&mut tx, &books, horizon).await?.findings;
    let json: Vec<Value> = findings.iter().map(finding_json).collect();
    let headings = ["kind", "severity", "subject", "since", "until", "detail"];
    match format {
        Format::Json => {
            say(&serde_json::to_string_pretty(&json!({"as_of": horizon.to_string(), "findings": json}))?)
        }
        Format::Csv => say(csv_of(&headings.map(str::to_owned), &Value::Array(json))?.trim_end()),
        Format::Table => {
            let cells: Vec<Vec<String>> = findings.iter().map(finding_cells).collect();
            say(&table::render(&headings, &[], &cells));
        }
    }
    Ok(Outcome::Done)
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "kind": finding.kind.as_str(),
        "severity": finding.kind.severity().as_str(),
        "subject": finding.subject,
        "since": finding.since.to_string(),
        "until": finding.until.map(|until| until.to_string()),
        "detail": finding.detail,
    })
}

fn finding_cells(finding: &Finding) -> Vec<String> {
    let until = finding.until.map_or_else(|| "–".to_owned(), |until| until.to_string());
    let words = [finding.kind.as_str(), finding.kind.severity().as_str()].map(str::to_owned);
    words
        .into_iter()
        .chain([finding.subject.clone(), finding.since.to_string(), until, finding.detail.clone()])
        .collect()
}
