//! Issuing and discarding drafts (rules V-1, V-2).

use crate::close::Refused;
use crate::document::Document;
use crate::error::BillingError;
use crate::read::{Which, document_of, find};
use crate::trail::{self, Step};
use gpuledger_domain::time::Instant;
use gpuledger_storage::documents::{self, DocumentFilter, DocumentRow};
use gpuledger_storage::{Db, PgConnection, closes};

/// What became of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueReport {
    /// Documents that are issued now, in order of tenants; those issued before among them.
    pub issued: Vec<Document>,
    /// Drafts that stay drafts, with why.
    pub refused: Vec<Refused>,
}

/// Which drafts are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue<'a> {
    /// One.
    One(Which<'a>),
    /// All of a period, or all there are.
    All {
        /// `2026-10`.
        period: Option<&'a str>,
    },
}

/// Gives drafts their numbers, without gaps, in order of tenants, all in one transaction: either every number given is used, or
/// none. A draft with usage that has no price stays a draft and is named (V-11); one issued before stays as it is.
///
/// # Errors
/// [`BillingError::NotFound`] where there is no such document; the database; a document that cannot be read.
pub async fn issue(db: &Db, which: Issue<'_>, now: Instant) -> Result<IssueReport, BillingError> {
    let mut tx = db.begin().await?;
    // One issue or close at a time, so that a second one finds the first one's documents issued.
    closes::hold_closing(&mut tx).await?;
    let mut report = IssueReport::default();
    for row in rows(&mut tx, which).await? {
        let document = document_of(&row)?;
        match row.status.as_str() {
            "draft" => match unissuable(&document) {
                Some(reason) => report.refused.push(Refused { tenant: document.tenant, reason }),
                None => report.issued.push(give_number(&mut tx, &row, document, now).await?),
            },
            "discarded" => {
                let reason = format!("document {} was discarded", document.id);
                report.refused.push(Refused { tenant: document.tenant, reason });
            }
            _ => report.issued.push(document),
        }
    }
    tx.commit().await?;
    Ok(report)
}

async fn rows(tx: &mut PgConnection, which: Issue<'_>) -> Result<Vec<DocumentRow>, BillingError> {
    match which {
        Issue::One(which) => Ok(vec![find(tx, which).await?]),
        Issue::All { period } => {
            let filter = DocumentFilter { tenant: None, period, status: None };
            let mut rows = documents::list(tx, &filter).await?;
            rows.retain(|row| row.status != "discarded");
            if rows.is_empty() {
                return Err(BillingError::NotFound(
                    "there is no document to issue; close a period first".to_owned(),
                ));
            }
            Ok(rows)
        }
    }
}

fn unissuable(document: &Document) -> Option<String> {
    if document.unpriced.is_empty() {
        return None;
    }
    let mut skus: Vec<&str> = document.unpriced.iter().map(|u| u.sku.as_str()).collect();
    skus.sort_unstable();
    skus.dedup();
    Some(format!(
        "document {} has usage without a price ({}); apply a rate card for it, discard the draft and close again",
        document.id,
        skus.join(", ")
    ))
}

async fn give_number(
    tx: &mut PgConnection,
    row: &DocumentRow,
    mut document: Document,
    now: Instant,
) -> Result<Document, BillingError> {
    let number = documents::next_number(tx, &row.seller, &row.series).await?;
    let number = format!("{}-{number:04}", row.series);
    document.number = Some(number.clone());
    document.status = "issued".to_owned();
    document.issued_at = Some(now.to_string());
    document.issued_on = Some(day_of(now, document.seller.time_zone.as_deref()));
    let body = crate::render::json(&document)?;
    if documents::issue(tx, &row.id, &number, &body, now.as_micros()).await? {
        trail::document(tx, Step::Issued, &document, now).await?;
        return Ok(document);
    }
    // It was discarded meanwhile. The transaction is rolled back with its numbers, which leaves no gap.
    Err(BillingError::Changed(row.id.clone()))
}

/// The calendar day of an instant in a zone; UTC where it names none.
fn day_of(at: Instant, zone: Option<&str>) -> String {
    let zone: chrono_tz::Tz = zone.and_then(|name| name.parse().ok()).unwrap_or(chrono_tz::UTC);
    let utc = chrono::DateTime::from_timestamp_micros(at.as_micros()).unwrap_or_default();
    utc.with_timezone(&zone).format("%Y-%m-%d").to_string()
}

/// Discards a draft, which reopens its period for that tenant.
///
/// # Errors
/// [`BillingError::NotFound`] where there is no such document; [`BillingError::NotADraft`]; [`BillingError::BuiltOn`]; the database.
pub async fn discard(db: &Db, which: Which<'_>, now: Instant) -> Result<Document, BillingError> {
    let mut tx = db.begin().await?;
    // No close may build on it meanwhile.
    closes::hold_closing(&mut tx).await?;
    let row = find(&mut tx, which).await?;
    if let Some(later) = built_on(&mut tx, &row).await? {
        return Err(BillingError::BuiltOn { id: row.id, later });
    }
    if !documents::discard(&mut tx, &row.id).await? {
        return Err(BillingError::NotADraft { id: row.id, status: row.status });
    }
    let mut document = document_of(&row)?;
    document.status = "discarded".to_owned();
    trail::document(&mut tx, Step::Discarded, &document, now).await?;
    tx.commit().await?;
    Ok(document)
}

/// A later document of the tenant that corrects this one's period, or takes over what this one carries: without it, it would be wrong.
async fn built_on(tx: &mut PgConnection, row: &DocumentRow) -> Result<Option<String>, BillingError> {
    let filter = DocumentFilter { tenant: Some(&row.tenant), period: None, status: None };
    let carries = crate::text::is_something(&document_of(row)?.carried_out);
    for other in documents::list(tx, &filter).await? {
        if other.status == "discarded" || other.id == row.id {
            continue;
        }
        let document = document_of(&other)?;
        let corrects = document.lines.iter().filter_map(|line| line.corrects.as_ref());
        let names_late = document.unpriced.iter().filter_map(|one| one.period.as_ref());
        let periods = corrects.map(|corrects| &corrects.period).chain(names_late);
        let takes_over = carries && other.period > row.period;
        if takes_over || periods.into_iter().any(|period| *period == row.period) {
            return Ok(Some(other.id));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_seller() {
        let at = Instant::from_micros(1_793_576_700_000_000);
        assert_eq!(at.to_string(), "2026-11-01T23:45:00Z");
        assert_eq!(day_of(at, None), "2026-11-01");
        assert_eq!(day_of(at, Some("Europe/Berlin")), "2026-11-02");
        assert_eq!(day_of(at, Some("Nowhere")), "2026-11-01");
    }

    #[test]
    fn v11_a_draft_with_usage_that_has_no_price_is_not_issued() {
        let mut document = crate::draft::tests::sample();
        assert_eq!(unissuable(&document), None);
        document.unpriced = vec![crate::document::UnpricedView {
            allocation: Some("a-2".to_owned()),
            sku: "b200".to_owned(),
            class: Some("on_demand".to_owned()),
            start: "2026-10-05T00:00:00Z".to_owned(),
            end: "2026-10-05T01:00:00Z".to_owned(),
            quantity: "3600".to_owned(),
            unit: None,
            period: None,
        }];
        assert!(unissuable(&document).is_some_and(|reason| reason.contains("(b200)")));
    }
}
