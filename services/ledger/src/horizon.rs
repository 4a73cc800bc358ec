//! The horizon: how far the ledger has come. Moving it makes facts act, ends holds of lost nodes, and finishes hours.
//!
//! A horizon that moves changes little: only what facts between the old and the new one are about, what leases end, what telemetry touched, and
//! once an hour the journals of the hour that begins to be posted.

use crate::batch::BatchContext;
use crate::error::LedgerError;
use crate::settle::{DERIVED, GPUS_AT_ONCE, Settlement, with_measured};
use crate::{RULE_SET, anew, post, residue};
use gpuledger_books::closed::closed_periods;
use gpuledger_books::facts::{self, decode};
use gpuledger_books::scope::{News, standing};
use gpuledger_books::{Terms, objects};
use gpuledger_domain::fact::Fact;
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId};
use gpuledger_domain::journal::postable_until;
use gpuledger_domain::pool::{Idle, Policy, Pool};
use gpuledger_domain::time::Instant;
use gpuledger_storage::locks::{all_keys, hold};
use gpuledger_storage::objects::{Changes, changes};
use gpuledger_storage::{Db, Tx, closes, index, reach, state, touched};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Moves the horizon to `to` (never back) and settles there, in one transaction.
///
/// # Errors
/// The database.
pub async fn advance(db: &Db, to: Instant) -> Result<Instant, LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    hold(&mut tx, &all_keys()).await?;
    let before = settled(&mut tx).await?;
    let horizon = Instant::from_micros(state::advance_horizon(&mut tx, to.as_micros(), RULE_SET).await?);
    let context = context(&mut tx).await?;
    match before {
        Some(before) => settle_move(&mut tx, &context, before, horizon).await?,
        None => anew::derive(&mut tx, &context, horizon).await?,
    }
    tx.commit().await?;
    Ok(horizon)
}

/// Derives everything anew at the horizon where it stands: names of products or pools were applied. Nothing where there is no horizon yet.
///
/// # Errors
/// The database.
pub async fn derive_anew(db: &Db) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    hold(&mut tx, &all_keys()).await?;
    if let Some(horizon) = state::load(&mut tx).await?.horizon_us.map(Instant::from_micros) {
        let context = context(&mut tx).await?;
        anew::derive(&mut tx, &context, horizon).await?;
    }
    Ok(tx.commit().await?)
}

/// Judges every grant anew: sets of residue were applied. Nothing where there is no horizon yet.
///
/// # Errors
/// The database.
pub async fn judge_anew(db: &Db) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    closes::hold_open(&mut tx).await?;
    hold(&mut tx, &all_keys()).await?;
    if let Some(horizon) = settled(&mut tx).await? {
        let context = context(&mut tx).await?;
        let facts: Vec<Arc<Fact>> = facts::load_all(&mut tx).await?.into_iter().map(Arc::new).collect();
        residue::settle_all(&mut tx, &context.books, &facts, horizon).await?;
    }
    Ok(tx.commit().await?)
}

/// The horizon that journals and read models stand at; none before the first, and where they are to be derived anew.
///
/// # Errors
/// The database.
pub async fn settled(tx: &mut Tx) -> Result<Option<Instant>, LedgerError> {
    let state = state::load(tx).await?;
    Ok(state.horizon_us.filter(|_| state.derived == DERIVED).map(Instant::from_micros))
}

async fn settle_move(
    tx: &mut Tx,
    context: &BatchContext,
    before: Instant,
    now: Instant,
) -> Result<(), LedgerError> {
    let terms = &context.books;
    let (due, until) = (postable_until(before, terms.settings), postable_until(now, terms.settings));
    let due = Some(due).filter(|due| *due < until);
    let mut news = News {
        facts: begin_to_act(tx, before, now).await?,
        unsettled: BTreeSet::new(),
        heard: heard(touched::take(tx, now.as_micros()).await?),
        gpus: leases(tx, terms, before, now).await?,
        allocations: BTreeSet::new(),
        due,
        before,
        now,
    };
    add_pools(tx, terms, &mut news).await?;
    let settlement = Settlement::of(tx, terms, &news).await?;
    let settled: BTreeSet<GpuId> = settlement.gpus().cloned().collect();
    settlement.write(tx, context, now).await?;
    match due {
        Some(due) => post_due(tx, terms, due, &settled, now).await,
        None => Ok(()),
    }
}

/// Facts from the old horizon to the new one. Those at the old one had no time to act in.
async fn begin_to_act(
    tx: &mut Tx,
    before: Instant,
    now: Instant,
) -> Result<BTreeMap<i64, Arc<Fact>>, LedgerError> {
    let stored = index::within(tx, before.as_micros(), now.as_micros()).await?;
    let facts = decode(&stored)?.into_iter().map(Arc::new);
    Ok(stored.iter().map(|fact| fact.seq).zip(facts).collect())
}

/// GPUs on whose nodes a lease may end between the horizons, from when on.
async fn leases(
    tx: &mut Tx,
    terms: &Terms,
    before: Instant,
    now: Instant,
) -> Result<BTreeMap<GpuId, Instant>, LedgerError> {
    let lease_us = terms.settings.lease_us;
    let silent = reach::silent_holders(tx, now.plus(-lease_us).as_micros(), now.as_micros()).await?;
    Ok(silent.iter().map(|gpu| (GpuId::new(gpu), before.plus(-lease_us))).collect())
}

/// Whatever runs in a pool that divides it by more than share is divided anew up to each horizon.
async fn add_pools(tx: &mut Tx, terms: &Terms, news: &mut News) -> Result<(), LedgerError> {
    let divides = |pool: &Pool| pool.policy != Policy::Entitlement || pool.idle != Idle::Provider;
    let pools: Vec<String> =
        terms.pools.iter().filter(|(_, pool)| divides(pool)).map(|(name, _)| name.clone()).collect();
    for (subject, gpu) in reach::members(tx, &pools, news.before.as_micros()).await? {
        news.allocations.extend(subject.strip_prefix("alloc:").map(AllocationId::new));
        if !gpu.is_empty() {
            news.gpus.entry(GpuId::new(&gpu)).or_insert(news.before);
        }
    }
    Ok(())
}

/// Posts the hours from `due` on that are over now, of every GPU but `settled`, where nothing else changed.
async fn post_due(
    tx: &mut Tx,
    terms: &Terms,
    due: Instant,
    settled: &BTreeSet<GpuId>,
    now: Instant,
) -> Result<(), LedgerError> {
    let mut after = String::new();
    loop {
        let gpus = index::gpus_after(tx, &after, GPUS_AT_ONCE).await?;
        let Some(last) = gpus.last().cloned() else { return Ok(()) };
        let gpus = gpus.iter().map(|gpu| GpuId::new(gpu)).filter(|gpu| !settled.contains(gpu));
        let floors: BTreeMap<GpuId, Instant> = gpus.map(|gpu| (gpu, due)).collect();
        let facts = standing(tx, terms, &floors, now).await?;
        let terms = with_measured(tx, terms, &facts, &floors).await?;
        let ledger = terms.attribute_from(facts.iter().map(AsRef::as_ref), now, &floors);
        post::post(tx, &ledger, &floors, terms.settings, now).await?;
        after = last;
    }
}

fn heard(marks: BTreeMap<String, i64>) -> BTreeMap<NodeId, Instant> {
    marks.into_iter().map(|(node, from_us)| (NodeId::new(&node), Instant::from_micros(from_us))).collect()
}

/// Settles the nodes whose telemetry came since (their silences may have changed), in one transaction with taking their marks.
///
/// # Errors
/// The database.
pub async fn settle_touched(db: &Db) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    let horizon_us = state::load(&mut tx).await?.horizon_us;
    let marked = touched::any(&mut tx, horizon_us.unwrap_or(i64::MIN)).await?;
    closes::hold_open(&mut tx).await?;
    if !marked {
        return Ok(tx.rollback().await?);
    }
    // Locks come before marks, as in a batch: the other way round a batch that holds a lock and adds a mark would wait for this one in a circle.
    // What the nodes lead to is known only once it is read, so every lock is taken.
    hold(&mut tx, &all_keys()).await?;
    // Read behind the locks: another process may just have moved it, and posting at an older one would go back.
    let Some(horizon) = settled(&mut tx).await? else { return Ok(tx.rollback().await?) };
    let marks = touched::take(&mut tx, horizon.as_micros()).await?;
    let context = context(&mut tx).await?;
    let news = News { heard: heard(marks), ..News::of_batch(BTreeMap::new(), horizon) };
    let settlement = Settlement::of(&mut tx, &context.books, &news).await?;
    settlement.write(&mut tx, &context, horizon).await?;
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

/// The context of the last batch, and what it was read from.
#[derive(Default)]
struct LastContext(Mutex<Option<(Changes, Arc<BatchContext>)>>);

/// What every batch needs to know besides its events, as it stands now: read again only where something changed.
///
/// # Errors
/// The database.
pub async fn context(tx: &mut Tx) -> Result<Arc<BatchContext>, LedgerError> {
    let last = tx.memory().of::<LastContext>();
    let changes = changes(tx).await?;
    let known = last.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, context)) = known.filter(|(before, _)| *before == changes) {
        return Ok(context);
    }
    let objects = objects::load(tx).await?;
    let closed = closed_periods(tx, &objects).await?;
    let context = Arc::new(BatchContext { books: Terms::of(&objects), closed });
    *last.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((changes, Arc::clone(&context)));
    Ok(context)
}
