//! All findings at a horizon, those of prices included, and their read model for the API.

use anyhow::Result;
use gpuledger_billing::catalogue::Catalogue;
use gpuledger_billing::sold::SoldBook;
use gpuledger_billing::unpriced_findings;
use gpuledger_books::Books;
use gpuledger_books::findings::{Owners, findings};
use gpuledger_domain::finding::Finding;
use gpuledger_domain::time::Instant;
use gpuledger_storage::findings::{FindingRow, replace};
use gpuledger_storage::{Db, PgConnection};
use gpuledger_telemetry::shutdown::Shutdown;
use std::time::{Duration, Instant as Moment};

/// Deriving reads all facts and packed hours, so it rests so many times as long as it took.
const REST: u32 = 20;

/// What was found, and to whom it is told.
pub(crate) struct Found {
    pub(crate) findings: Vec<Finding>,
    pub(crate) owners: Owners,
}

/// Derives all findings as they hold at `as_of`.
pub(crate) async fn found(tx: &mut PgConnection, books: &Books, as_of: Instant) -> Result<Found> {
    let ledger = books.attribute(as_of);
    let mut all = findings(tx, books, &ledger, as_of).await?;
    let owners = Owners::of(&ledger);
    let catalogue = Catalogue::load(tx).await?;
    let sold = SoldBook::load(tx, as_of).await?;
    all.extend(unpriced_findings(&catalogue, &sold, ledger, as_of)?);
    Ok(Found { findings: all.into_vec(), owners })
}

/// Derives the read model anew, at the ledger's horizon; before the first horizon there is nothing to find.
pub(crate) async fn refresh(db: &Db) -> Result<()> {
    let mut snapshot = db.snapshot().await?;
    let books = Books::load(&mut snapshot).await?;
    let Some(as_of) = books.horizon else { return Ok(()) };
    let Found { findings, owners } = found(&mut snapshot, &books, as_of).await?;
    drop(snapshot);
    drop(books);
    let rows: Vec<FindingRow> = findings.iter().map(row).collect();
    let told = owners.told(&findings);
    let told: Vec<(String, FindingRow)> =
        told.iter().map(|told| (told.tenant.to_string(), row(&told.finding))).collect();
    let mut tx = db.begin().await?;
    replace(&mut tx, &rows, &told, as_of.as_micros()).await?;
    Ok(tx.commit().await?)
}

fn row(finding: &Finding) -> FindingRow {
    FindingRow {
        kind: finding.kind.as_str().to_owned(),
        subject: finding.subject.clone(),
        since_us: finding.since.as_micros(),
        until_us: finding.until.map(Instant::as_micros),
        detail: finding.detail.clone(),
    }
}

/// Keeps the read model fresh until `shutdown` begins: at once, then each `every`, or less often where it takes long.
pub(crate) async fn keep_fresh(db: Db, every: Duration, shutdown: Shutdown) {
    loop {
        let began = Moment::now();
        if let Err(error) = refresh(&db).await {
            tracing::warn!(%error, "findings for the API stay as they were");
        }
        let pause = every.max(began.elapsed() * REST);
        tokio::select! {
            () = shutdown.begun() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
