//! Facts of a backlog wait to be settled. Settled with each batch, a GPU would be looked at as often as batches lie before it, each time from the
//! earliest fact on that came; so a batch with more behind it only accepts its facts and marks them, and each node is settled once (ADR 56).

use crate::error::LedgerError;
use crate::horizon::{context, settled};
use crate::settle::Settlement;
use gpuledger_books::known::accepted_before;
use gpuledger_books::scope::News;
use gpuledger_domain::fact::{Fact, FactBody, Placed, PlacedOf};
use gpuledger_domain::ids::{AllocationId, NodeId};
use gpuledger_storage::locks::{all_keys, hold};
use gpuledger_storage::unsettled::{self, Mark, Portion};
use gpuledger_storage::{Db, Tx, closes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is settled in one transaction: its memory is bounded, and so is the time that locks are held.
pub const AT_ONCE: Portion = Portion { nodes: 32, facts: 10_000 };

/// So many facts may wait: whoever settles knows all of them.
pub(crate) const MOST_WAITING: u64 = 400_000;

/// Marks facts that act. Returns how many.
pub(crate) async fn mark(tx: &mut Tx, facts: &BTreeMap<i64, Arc<Fact>>) -> Result<u64, LedgerError> {
    let marks: Vec<Mark> = facts.iter().map(|(seq, fact)| mark_of(*seq, &fact.body)).collect();
    unsettled::mark(tx, &marks).await?;
    Ok(u64::try_from(marks.len()).unwrap_or(u64::MAX))
}

fn mark_of(fact_seq: i64, body: &FactBody) -> Mark {
    Mark {
        fact_seq,
        allocation: allocation(body).map(ToString::to_string),
        gpu: body.gpus().first().map(ToString::to_string),
        node: node(body).map(ToString::to_string),
    }
}

fn allocation(body: &FactBody) -> Option<&AllocationId> {
    match body {
        FactBody::Granted(grant) => Some(&grant.allocation),
        FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), .. }) => Some(allocation),
        FactBody::AllocationState { allocation, .. }
        | FactBody::Transferred { allocation, .. }
        | FactBody::Released { allocation, .. } => Some(allocation),
        _ => None,
    }
}

fn node(body: &FactBody) -> Option<&NodeId> {
    match body {
        FactBody::Inventory(inventory) => Some(&inventory.node),
        FactBody::NodeDecommissioned(node) => Some(node),
        _ => None,
    }
}

/// Settles some of what waits, in one transaction; false: nothing waited.
///
/// # Errors
/// The database.
pub async fn settle_some(db: &Db, portion: Portion) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    if !unsettled::any(&mut tx).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    // Locks come before marks, as in a batch.
    hold(&mut tx, &all_keys()).await?;
    let Some(horizon) = settled(&mut tx).await? else {
        // The first horizon derives everything, these too.
        tx.rollback().await?;
        return Ok(false);
    };
    let taken = unsettled::take(&mut tx, portion).await?;
    let facts = accepted_before(&mut tx, taken).await?;
    let context = context(&mut tx).await?;
    let settlement = Settlement::with_life(&mut tx, &context.books, News::of_batch(facts, horizon)).await?;
    settlement.write(&mut tx, &context, horizon).await?;
    tx.commit().await?;
    Ok(true)
}

#[cfg(test)]
mod tests;
