//! A story step by step: batches in the order of arrival, a horizon that moves, telemetry that is settled.

use super::efforts::Efforts;
use super::{compare, events};
use crate::generate::{BEGIN, Case};
use anyhow::{Context as _, Result};
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_ledger::batch::apply_all;
use gpuledger_ledger::incoming::{Arrivals, Incoming};
use gpuledger_ledger::unsettled::settle_some;
use gpuledger_ledger::{horizon, unsettled};
use gpuledger_storage::Db;
use gpuledger_storage::objects::{NewObject, apply as apply_object};
use gpuledger_storage::unsettled::Portion;
use std::io::Write as _;

/// No event of a story lies ahead of this clock.
const CLOCK: Instant = Instant::from_micros(1_830_000_000_000_000);

/// Numbers of a story, always the same for the same salt.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Lets the story happen, and compares after each step.
pub(crate) async fn run(db: &Db, case: &Case, efforts: &Efforts) -> Result<()> {
    let mut dice = Dice(case.salt);
    let stretch = [1, 1, 3, 6][usize::try_from(dice.below(4))?];
    let facts: Vec<Fact> = case.facts.iter().map(|fact| stretched(fact, stretch)).collect();
    let last = facts.iter().map(|fact| fact.at).max().unwrap_or(BEGIN);
    apply_pools(db, dice.below(1 << 20)).await?;
    if dice.below(2) == 0 {
        enforce(db).await?;
    }
    let mut rest = facts.as_slice();
    let mut now = BEGIN.plus(i64::try_from(dice.below(2))? * (last.since(BEGIN) / 2));
    let mut told = 0;
    loop {
        efforts.expect(told);
        let took = match dice.below(7) {
            0 => {
                now = now.plus(i64::try_from(dice.below(u64::try_from(2 * HOUR_US)?))?);
                horizon::advance(db, now).await.context("advancing")?;
                "the horizon moved"
            }
            1 => {
                horizon::settle_touched(db).await.context("settling")?;
                "telemetry was settled"
            }
            2 => {
                let portion = Portion { nodes: 1, facts: 1 + i64::try_from(dice.below(3))? };
                settle_some(db, portion).await.context("settling a backlog")?;
                "some of what waits was settled"
            }
            _ if rest.is_empty() => break,
            _ => {
                let many = usize::try_from(1 + dice.below(5))?.min(rest.len());
                let (batch, later) = rest.split_at(many);
                apply_batch(db, batch, told, dice.below(3) == 0).await.context("applying")?;
                (rest, told) = (later, told + many);
                "a batch came"
            }
        };
        if std::env::var_os("STORY").is_some() {
            writeln!(std::io::stderr(), "{told} facts, {took}, horizon {now}")?;
        }
        let waits = is_waiting(db).await?;
        efforts.count_step(waits);
        if waits {
            continue;
        }
        compare::stands(db, told > 0 && took == "a batch came")
            .await
            .with_context(|| format!("after {told} facts, {took} (horizon {now})"))?;
    }
    efforts.expect(told);
    while settle_some(db, unsettled::AT_ONCE).await.context("settling what waits")? {}
    for _ in 0..3 {
        now = now.max(last).plus(2 * HOUR_US);
        horizon::advance(db, now).await?;
        compare::stands(db, false).await.with_context(|| format!("after all facts, at {now}"))?;
    }
    Ok(())
}

async fn apply_pools(db: &Db, variety: u64) -> Result<()> {
    let mut tx = db.begin().await?;
    for pool in events::pools(variety) {
        let new = NewObject {
            kind: "Pool".to_owned(),
            id: pool["id"].as_str().unwrap_or_default().to_owned(),
            body: pool.to_string(),
        };
        apply_object(&mut tx, &new, 0, "test").await?;
    }
    Ok(tx.commit().await?)
}

/// Whether facts of a backlog wait: what stands is not what follows from all facts.
async fn is_waiting(db: &Db) -> Result<bool> {
    Ok(gpuledger_storage::unsettled::any(&mut *db.snapshot().await?).await?)
}

async fn apply_batch(db: &Db, batch: &[Fact], told: usize, is_backlog: bool) -> Result<()> {
    let lines = batch.iter().enumerate().filter_map(|(n, fact)| events::line(fact, told + n));
    let incoming: Vec<Incoming> = lines.map(|line| Incoming::trusted(line, "story".to_owned())).collect();
    for one in &incoming {
        if let Err(error) = &one.event {
            anyhow::bail!("an event of the story cannot be read: {error:?}");
        }
    }
    let mut tx = db.begin().await?;
    apply_all(&mut tx, &Arrivals { is_backlog, ..Arrivals::from(incoming) }, CLOCK).await?;
    Ok(tx.commit().await?)
}

/// Every GPU is enforced.
async fn enforce(db: &Db) -> Result<()> {
    let body = r#"{"kind": "Residue", "id": "all", "gpus": "*", "mode": "enforce"}"#.to_owned();
    let object = NewObject { kind: "Residue".to_owned(), id: "all".to_owned(), body };
    let mut tx = db.begin().await?;
    apply_object(&mut tx, &object, 0, "test").await?;
    Ok(tx.commit().await?)
}

/// The same story, slower: longer than leases and gaps, so that there is something before a floor.
fn stretched(fact: &Fact, times: i64) -> Fact {
    let later = |at: Instant| BEGIN.plus(at.since(BEGIN) * times);
    let body = match fact.body.clone() {
        FactBody::ScrubFinished { scrub, gpu, placement, started_at, evidence } => {
            FactBody::ScrubFinished { scrub, gpu, placement, started_at: later(started_at), evidence }
        }
        // A boot each three hours: nobody knows what is in memory after it.
        FactBody::Inventory(mut inventory) => {
            inventory.boot_id = format!("b{}", later(fact.at).since(BEGIN) / (3 * HOUR_US));
            FactBody::Inventory(inventory)
        }
        FactBody::Work(mut work) => {
            (work.start, work.end) = (later(work.start), later(work.end));
            FactBody::Work(work)
        }
        other => other,
    };
    Fact { at: later(fact.at), body, ..fact.clone() }
}
