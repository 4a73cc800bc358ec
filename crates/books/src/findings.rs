//! All findings at a horizon: those of attribution, of parked events, of telemetry, and of tenants nobody applied.

use crate::Books;
use crate::error::BooksError;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::{Finding, Findings, Kind};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::parked::{self, ParkedRow};
use gpuledger_storage::telemetry::gaps;

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
    for row in parked::open(connection).await? {
        findings.extend(of_parked(&row));
    }
    for gap in gaps(connection).await? {
        findings.add(Finding {
            kind: Kind::Gap,
            subject: gap.node.clone(),
            since: as_of,
            until: None,
            detail: format!(
                "node {}: windows {} to {} of stream {} never came",
                gap.node, gap.first, gap.last, gap.stream
            ),
        });
    }
    unknown_tenants(books, ledger, &mut findings);
    Ok(findings)
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
