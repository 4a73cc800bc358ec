//! Packing: from blocks of windows to packed hours, one row a unit, process owner and hour, with its minutes.
//!
//! A chunk is one transaction: blocks of one hour are read in the order of their nodes, as far as memory allows; what they say is added to the rows
//! of those nodes; and each block notes up to which node it is packed. So each window counts once wherever the process is killed, late
//! blocks are added like early ones, and memory does not grow with the hour.

mod fold;
pub(crate) mod minutes;
mod node_hour;
mod restage;
mod schedule;

pub(crate) use schedule::Schedule;

use crate::error::LedgerError;
use crate::points::point;
use fold::{Fold, rows_with};
use gpuledger_storage::blocks::{Block, lock_packing, mark_packed, newest_end, to_pack, waiting};
use gpuledger_storage::{Db, Tx, hours, measured_marks, retry, unread};
use gpuledger_wire::block::Opener;
use std::time::Instant;

/// Rows that are held at once, about: at some three KiB each, with the minutes of a unit or owner, this is 40 MiB.
const MOST_ROWS: usize = 12_000;
/// Blocks read at once.
const PAGE: i64 = 32;
/// Folds that go on at once, each over its part of the blocks.
const FOLDS: usize = 2;

/// Packs all that waits, however young its hour is.
///
/// # Errors
/// The database, or a block that cannot be read.
pub async fn everything(db: &Db) -> Result<(), LedgerError> {
    begin(db).await?;
    loop {
        let mut tx = db.snapshot().await?;
        let hours = waiting(&mut tx).await?;
        drop(tx);
        if hours.is_empty() {
            return Ok(());
        }
        for hour in hours {
            self::hour(db, hour.hour_us).await?;
        }
    }
}

/// Makes everything that waits a block: an earlier version staged windows one by one.
///
/// # Errors
/// As [`everything`].
pub(crate) async fn begin(db: &Db) -> Result<(), LedgerError> {
    restage::all(db).await
}

/// Packs the hours that are due.
///
/// # Errors
/// As [`everything`].
pub(crate) async fn due(
    db: &Db,
    schedule: &mut Schedule,
    clock: gpuledger_domain::time::Instant,
) -> Result<(), LedgerError> {
    let mut tx = db.snapshot().await?;
    let (waiting, newest_end_us) = (waiting(&mut tx).await?, newest_end(&mut tx).await?);
    drop(tx);
    let reached_us = newest_end_us.map_or(clock.as_micros(), |end_us| end_us.max(clock.as_micros()));
    for hour_us in schedule.due(&waiting, reached_us, Instant::now()) {
        hour(db, hour_us).await?;
    }
    Ok(())
}

/// Packs what waits of one hour.
async fn hour(db: &Db, hour_us: i64) -> Result<(), LedgerError> {
    while retry::retry(async || chunk(db, hour_us, MOST_ROWS).await).await? {}
    Ok(())
}

/// One chunk; false: nothing of the hour is left, but for what came meanwhile.
async fn chunk(db: &Db, hour_us: i64, most_rows: usize) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    lock_packing(&mut tx).await?;
    let mut folds: Vec<Fold> = (0..FOLDS).map(|_| Fold::new(most_rows / FOLDS)).collect();
    let mut numbers = Vec::new();
    let mut page = to_pack(&mut tx, hour_us, None, PAGE).await?;
    loop {
        let until = folds.iter().filter_map(Fold::until).min();
        page.retain(|block| until.is_none_or(|until| block.next_node.as_deref() < Some(until)));
        let Some(last) = page.last() else { break };
        numbers.extend(page.iter().map(|block| block.number));
        let after = last.next_node.clone().map(|node| (node, last.number));
        let place = after.as_ref().map(|(node, number)| (node.as_str(), *number));
        // While one page is added up, the next one is read.
        let (added, next) = tokio::join!(folded(folds, page), to_pack(&mut tx, hour_us, place, PAGE));
        (folds, page) = (added?, next?);
    }
    let Some(fold) = folds.into_iter().reduce(Fold::join).filter(|_| !numbers.is_empty()) else {
        return Ok(false);
    };
    let until = fold.until().map(str::to_owned);
    write(&mut tx, fold).await?;
    mark_packed(&mut tx, hour_us, &numbers, until.as_deref()).await?;
    point("ledger::before-packed");
    tx.commit().await?;
    Ok(until.is_some())
}

/// Adds a page of blocks, each fold its part, on threads of their own.
async fn folded(folds: Vec<Fold>, page: Vec<Block>) -> Result<Vec<Fold>, LedgerError> {
    let mut parts: Vec<Vec<Block>> = folds.iter().map(|_| Vec::new()).collect();
    for (block, place) in page.into_iter().zip((0..parts.len()).cycle()) {
        parts[place].push(block);
    }
    let folding: Vec<_> = folds
        .into_iter()
        .zip(parts)
        .map(|(fold, part)| tokio::task::spawn_blocking(move || fold_all(fold, &part)))
        .collect();
    let mut folded = Vec::with_capacity(folding.len());
    for one in folding {
        folded.push(one.await.map_err(|why| LedgerError::Block(why.to_string()))??);
    }
    Ok(folded)
}

fn fold_all(mut fold: Fold, blocks: &[Block]) -> Result<Fold, LedgerError> {
    let mut opener = Opener::new().map_err(|why| LedgerError::Block(why.to_string()))?;
    for block in blocks {
        add(&mut fold, &mut opener, block).map_err(|why| {
            LedgerError::Block(format!("block {} of hour {}: {why}", block.number, block.hour_us))
        })?;
    }
    Ok(fold)
}

fn add(fold: &mut Fold, opener: &mut Opener, block: &Block) -> Result<(), String> {
    let opened = opener.open(&block.body).map_err(|why| why.to_string())?;
    for staged in opened.windows() {
        let staged = staged.map_err(|why| why.to_string())?;
        if block.next_node.as_deref().is_some_and(|next| next <= staged.node) {
            fold.take(&staged).map_err(|why| why.to_string())?;
        }
    }
    Ok(())
}

async fn write(tx: &mut Tx, mut fold: Fold) -> Result<(), LedgerError> {
    unread::merge(tx, &fold.unread()).await?;
    for (hour_us, nodes) in fold.by_hour() {
        let names: Vec<String> = nodes.keys().cloned().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let stood = hours::load_nodes(tx, hour_us, &names).await?;
        let rows = rows_with(hour_us, nodes, &stood);
        hours::replace_nodes(tx, hour_us, &names, &rows, !stood.is_empty()).await?;
        let mut gpus: Vec<&str> = rows.iter().map(|row| row.key.gpu.as_str()).collect();
        gpus.dedup();
        measured_marks::mark(tx, &gpus, hour_us).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
