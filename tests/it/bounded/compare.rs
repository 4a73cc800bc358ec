//! What stands in the database against what attribution finds in all facts.

use anyhow::{Result, bail, ensure};
use gpuledger_books::Books;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::journal::{journals, postable_until};
use gpuledger_domain::usage::{End, UsageSpan};
use gpuledger_storage::journals::last_entries;
use gpuledger_storage::spans::{AllocationPage, load_allocations};
use gpuledger_storage::{Db, Tx};
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
    compare_journals(&mut tx, &whole, postable_until(horizon, books.terms.settings).as_micros()).await
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
        for journal in journals(gpu, timeline, gpuledger_domain::time::Instant::from_micros(until_us)) {
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
