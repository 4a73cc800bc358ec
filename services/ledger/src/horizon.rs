//! The horizon: how far the ledger has come. Moving it makes facts act, ends holds of lost nodes, and finishes hours.

use crate::batch::{BatchContext, settle};
use crate::error::LedgerError;
use crate::{RULE_SET, decide};
use gpuledger_books::scope::{Scope, gather};
use gpuledger_books::{Terms, facts as stored_facts};
use gpuledger_domain::fact::FactBody;
use gpuledger_domain::time::Instant;
use gpuledger_storage::locks::{all_keys, hold};
use gpuledger_storage::{Db, Tx, closes, state, touched};

/// Moves the horizon to `to` (never back) and settles the whole ledger there, in one transaction.
///
/// # Errors
/// The database.
pub async fn advance(db: &Db, to: Instant) -> Result<Instant, LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    hold(&mut tx, &all_keys()).await?;
    touched::take(&mut tx).await?;
    let horizon = Instant::from_micros(state::advance_horizon(&mut tx, to.as_micros(), RULE_SET).await?);
    let context = context(&mut tx).await?;
    let scope = whole(&mut tx).await?;
    settle(&mut tx, &scope, &context, horizon).await?;
    tx.commit().await?;
    Ok(horizon)
}

/// Settles the nodes whose telemetry came since (their silences may have changed), in one transaction with taking their marks.
///
/// # Errors
/// The database.
pub async fn settle_touched(db: &Db) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    let marked = touched::any(&mut tx).await?;
    closes::hold_open(&mut tx).await?;
    if !marked {
        return Ok(tx.rollback().await?);
    }
    // Locks come before marks, as in a batch: the other way round a batch that holds a lock and adds a mark would wait for this one in a circle.
    // What the nodes lead to is known only once it is read, so every lock is taken.
    hold(&mut tx, &all_keys()).await?;
    // Read behind the locks: another process may just have moved it, and posting at an older one would go back.
    let horizon = state::load(&mut tx).await?.horizon_us.map(Instant::from_micros);
    let Some(horizon) = horizon else { return Ok(tx.rollback().await?) };
    let nodes = touched::take(&mut tx).await?;
    let context = context(&mut tx).await?;
    let seeds = nodes.iter().map(|node| format!("node:{node}")).collect();
    let scope = gather(&mut tx, &seeds).await?;
    settle(&mut tx, &scope, &context, horizon).await?;
    Ok(tx.commit().await?)
}

/// The server clock as the database has seen it: it never goes back.
///
/// # Errors
/// The database, or a clock that was put back.
pub async fn accept_clock(db: &Db, now: Instant) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    let seen = Instant::from_micros(state::advance_clock(&mut tx, now.as_micros()).await?);
    tx.commit().await?;
    if seen > now { Err(LedgerError::ClockWentBack { now, seen }) } else { Ok(()) }
}

/// What every batch needs to know besides its events, as it stands now.
///
/// # Errors
/// The database.
pub async fn context(tx: &mut Tx) -> Result<BatchContext, LedgerError> {
    let objects = gpuledger_books::objects::load(tx).await?;
    let closed = gpuledger_books::closed_periods(tx, &objects).await?;
    let closed = closed.into_iter().map(|(window, closed_at)| decide::Closed { window, closed_at }).collect();
    Ok(BatchContext { books: Terms { skus: objects.sku_book(), ..Terms::default() }, closed })
}

/// The whole ledger as one scope.
async fn whole(tx: &mut Tx) -> Result<Scope, LedgerError> {
    let facts = stored_facts::load_all(tx).await?;
    let mut scope = Scope { facts, ..Scope::default() };
    for fact in &scope.facts {
        scope.gpus.extend(fact.body.gpus().into_iter().cloned());
        if let FactBody::Granted(grant) = &fact.body {
            scope.allocations.insert(grant.allocation.to_string());
        }
    }
    Ok(scope)
}
