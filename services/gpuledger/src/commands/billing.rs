//! Periods and documents.

use super::writer;
use crate::cli::{Format, Invoice, Period as PeriodCommand, Which as WhichArgs};
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_billing::document::Document;
use gpuledger_billing::render::{csv, html, json, list_json, list_table, table};
use gpuledger_billing::{CloseReport, Issue, Which, close_period, discard, explain, issue, list, show};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::Period;
use gpuledger_telemetry::terminal::{say, say_err};

/// Closes a period.
pub(crate) async fn period(settings: &Settings, what: PeriodCommand) -> Result<Outcome> {
    let PeriodCommand::Close { period, tenant, dry_run } = what;
    let period: Period = period.parse().map_err(|error| Usage(format!("--period: {error}")))?;
    let tenant = tenant.as_deref().map(TenantId::new);
    let report = close_period(&writer(settings).await?, period, tenant.as_ref(), now()?, dry_run).await?;
    print_close(&report);
    Ok(if report.is_complete() { Outcome::Done } else { Outcome::No })
}

/// Says what a close did.
pub(crate) fn print_close(report: &CloseReport) {
    for closed in &report.closed {
        let what = match (&closed.document, report.dry_run) {
            (None, _) => "nothing to bill".to_owned(),
            (Some(document), true) => format!("would be {} {}", document.total, document.currency),
            (Some(document), false) => {
                format!("{} {}, {} {}", document.status, document.id, document.total, document.currency)
            }
        };
        let again = if closed.is_new || report.dry_run { "" } else { " (closed before)" };
        say(&format!("{} {}: {what}{again}", report.period, closed.tenant));
    }
    for late in &report.late {
        say_err(&late.to_string());
    }
    for not_billed in &report.not_billed {
        say_err(not_billed);
    }
    if report.late_refused > 0 {
        say_err(&format!(
            "{} facts of closed periods came too late and were refused: gpuledger parked list --kind late_refused",
            report.late_refused
        ));
    }
    for refused in &report.refused {
        say_err(&format!("{} {}: not closed: {}", report.period, refused.tenant, refused.reason));
    }
}

/// Runs a command about documents.
pub(crate) async fn invoice(settings: &Settings, what: Invoice) -> Result<Outcome> {
    let db = writer(settings).await?;
    match what {
        Invoice::List { tenant, period, format } => {
            print_list(&list(&db, tenant.as_deref(), period.as_deref()).await?, format)?;
            Ok(Outcome::Done)
        }
        Invoice::Show { which, format } => {
            let document = show(&db, chosen(&which)?).await?;
            say(match format {
                Format::Json => json(&document)?,
                Format::Csv => csv(&document)?,
                Format::Table => table(&document),
            }
            .trim_end());
            Ok(Outcome::Done)
        }
        Invoice::Export { which, format } => {
            let document = show(&db, chosen(&which)?).await?;
            say(match format.as_str() {
                "json" => json(&document)?,
                "csv" => csv(&document)?,
                _ => html(&document)?,
            }
            .trim_end());
            Ok(Outcome::Done)
        }
        Invoice::Discard { which } => {
            let document = discard(&db, chosen(&which)?, now()?).await?;
            say(&format!("{} is discarded; its period can be closed again", document.id));
            Ok(Outcome::Done)
        }
        Invoice::Issue { which } => issue_documents(&db, &which).await,
    }
}

fn print_list(documents: &[Document], format: Format) -> Result<()> {
    match format {
        Format::Json => say(&serde_json::to_string_pretty(&list_json(documents))?),
        Format::Table | Format::Csv => say(list_table(documents).trim_end()),
    }
    Ok(())
}

async fn issue_documents(db: &gpuledger_storage::Db, which: &WhichArgs) -> Result<Outcome> {
    let wanted = match (&which.id, &which.tenant) {
        (None, None) => Issue::All { period: which.period.as_deref() },
        _ => Issue::One(chosen(which)?),
    };
    let report = issue(db, wanted, now()?).await?;
    for document in &report.issued {
        let number = document.number.as_deref().unwrap_or("?");
        say(&format!(
            "{} {}: issued as {number}, {} {}",
            document.period, document.tenant, document.total, document.currency
        ));
    }
    for refused in &report.refused {
        say_err(&format!("{}: not issued: {}", refused.tenant, refused.reason));
    }
    Ok(if report.refused.is_empty() { Outcome::Done } else { Outcome::No })
}

fn chosen(which: &WhichArgs) -> Result<Which<'_>> {
    match (&which.id, &which.tenant, &which.period) {
        (Some(id), None, None) => Ok(Which::Id(id)),
        (None, Some(tenant), Some(period)) => Ok(Which::Period { tenant, period }),
        _ => Err(Usage("which document? Give its id or number, or --tenant and --period".into()).into()),
    }
}

/// Explains a line.
pub(crate) async fn why(settings: &Settings, line: &str, format: &str) -> Result<Outcome> {
    let why = explain(&writer(settings).await?, line).await?;
    match format {
        "json" => say(&serde_json::to_string_pretty(&why)?),
        _ => say(why.text().trim_end()),
    }
    Ok(Outcome::Done)
}
