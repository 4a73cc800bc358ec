//! Pools by measured time: what was packed since is attributed and posted anew.
//!
//! Packing an hour changes no fact, so nothing else leads here. It marks its GPUs, in its own transaction; who settles them takes the marks.

use crate::error::LedgerError;
use crate::horizon::{context, settled};
use crate::models::{Mismatch, Spans};
use crate::post;
use crate::settle::{GPUS_AT_ONCE, with_measured};
use gpuledger_books::Terms;
use gpuledger_books::scope::{floor_before, standing};
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::time::Instant;
use gpuledger_storage::locks::{all_keys, hold};
use gpuledger_storage::{Db, Tx, closes, measured_marks, retry};
use std::collections::BTreeMap;

/// Settles all marked GPUs.
///
/// # Errors
/// The database.
pub(crate) async fn settle(db: &Db) -> Result<(), LedgerError> {
    // Who packs marks in the order of its hours, who settles in that of GPUs: one of them may have to begin again.
    while retry::retry(async || settle_some(db).await).await? {}
    Ok(())
}

/// Settles some of the marked GPUs, in one transaction with taking their marks; false: there are none.
async fn settle_some(db: &Db) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    if !measured_marks::any(&mut tx).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    closes::hold_open(&mut tx).await?;
    // Locks come before marks, as everywhere.
    hold(&mut tx, &all_keys()).await?;
    let Some(horizon) = settled(&mut tx).await? else {
        // The first horizon derives everything, these too.
        tx.rollback().await?;
        return Ok(false);
    };
    let marks = measured_marks::take(&mut tx, GPUS_AT_ONCE).await?;
    let context = context(&mut tx).await?;
    // What lies beyond the horizon is painted when it gets there.
    let floor = |from_us: i64| floor_before(Instant::from_micros(from_us).min(horizon));
    let floors = marks.iter().map(|(gpu, from_us)| (GpuId::new(gpu), floor(*from_us))).collect();
    settle_from(&mut tx, &context.books, floors, horizon).await?;
    tx.commit().await?;
    Ok(true)
}

async fn settle_from(
    tx: &mut Tx,
    terms: &Terms,
    mut floors: BTreeMap<GpuId, Instant>,
    horizon: Instant,
) -> Result<(), LedgerError> {
    let facts = standing(tx, terms, &floors, horizon).await?;
    let divided = terms.gpus_measured(facts.iter().map(AsRef::as_ref));
    floors.retain(|gpu, _| divided.contains(gpu));
    while !floors.is_empty() {
        let facts = standing(tx, terms, &floors, horizon).await?;
        let measured = with_measured(tx, terms, &facts, &floors).await?;
        let ledger = measured.attribute_from(facts.iter().map(AsRef::as_ref), horizon, &floors);
        match Spans::compare(tx, &ledger, &floors, horizon).await? {
            Ok(spans) => {
                post::post(tx, &ledger, &floors, terms.settings, horizon).await?;
                return spans.write(tx).await;
            }
            Err(Mismatch { lower }) => {
                for (gpu, from) in lower {
                    floors.entry(gpu).and_modify(|floor| *floor = floor_before(from).min(*floor));
                }
            }
        }
    }
    Ok(())
}
