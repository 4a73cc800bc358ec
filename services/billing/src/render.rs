//! What a document looks like: JSON for machines, a table for the terminal, CSV for spreadsheets, a page for people.

mod csv;
mod html;
mod table;

pub use self::csv::csv;
pub use html::html;
pub use table::{list_table, table};

use crate::document::Document;
use crate::error::BillingError;

/// The document as JSON, indented, with a final newline. The same document gives the same bytes.
///
/// # Errors
/// The document cannot be written, which no document of this crate does.
pub fn json(document: &Document) -> Result<String, BillingError> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|source| BillingError::Document { id: document.id.clone(), source })?;
    text.push('\n');
    Ok(text)
}

/// The heads of documents as JSON: `{"rows": [{id, number, kind, status, tenant, period, total, currency, amount_due}]}`.
pub fn list_json(documents: &[Document]) -> serde_json::Value {
    let row = |d: &Document| {
        serde_json::json!({
            "id": d.id, "number": d.number, "kind": d.kind, "status": d.status, "tenant": d.tenant, "period": d.period,
            "total": d.total, "currency": d.currency, "amount_due": d.amount_due,
        })
    };
    serde_json::json!({ "rows": documents.iter().map(row).collect::<Vec<_>>() })
}
