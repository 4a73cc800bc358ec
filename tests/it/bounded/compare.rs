//! What stands in the database against what attribution finds in all facts.

use anyhow::{Result, bail, ensure};
use gpuledger_books::Books;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::journal::{journals, postable_until};
use gpuledger_domain::residue::{lifted_at, orders};
use gpuledger_domain::time::Instant;
use gpuledger_domain::usage::{End, UsageSpan};
use gpuledger_storage::journals::last_entries;
use gpuledger_storage::spans::{AllocationPage, load_allocations};
use gpuledger_storage::{Db, Tx, signals, violations};
use std::collections::BTreeSet;

/// Compares everything. `unsettled`: telemetry may have come that is not settled yet, which only facts need to stand without.
pub(crate) async fn stands(db: &Db, unsettled: bool) -> Result<()> {
    let mut tx = db.snapshot().await?;
    let books = Books::load(&mut tx).await?;
    let Some(horizon) = books.horizon else { return Ok(()) };
    if unsettled && gpuledger_storage::touched::any(&mut tx, i64::MAX).await? {
        return Ok(());
    }
    let whole = books.attribute(horizon);
    compare_spans(&mut tx, &whole).await?;
    compare_allocations(&mut tx, &whole).await?;
    compare_residue(&mut tx, &books, horizon).await?;
    compare_journals(&mut tx, &whole, postable_until(horizon, books.terms.settings).as_micros()).await
}

/// Violations as they are recorded, and quarantines as they are ordered, against those of all facts.
async fn compare_residue(tx: &mut Tx, books: &Books, horizon: Instant) -> Result<()> {
    let histories = books.terms.residue(&books.facts, horizon);
    let names: Vec<String> = histories.keys().map(ToString::to_string).collect();
    let (mut wanted, mut ordered) = (BTreeSet::new(), BTreeSet::new());
    for (gpu, history) in &histories {
        let rules = books.terms.residue_rules(history);
        for judged in history.judge(&rules, Instant::MIN) {
            if !judged.violated().is_empty() {
                let (hold, slices) = (judged.hold, judged.violated());
                wanted.insert(format!(
                    "{gpu} {} {} {} memory slices {slices}",
                    hold.allocation, hold.unit, hold.start
                ));
            }
        }
        let orders = orders(history, &rules, Instant::MIN);
        let standing = orders.iter().filter(|order| lifted_at(history, order.slices, order.since).is_none());
        ordered.extend(standing.map(|order| format!("{gpu} {} {}", order.slices, order.since)));
    }
    let asked: Vec<(String, i64)> = names.iter().map(|gpu| (gpu.clone(), i64::MIN)).collect();
    let found: BTreeSet<String> = violations::since(tx, &asked)
        .await?
        .into_iter()
        .filter(|row| row.cleared_at_us.is_none())
        .map(|row| {
            let start = Instant::from_micros(row.start_us);
            format!("{} {} {} {start} {}", row.gpu, row.allocation, row.unit, row.detail)
        })
        .collect();
    ensure!(found == wanted, "violations are {found:?}, should be {wanted:?}");
    let signals: BTreeSet<String> = signals::quarantines(tx, &names)
        .await?
        .into_iter()
        .map(|row| {
            let (gpu, slices) = (row.gpu.unwrap_or_default(), row.slices.unwrap_or_default());
            format!("{gpu} {slices} {}", Instant::from_micros(row.since_us))
        })
        .collect();
    ensure!(signals == ordered, "quarantines are {signals:?}, should be {ordered:?}");
    Ok(())
}

async fn compare_spans(tx: &mut Tx, whole: &Attribution) -> Result<()> {
    let stand = gpuledger_books::spans::load(tx).await?;
    let text =
        |span: &UsageSpan| format!("{} unit {} of {} {:?}", span.allocation, span.unit, span.tenant, span);
    let wanted: BTreeSet<String> = whole.spans.iter().map(text).collect();
    let found: BTreeSet<String> = stand.iter().map(text).collect();
    if let Some(lacking) = wanted.difference(&found).next() {
        bail!("a span is lacking: {lacking}\nthere is {:?}", found.difference(&wanted).next());
    }
    if let Some(more) = found.difference(&wanted).next() {
        bail!("a span should not stand: {more}");
    }
    ensure!(stand.len() == whole.spans.len(), "{} spans stand, {} should", stand.len(), whole.spans.len());
    Ok(())
}

async fn compare_allocations(tx: &mut Tx, whole: &Attribution) -> Result<()> {
    let page = AllocationPage {
        from_us: i64::MIN,
        to_us: i64::MAX,
        tenant: None,
        project: None,
        after: "",
        limit: i64::MAX,
    };
    let stand: BTreeSet<String> = load_allocations(tx, &page)
        .await?
        .into_iter()
        .map(|row| {
            format!("{} {} {:?} {} {:?}", row.allocation, row.start_us, row.end_us, row.tenant, row.project)
        })
        .collect();
    let end = |end: &End| match end {
        End::Open => None,
        End::Ended { at, .. } => Some(at.as_micros()),
    };
    let wanted: BTreeSet<String> = whole
        .allocations
        .iter()
        .map(|view| {
            let project = view.project.as_ref().map(ToString::to_string);
            format!(
                "{} {} {:?} {} {project:?}",
                view.allocation,
                view.start.as_micros(),
                end(&view.end),
                view.tenant
            )
        })
        .collect();
    ensure!(stand == wanted, "allocations are {stand:?}, should be {wanted:?}");
    Ok(())
}

async fn compare_journals(tx: &mut Tx, whole: &Attribution, until_us: i64) -> Result<()> {
    for (gpu, timeline) in &whole.gpus {
        let mut wanted = BTreeSet::new();
        for journal in journals(gpu, timeline, Instant::from_micros(until_us)) {
            for entry in &journal.entries {
                let owner = entry.owner.as_ref().map(|o| {
                    format!(
                        "{} {:?} {} {}",
                        o.tenant,
                        o.project.as_ref().map(|p| p.as_str()),
                        o.allocation,
                        o.unit
                    )
                });
                wanted.insert(format!(
                    "{} {} {} {owner:?} {} {} {}",
                    entry.window.start().as_micros(),
                    entry.window.end().as_micros(),
                    entry.account.as_str(),
                    entry.memory_mask,
                    entry.compute_slices,
                    entry.part_us
                ));
            }
        }
        let found: BTreeSet<String> = last_entries(tx, gpu.as_str(), i64::MIN, i64::MAX)
            .await?
            .into_iter()
            .map(|(_, row)| {
                let owner = row.tenant.as_ref().map(|tenant| {
                    format!(
                        "{tenant} {:?} {} {}",
                        row.project,
                        row.allocation.clone().unwrap_or_default(),
                        row.unit.unwrap_or_default()
                    )
                });
                format!(
                    "{} {} {} {owner:?} {} {} {}",
                    row.start_us, row.end_us, row.account, row.memory_mask, row.compute_slices, row.part_us
                )
            })
            .collect();
        if wanted != found {
            bail!(
                "journals of {gpu}: lacking {:?}, too much {:?}",
                wanted.difference(&found).collect::<Vec<_>>(),
                found.difference(&wanted).collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}
