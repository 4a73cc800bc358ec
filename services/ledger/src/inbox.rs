//! The inbox: events that came by HTTP, taken in the transaction of their effects.

use crate::batch::{Tally, apply};
use crate::error::LedgerError;
use crate::horizon;
use crate::incoming::Incoming;
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, inbox, retry};
use gpuledger_wire::decode_structured;

/// Events taken in one transaction.
const TAKEN_AT_ONCE: i64 = 1_000;

/// Takes what waits, at most one batch, and returns what became of it; zero of everything: the inbox is empty.
///
/// # Errors
/// The database.
pub async fn drain(db: &Db, now: Instant) -> Result<Option<Tally>, LedgerError> {
    retry::retry(async || {
        let mut tx = db.begin().await?;
        let rows = inbox::take(&mut tx, TAKEN_AT_ONCE).await?;
        if rows.is_empty() {
            tx.rollback().await?;
            return Ok(None);
        }
        let incoming: Vec<Incoming> = rows
            .into_iter()
            .map(|row| Incoming {
                event: decode_structured(&row.body),
                origin: format!("http:{}", row.principal),
                not_entitled: row.refusal,
                retry_of: None,
                raw: row.body,
            })
            .collect();
        let context = horizon::context(&mut tx).await?;
        let applied = apply(&mut tx, &incoming, now, &context).await?;
        tx.commit().await?;
        Ok(Some(applied.tally))
    })
    .await
}
