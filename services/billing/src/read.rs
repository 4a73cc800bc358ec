//! Documents as they stand, and what is behind their lines.

use crate::document::{DetailView, Document, LineView};
use crate::error::BillingError;
use crate::why::{FactRef, Why, around, why};
use gpuledger_domain::time::Instant;
use gpuledger_storage::documents::{self, DocumentFilter, DocumentRow};
use gpuledger_storage::{Db, PgConnection, facts, sold};
use std::collections::BTreeSet;

/// Which document is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// The one with this id or number.
    Id(&'a str),
    /// The one of a tenant's period; of several attempts the last that was not discarded.
    Period {
        /// Whose.
        tenant: &'a str,
        /// `2026-10`.
        period: &'a str,
    },
}

/// A stored document with its present status, number and date.
///
/// # Errors
/// The stored body is not of the form this version writes.
pub(crate) fn document_of(row: &DocumentRow) -> Result<Document, BillingError> {
    let unreadable = |source| BillingError::Document { id: row.id.clone(), source };
    let mut document: Document = serde_json::from_str(&row.body).map_err(unreadable)?;
    document.status.clone_from(&row.status);
    document.number.clone_from(&row.number);
    document.issued_at = row.issued_at_us.map(|us| Instant::from_micros(us).to_string());
    Ok(document)
}

/// Documents of a tenant, a period, or all, but for discarded drafts; by period and tenant.
///
/// # Errors
/// The database, or a document that cannot be read.
pub async fn list(
    db: &Db,
    tenant: Option<&str>,
    period: Option<&str>,
) -> Result<Vec<Document>, BillingError> {
    let mut tx = db.snapshot().await?;
    let filter = DocumentFilter { tenant, period, status: None };
    let rows = documents::list(&mut tx, &filter).await?;
    rows.iter().filter(|row| row.status != "discarded").map(document_of).collect()
}

/// The document that is meant.
///
/// # Errors
/// [`BillingError::NotFound`] where there is none; the database.
pub async fn show(db: &Db, which: Which<'_>) -> Result<Document, BillingError> {
    let mut tx = db.snapshot().await?;
    document_of(&find(&mut tx, which).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    which: Which<'_>,
) -> Result<DocumentRow, BillingError> {
    match which {
        Which::Id(id) => documents::find(connection, id)
            .await?
            .ok_or_else(|| BillingError::NotFound(format!("there is no document {id:?}"))),
        Which::Period { tenant, period } => {
            let filter = DocumentFilter { tenant: Some(tenant), period: Some(period), status: None };
            let rows = documents::list(connection, &filter).await?;
            rows.into_iter().rfind(|row| row.status != "discarded").ok_or_else(|| {
                BillingError::NotFound(format!("tenant {tenant} has no document of period {period}"))
            })
        }
    }
}

/// What a line is made of, down to its facts.
///
/// # Errors
/// [`BillingError::NotFound`] where there is no such line; the database; a document or fact that cannot be read.
pub async fn explain(db: &Db, line: &str) -> Result<Why, BillingError> {
    let mut tx = db.snapshot().await?;
    let missing = || {
        BillingError::NotFound(format!("there is no line {line:?}; `gpuledger invoice show` lists their ids"))
    };
    let (id, _) = line.rsplit_once('.').ok_or_else(missing)?;
    let row = documents::find(&mut tx, id).await?.ok_or_else(missing)?;
    let document = document_of(&row)?;
    let found = document.lines.iter().find(|l| l.id == line).ok_or_else(missing)?;
    let facts = fact_refs(&mut tx, found).await?;
    why(&document, found, facts)
}

/// The facts about a line's allocations, and those that reported or recorded it.
async fn fact_refs(connection: &mut PgConnection, line: &LineView) -> Result<Vec<FactRef>, BillingError> {
    let allocations = line.details.iter().filter_map(|part| part.allocation.as_ref());
    let subjects: BTreeSet<String> = allocations.map(|allocation| format!("alloc:{allocation}")).collect();
    let subjects: Vec<String> = subjects.into_iter().collect();
    let mut stored = facts::load_by_subjects(connection, &subjects).await?;
    let around = around(connection, line, &stored).await?;
    stored.extend(around);
    let said: BTreeSet<(&str, &str)> = line.details.iter().filter_map(said_by).collect();
    if !said.is_empty() {
        let sold = sold::load(connection).await?;
        stored
            .extend(sold.into_iter().filter(|fact| said.contains(&(fact.source.as_str(), fact.id.as_str()))));
    }
    let names: Vec<(String, String)> = stored.iter().map(|f| (f.source.clone(), f.id.clone())).collect();
    let identities = facts::identities(connection, &names).await?;
    let mut refs = Vec::new();
    for fact in &stored {
        let event = gpuledger_books::facts::event_of(fact)?;
        let digest = identities.get(&(fact.source.clone(), fact.id.clone()));
        refs.push(FactRef {
            time: event.time.to_string(),
            kind: event.type_name().to_owned(),
            source: fact.source.clone(),
            id: fact.id.clone(),
            digest: digest.map(|(digest, _)| crate::draft::hex(digest)).unwrap_or_default(),
        });
    }
    refs.sort();
    Ok(refs)
}

fn said_by(part: &DetailView) -> Option<(&str, &str)> {
    Some((part.source.as_deref()?, part.id.as_deref()?))
}
