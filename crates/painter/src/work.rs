//! Reported work, sorted into the windows of its pools.

use crate::facts::Facts;
use gpuledger_domain::fact::FactBody;
use gpuledger_domain::ids::{ProjectId, TenantId};
use gpuledger_domain::pool::{Policy, Pools, Work, WorkKind};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Instant;
use num_bigint::BigInt;
use std::collections::{BTreeMap, BTreeSet};

/// For each work pool, the reports of each of its windows, by the start of the window.
pub(crate) type Reports<'a> = BTreeMap<&'a str, BTreeMap<Instant, Vec<&'a Work>>>;

/// Each tenant's weights, by project.
pub(crate) type Weights<'a> = BTreeMap<&'a TenantId, BTreeMap<Option<&'a ProjectId>, BigInt>>;

/// Puts each report into every window that it reaches into, up to the horizon.
pub(crate) fn sort<'a>(facts: &Facts<'a>, pools: &'a Pools) -> Reports<'a> {
    let mut reports = Reports::new();
    for fact in &facts.all {
        let FactBody::Work(work) = &fact.body else { continue };
        let Some((name, pool)) = pools.get_key_value(&work.pool) else { continue };
        let Policy::Work { window, .. } = &pool.policy else { continue };
        let windows = reports.entry(name.as_str()).or_default();
        let mut start = window_start(work.start, window.micros());
        loop {
            windows.entry(start).or_default().push(work);
            start = start.plus(window.micros());
            if start >= work.end || start > facts.as_of {
                break;
            }
        }
    }
    reports
}

pub(crate) fn window_start(at: Instant, length_us: i64) -> Instant {
    Instant::from_micros(at.as_micros().div_euclid(length_us) * length_us)
}

/// What `reports` weigh in the window of `length_us` that begins at `start`: whole numbers, all over the product of everything that anything
/// is divided by. Who weighs nothing is left out.
pub(crate) fn weigh<'a>(
    reports: &[&'a Work],
    kinds: &BTreeMap<WorkKind, Share>,
    start: Instant,
    length_us: i64,
) -> Weights<'a> {
    let mut divisors: BTreeSet<i128> = kinds.values().map(|weight| *weight.denom()).collect();
    let mut lengths: BTreeSet<i128> = BTreeSet::new();
    for work in reports {
        divisors.extend(work.amounts.values().map(|amount| *amount.denom()));
        lengths.insert(length(work));
    }
    // An amount and its weight may have the same divisor: each counts twice.
    let whole: BigInt = divisors.iter().chain(&divisors).chain(&lengths).map(|n| BigInt::from(*n)).product();
    let mut weights = Weights::new();
    for work in reports {
        let mut weight = BigInt::ZERO;
        for (kind, amount) in &work.amounts {
            let Some(each) = kinds.get(kind) else { continue };
            let above = BigInt::from(*amount.numer()) * each.numer() * inside(work, start, length_us);
            let below = BigInt::from(*amount.denom()) * each.denom() * length(work);
            weight += above * (&whole / below);
        }
        if weight > BigInt::ZERO {
            *weights.entry(&work.tenant).or_default().entry(work.project.as_ref()).or_default() += weight;
        }
    }
    weights
}

/// Microseconds of the report; one for a report that took no time.
fn length(work: &Work) -> i128 {
    i128::from(work.end.since(work.start)).max(1)
}

/// Microseconds of the report inside the window, of those that [`length`] counts.
fn inside(work: &Work, start: Instant, length_us: i64) -> i128 {
    let end = if work.end > work.start { work.end } else { work.start.plus(1) };
    let from = work.start.max(start);
    let to = end.min(start.plus(length_us));
    i128::from(to.since(from)).max(0)
}
