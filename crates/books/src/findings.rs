//! All findings at a horizon: those of attribution, of parked events, of telemetry, of what was measured, of clocks, and of
//! tenants nobody applied.

mod gaps;
mod told;

pub use told::{Owners, Told};

use crate::Books;
use crate::error::BooksError;
use crate::reconcile::reconcile;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::{Finding, Findings, Kind};
use gpuledger_domain::residue;
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::parked::{self, Choice, ParkedRow};
use gpuledger_storage::skew::{self, Ahead};

/// Findings as they hold at `as_of`, but for prices, which are billing's.
///
/// # Errors
/// The database.
pub async fn findings(
    connection: &mut PgConnection,
    books: &Books,
    ledger: &Attribution,
    as_of: Instant,
) -> Result<Findings, BooksError> {
    let mut findings = Findings::default();
    ledger.findings.iter().cloned().for_each(|finding| findings.add(finding));
    for row in parked::open(connection, &Choice::default()).await? {
        findings.extend(of_parked(&row));
    }
    findings.extend(gaps::of_telemetry(connection, as_of).await?);
    findings.extend(skewed(connection, as_of).await?);
    reconcile(connection, ledger, as_of, &mut findings).await?;
    unknown_tenants(books, ledger, &mut findings);
    of_residue(books, as_of, &mut findings);
    Ok(findings)
}

/// What the memory of each GPU went through, against the rules of its set.
fn of_residue(books: &Books, as_of: Instant, findings: &mut Findings) {
    for history in books.terms.residue(&books.facts, as_of).values() {
        findings.extend(residue::findings(history, &books.terms.residue_rules(history), as_of));
    }
}

fn of_parked(row: &ParkedRow) -> Option<Finding> {
    let kind = match row.reason.as_str() {
        "conflict" => Kind::Conflict,
        "future" => Kind::Future,
        "not_entitled" => Kind::NotEntitled,
        "late_refused" => Kind::LateRefused,
        "bad_value" => Kind::BadValue,
        _ => return None,
    };
    let since = Instant::from_micros(row.at_us.unwrap_or(row.received_at_us));
    let detail = format!("parked as number {}: {}", row.seq, row.detail);
    Some(Finding { kind, subject: row.subject.clone(), since, until: None, detail })
}

/// Nothing is received before it happened, so a fact that is dated later shows a clock that is ahead.
async fn skewed(connection: &mut PgConnection, as_of: Instant) -> Result<Vec<Finding>, BooksError> {
    Ok(skew::ahead(connection, as_of.as_micros()).await?.iter().map(of_ahead).collect())
}

fn of_ahead(ahead: &Ahead) -> Finding {
    let since = Instant::from_micros(ahead.since_us);
    let node = ahead.source.strip_prefix("/nodes/").and_then(|rest| rest.split('/').next());
    let subject = node.unwrap_or(&ahead.source).to_owned();
    let detail =
        format!("facts of {} are dated up to {} us after they were received", ahead.source, ahead.most_us);
    // Its clock may have been put back: the next fact is then dated earlier.
    let until = ahead.until_us.map(|until| Instant::from_micros(until).max(since));
    Finding { kind: Kind::ClockSkew, subject, since, until, detail }
}

/// A tenant nobody applied is metered all the same, and named: owners of what is held, and of what is granted and holds nothing yet.
fn unknown_tenants(books: &Books, ledger: &Attribution, findings: &mut Findings) {
    let held = ledger.spans.iter().map(|span| (&span.tenant, span.window.start()));
    let granted = ledger.allocations.iter().map(|view| (&view.tenant, view.start));
    for (tenant, since) in held.chain(granted) {
        if !books.objects.tenants.contains_key(tenant.as_str()) {
            findings.add(Finding {
                kind: Kind::UnknownTenant,
                subject: tenant.to_string(),
                since,
                until: None,
                detail: format!(
                    "tenant {tenant} is metered, but no `kind: Tenant` has that id: it gets no invoice"
                ),
            });
        }
    }
}
