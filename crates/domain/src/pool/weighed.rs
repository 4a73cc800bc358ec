//! What the reported work of one window weighs, exactly, and the split of time by it.
//!
//! A report counts by the part of its time that lies in the window. Reports of many different lengths have no small common measure, so
//! weights are whole numbers of any size over one denominator: sums stay exact and nothing is ever rounded before the split.

use super::{Work, WorkKind};
use crate::ids::{ProjectId, TenantId};
use crate::share::Share;
use crate::time::Window;
use num_bigint::BigUint;
use num_rational::Ratio;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Weight of each project of each tenant in one window, all above zero, over one denominator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    tenants: BTreeMap<TenantId, BTreeMap<Option<ProjectId>, BigUint>>,
    denominator: BigUint,
}

/// A tenant's and project's part of a split, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served<'w> {
    /// Who was served.
    pub tenant: &'w TenantId,
    /// For which of the tenant's projects.
    pub project: Option<&'w ProjectId>,
    /// Part of the time that was split.
    pub part: i128,
}

/// Weighs `reports` of one pool in one of its windows. A report is spread evenly over its time; one that took no time lies in the window that
/// contains its instant. Kinds of work without a weight weigh nothing.
pub fn weigh<'r>(
    reports: impl IntoIterator<Item = &'r Work>,
    weights: &BTreeMap<WorkKind, Share>,
    window: Window,
) -> Weighed {
    let mut found: Vec<(&Work, Ratio<BigUint>)> = Vec::new();
    let mut denominator = BigUint::from(1_u8);
    for work in reports {
        let Some(part) = part_inside(work, window) else { continue };
        let weight = weight_of(work, weights) * part;
        if *weight.numer() != BigUint::ZERO {
            denominator = common_multiple(denominator, weight.denom());
            found.push((work, weight));
        }
    }
    let mut tenants: BTreeMap<TenantId, BTreeMap<Option<ProjectId>, BigUint>> = BTreeMap::new();
    for (work, weight) in found {
        let projects = tenants.entry(work.tenant.clone()).or_default();
        *projects.entry(work.project.clone()).or_default() +=
            weight.numer() * (&denominator / weight.denom());
    }
    Weighed { tenants, denominator }
}

/// The part of a report's time that lies in the window; none where none does.
fn part_inside(work: &Work, window: Window) -> Option<Ratio<BigUint>> {
    let whole = || Ratio::from_integer(BigUint::from(1_u8));
    let Some(time) = work.window() else { return window.contains(work.start).then(whole) };
    let inside = time.intersect(window)?;
    if inside == time {
        return Some(whole());
    }
    let micros = |window: Window| BigUint::from(window.micros().unsigned_abs());
    Some(Ratio::new(micros(inside), micros(time)))
}

fn weight_of(work: &Work, weights: &BTreeMap<WorkKind, Share>) -> Ratio<BigUint> {
    let one_each = work.amounts.iter().filter_map(|(kind, amount)| Some((amount, weights.get(kind)?)));
    one_each.fold(Ratio::from_integer(BigUint::ZERO), |sum, (amount, weight)| sum + big(amount) * big(weight))
}

/// Amounts and weights are not negative; what were would count for nothing.
fn big(share: &Share) -> Ratio<BigUint> {
    let part = |n: &i128| BigUint::try_from(*n).unwrap_or_default();
    Ratio::new(part(share.numer()), part(share.denom()))
}

fn common_multiple(a: BigUint, b: &BigUint) -> BigUint {
    let (mut divisor, mut rest) = (b.clone(), &a % b);
    while rest != BigUint::ZERO {
        (divisor, rest) = (rest.clone(), divisor % rest);
    }
    a * (b / divisor)
}

impl Weighed {
    /// Whether nobody was served.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// A tenant's weight, all projects together, as numerator and denominator.
    pub fn weight(&self, tenant: &TenantId) -> (BigUint, BigUint) {
        let projects = self.tenants.get(tenant).into_iter().flat_map(BTreeMap::values);
        (projects.sum(), self.denominator.clone())
    }

    /// Splits `part` microseconds (not negative) among the tenants by largest remainder, ties to the smaller id, and each tenant's among its
    /// projects, ties to none, then to the smaller id. The parts add up to `part`; there are none where nobody was served.
    pub fn split(&self, part: i128) -> Vec<Served<'_>> {
        let sums: Vec<BigUint> = self.tenants.values().map(|projects| projects.values().sum()).collect();
        let of_tenants = split_by_weight(part, &sums);
        let mut served = Vec::new();
        for ((tenant, projects), part) in self.tenants.iter().zip(of_tenants) {
            let weights: Vec<BigUint> = projects.values().cloned().collect();
            let of_projects = projects.keys().zip(split_by_weight(part, &weights));
            served.extend(of_projects.map(|(project, part)| Served {
                tenant,
                project: project.as_ref(),
                part,
            }));
        }
        served
    }
}

/// As `share::split_by_largest_remainder`, by whole weights of any size.
fn split_by_weight(total: i128, weights: &[BigUint]) -> Vec<i128> {
    let sum: BigUint = weights.iter().sum();
    if sum == BigUint::ZERO {
        return vec![0; weights.len()];
    }
    let big_total = BigUint::try_from(total).unwrap_or_default();
    let quotas: Vec<BigUint> = weights.iter().map(|weight| weight * &big_total).collect();
    // A quota is at most the total, which fits.
    let mut parts: Vec<i128> = quotas.iter().map(|q| i128::try_from(q / &sum).unwrap_or_default()).collect();
    let left = total - parts.iter().sum::<i128>();
    let mut order: Vec<(Reverse<BigUint>, usize)> =
        quotas.iter().enumerate().map(|(index, quota)| (Reverse(quota % &sum), index)).collect();
    order.sort();
    for (_, index) in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests;
