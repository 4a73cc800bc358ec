//! What billing leaves in the audit log: closes, documents and what became of them (L-1), in the transaction of their effects (I-3).

use crate::document::Document;
use crate::error::BillingError;
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::closes::PeriodClose;
use serde_json::{Value, json};

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Drafted,
    Issued,
    Discarded,
}

impl Step {
    const fn kind(self) -> &'static str {
        match self {
            Self::Drafted => "document.drafted",
            Self::Issued => "document.issued",
            Self::Discarded => "document.discarded",
        }
    }
}

/// Records a document as it stands after `step`.
pub(crate) async fn document(
    tx: &mut PgConnection,
    step: Step,
    document: &Document,
    at: Instant,
) -> Result<(), BillingError> {
    let unwritable = |source| BillingError::Document { id: document.id.clone(), source };
    let body = serde_json::to_value(document).map_err(unwritable)?;
    record(tx, step.kind(), &body, at).await
}

/// Records a close.
pub(crate) async fn close(tx: &mut PgConnection, close: &PeriodClose) -> Result<(), BillingError> {
    let body = json!({
        "period": close.period,
        "tenant": close.tenant,
        "as_of": Instant::from_micros(close.as_of_us).to_string(),
        "facts": { "count": close.facts_count.to_string(), "digest": crate::draft::hex(&close.facts_digest) },
        "rule_set": close.rule_set,
    });
    record(tx, "period.closed", &body, Instant::from_micros(close.closed_at_us)).await
}

async fn record(tx: &mut PgConnection, kind: &str, body: &Value, at: Instant) -> Result<(), BillingError> {
    let record = PendingRecord {
        fact_seq: None,
        kind: kind.to_owned(),
        body: gpuledger_wire::canonical_json(body),
        recorded_at_us: at.as_micros(),
    };
    append(tx, &[record]).await?;
    Ok(())
}
