//! Everything derived anew: the first horizon, names of products or pools that were applied, and read models of another form.

use crate::batch::BatchContext;
use crate::error::LedgerError;
use crate::settle::{DERIVED, with_measured};
use crate::{models, post, residue};
use gpuledger_books::facts;
use gpuledger_books::scope::reach_of_all;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Tx, blocks, measured_marks, reach, spans, state, touched, unsettled};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Replaces all read models, and posts the journals that differ from those that stand. Under all locks.
pub(crate) async fn derive(tx: &mut Tx, context: &BatchContext, horizon: Instant) -> Result<(), LedgerError> {
    touched::take(tx, horizon.as_micros()).await?;
    unsettled::clear(tx).await?;
    // Hours that are being packed by a process that saw no pool by measured time mark nothing: they are read here.
    blocks::lock_packing(tx).await?;
    measured_marks::take(tx, i64::MAX).await?;
    let facts: Vec<Arc<Fact>> = facts::load_all(tx).await?.into_iter().map(Arc::new).collect();
    let floors = everything(&facts);
    let terms = with_measured(tx, &context.books, &facts, &floors).await?;
    let ledger = terms.attribute_from(facts.iter().map(AsRef::as_ref), horizon, &floors);
    post::post(tx, &ledger, &floors, terms.settings, horizon).await?;
    residue::settle_all(tx, &terms, &facts, horizon).await?;
    spans::clear(tx).await?;
    models::write_all(tx, &ledger, horizon).await?;
    reach::clear(tx).await?;
    reach::replace(tx, &[], &reach_of_all(&facts, horizon)).await?;
    Ok(state::set_derived(tx, DERIVED).await?)
}

fn everything(facts: &[Arc<Fact>]) -> BTreeMap<GpuId, Instant> {
    facts.iter().flat_map(|fact| fact.body.gpus()).map(|gpu| (gpu.clone(), Instant::MIN)).collect()
}
