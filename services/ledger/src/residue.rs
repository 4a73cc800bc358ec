//! Residue in the ledger's transaction: grants that something new touches are judged again; violations are recorded and audited once, and under `enforce`
//! quarantine is ordered through the outbox of signals, once for each cause.
//!
//! A verdict rests on what dirtied a slice last, so little has to be read: first what settling has read, then further back, and everything only where a
//! slice rested for long. What comes late is judged like what comes in order; a signal that has not left is withdrawn when its cause turns out to be none.

mod record;
mod signal;

use crate::error::LedgerError;
use gpuledger_books::Terms;
use gpuledger_books::scope::{News, Scope, floor_before, standing};
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::residue::{History, Mode, Rules};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::signals::{self, SignalRow};
use gpuledger_storage::{Tx, index, state};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use signal::{answer, producer, publish};

/// How far back is read where what settling read does not tell, in microseconds; then everything.
const LOOK_BACK_US: [i64; 3] = [24 * HOUR_US, 20 * 24 * HOUR_US, i64::MAX];

/// A GPU that is judged from an instant on, with everything that tells.
pub(crate) struct Case {
    pub(crate) history: History,
    pub(crate) rules: Rules,
    pub(crate) from: Instant,
}

/// Judges what the news touch. Behind settling, with the locks of all subjects held.
pub(crate) async fn settle(
    tx: &mut Tx,
    terms: &Terms,
    news: &News,
    scope: &Scope,
) -> Result<(), LedgerError> {
    let touched = touched(tx, news, scope).await?;
    if touched.is_empty() {
        return Ok(());
    }
    let quarantines = quarantines(tx, &touched).await?;
    let cases = cases(tx, terms, news.now, Known { scope, quarantines: &quarantines }, touched).await?;
    write(tx, &cases, &quarantines, news.now).await
}

/// Judges everything: where all is derived anew.
pub(crate) async fn settle_all(
    tx: &mut Tx,
    terms: &Terms,
    facts: &[Arc<Fact>],
    horizon: Instant,
) -> Result<(), LedgerError> {
    let histories = terms.residue(facts.iter().map(AsRef::as_ref), horizon);
    let touched = histories.keys().map(|gpu| (gpu.clone(), Instant::MIN)).collect();
    let quarantines = quarantines(tx, &touched).await?;
    let case = |history: History| {
        let rules = terms.residue_rules(&history);
        Case { history, rules, from: Instant::MIN }
    };
    let cases: Vec<Case> = histories.into_values().map(case).collect();
    write(tx, &cases, &quarantines, horizon).await
}

/// GPUs on which the news may change a verdict, each from when on.
async fn touched(tx: &mut Tx, news: &News, scope: &Scope) -> Result<BTreeMap<GpuId, Instant>, LedgerError> {
    let mut touched = scope.changes.gpus.clone();
    let mut listed: BTreeMap<GpuId, Instant> = BTreeMap::new();
    for fact in news.facts.values() {
        match &fact.body {
            FactBody::ScrubFinished { gpu, started_at, .. } => {
                lower(&mut touched, gpu, fact.at.min(*started_at));
            }
            FactBody::QuarantineReleased { gpu, .. } => lower(&mut touched, gpu, fact.at),
            FactBody::Inventory(inventory) => {
                inventory.gpus.iter().for_each(|seen| lower(&mut listed, &seen.gpu, fact.at));
            }
            _ => {}
        }
    }
    // A new boot changes verdicts of later grants only, and heartbeats come after all grants there are.
    let asked: Vec<(String, i64)> =
        listed.iter().map(|(gpu, at)| (format!("gpu:{gpu}"), at.plus(-1).as_micros())).collect();
    for entry in index::next(tx, "gp", &asked).await? {
        if let Some((gpu, at)) =
            entry.subject.strip_prefix("gpu:").and_then(|gpu| listed.get_key_value(&GpuId::new(gpu)))
        {
            lower(&mut touched, gpu, *at);
        }
    }
    Ok(touched)
}

fn lower(gpus: &mut BTreeMap<GpuId, Instant>, gpu: &GpuId, to: Instant) {
    let standing = gpus.entry(gpu.clone()).or_insert(to);
    *standing = to.min(*standing);
}

/// Quarantines that stand on these GPUs.
async fn quarantines(
    tx: &mut Tx,
    touched: &BTreeMap<GpuId, Instant>,
) -> Result<BTreeMap<GpuId, Vec<SignalRow>>, LedgerError> {
    let names: Vec<String> = touched.keys().map(ToString::to_string).collect();
    let mut by_gpu: BTreeMap<GpuId, Vec<SignalRow>> = BTreeMap::new();
    for row in signals::quarantines(tx, &names).await? {
        by_gpu.entry(GpuId::new(row.gpu.as_deref().unwrap_or_default())).or_default().push(row);
    }
    Ok(by_gpu)
}

/// What is known without reading.
#[derive(Clone, Copy)]
struct Known<'k> {
    scope: &'k Scope,
    quarantines: &'k BTreeMap<GpuId, Vec<SignalRow>>,
}

/// The histories of the GPUs touched, as far back as their verdicts need.
async fn cases(
    tx: &mut Tx,
    terms: &Terms,
    now: Instant,
    known: Known<'_>,
    touched: BTreeMap<GpuId, Instant>,
) -> Result<Vec<Case>, LedgerError> {
    let mut cases = Vec::new();
    let mut open = touched;
    let told = terms.residue(known.scope.facts.iter().map(AsRef::as_ref), now);
    take_told(terms, told, &known.scope.floors, known, &mut open, &mut cases);
    for back_us in LOOK_BACK_US {
        if open.is_empty() {
            break;
        }
        let floor = |from: Instant| {
            if back_us == i64::MAX { Instant::MIN } else { floor_before(from.plus(-back_us)) }
        };
        let floors: BTreeMap<GpuId, Instant> =
            open.iter().map(|(gpu, from)| (gpu.clone(), floor(*from))).collect();
        let facts = standing(tx, terms, &floors, now).await?;
        let told = terms.residue(facts.iter().map(AsRef::as_ref), now);
        take_told(terms, told, &floors, known, &mut open, &mut cases);
    }
    Ok(cases)
}

/// Takes GPUs whose verdicts all follow from what was read; the others stay open.
fn take_told(
    terms: &Terms,
    told: BTreeMap<GpuId, History>,
    floors: &BTreeMap<GpuId, Instant>,
    known: Known<'_>,
    open: &mut BTreeMap<GpuId, Instant>,
    cases: &mut Vec<Case>,
) {
    for (gpu, mut history) in told {
        let Some((from, floor)) = open.get(&gpu).copied().zip(floors.get(&gpu).copied()) else { continue };
        history.known_from = floor;
        let rules = terms.residue_rules(&history);
        let needed = known.quarantines.get(&gpu).into_iter().flatten().map(|row| row.since_us).min();
        let reaches = needed.is_none_or(|since_us| floor.as_micros() <= since_us);
        let is_told =
            rules.mode == Mode::Off || history.judge(&rules, from).iter().all(|j| j.not_known.is_empty());
        if reaches && is_told {
            open.remove(&gpu);
            cases.push(Case { history, rules, from });
        }
    }
}

/// Records what follows.
async fn write(
    tx: &mut Tx,
    cases: &[Case],
    quarantines: &BTreeMap<GpuId, Vec<SignalRow>>,
    horizon: Instant,
) -> Result<(), LedgerError> {
    // Signals are effects in the world: they are dated by the clock, which may be past the horizon.
    let clock = state::load(tx).await?.clock_us.map_or(horizon, Instant::from_micros);
    let now = clock.max(horizon);
    record::violations(tx, cases, now).await?;
    let none = Vec::new();
    let mut raised = signal::Raised::default();
    for case in cases {
        let standing = quarantines.get(&case.history.gpu).unwrap_or(&none);
        raised.of_case(case, standing, now);
    }
    raised.write(tx, now).await
}
