//! Pending records of the audit log, written in the transaction of what they record (L-4).

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A record the sequencer will compose a leaf from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRecord {
    /// The fact it records, where it records one.
    pub fact_seq: Option<i64>,
    /// Event type, or `object`, `parked_decision`, `period_close`, `document`, …
    pub kind: String,
    /// Canonical bytes.
    pub body: Vec<u8>,
    /// When it was recorded.
    pub recorded_at_us: i64,
}

/// Appends records in their order. Facts write theirs in [`crate::facts::insert_facts`].
///
/// # Errors
/// Driver errors.
pub async fn append(tx: &mut PgConnection, records: &[PendingRecord]) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO audit_pending (fact_seq, kind, body, recorded_at_us)
         SELECT * FROM UNNEST($1::INT8[], $2::TEXT[], $3::BYTEA[], $4::INT8[])",
    )
    .bind(records.iter().map(|r| r.fact_seq).collect::<Vec<_>>())
    .bind(records.iter().map(|r| r.kind.as_str()).collect::<Vec<_>>())
    .bind(records.iter().map(|r| r.body.as_slice()).collect::<Vec<_>>())
    .bind(records.iter().map(|r| r.recorded_at_us).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("writing audit records")?;
    Ok(())
}
