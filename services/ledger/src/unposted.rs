//! Journals that wait. A backlog is read in the order of time, and every batch of it touches the hours after it: posted with each batch, an hour
//! would be posted as often as batches lie before it. So a batch with more behind it marks its GPUs, and they are posted once (ADR 55).

use crate::error::LedgerError;
use crate::horizon::{context, settled};
use crate::post;
use crate::settle::{Anew, GPUS_AT_ONCE};
use gpuledger_domain::fact::Settings;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::journal::postable_until;
use gpuledger_domain::time::Instant;
use gpuledger_storage::locks::{all_keys, hold};
use gpuledger_storage::{Db, Tx, closes, unposted};
use std::collections::BTreeMap;

/// Marks the GPUs of which an hour that can be posted is touched. Returns how many.
pub(crate) async fn mark(
    tx: &mut Tx,
    floors: &BTreeMap<GpuId, Instant>,
    settings: Settings,
    horizon: Instant,
) -> Result<u64, LedgerError> {
    let until = postable_until(horizon, settings);
    let due = floors.iter().filter(|(_, floor)| **floor < until);
    let marks: BTreeMap<String, i64> = due.map(|(gpu, floor)| (gpu.to_string(), floor.as_micros())).collect();
    unposted::mark(tx, &marks).await?;
    Ok(u64::try_from(marks.len()).unwrap_or(u64::MAX))
}

/// Posts some of what waits, in one transaction; false: nothing waited.
///
/// # Errors
/// The database.
pub async fn post_some(db: &Db) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    if !unposted::any(&mut tx).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    // Locks come before marks, as in a batch.
    hold(&mut tx, &all_keys()).await?;
    let Some(horizon) = settled(&mut tx).await? else {
        tx.rollback().await?;
        return Ok(false);
    };
    let marks = unposted::take(&mut tx, GPUS_AT_ONCE).await?;
    let mut floors =
        marks.iter().map(|(gpu, from_us)| (GpuId::new(gpu), Instant::from_micros(*from_us))).collect();
    let context = context(&mut tx).await?;
    let anew = Anew::from(&mut tx, &context.books, &mut floors, horizon).await?;
    post::post(&mut tx, &anew.ledger, &floors, anew.terms.settings, horizon).await?;
    tx.commit().await?;
    Ok(true)
}

#[cfg(test)]
mod tests;
