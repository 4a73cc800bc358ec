//! What pools make of a cell of a unit's time.

use crate::Rules;
use crate::canvas::Holder;
use crate::facts::Facts;
use crate::met::Met;
use crate::{shares, work};
use gpuledger_domain::fact::{FactBody, Grant, Placement, Runtime};
use gpuledger_domain::ids::{AllocationId, GpuId, ProjectId, TenantId};
use gpuledger_domain::measured::{Owner, Rollup};
use gpuledger_domain::pool::{Idle, Policy, Pool};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{CELL_US, HOUR_US, Instant, MINUTE_US, Window};
use num_bigint::BigInt;
use std::collections::BTreeMap;

/// Pools, what was granted in them, what they did and what was measured.
pub(crate) struct Pools<'a> {
    rules: Rules<'a>,
    grants: BTreeMap<&'a AllocationId, &'a Grant>,
    /// Billing states of each allocation, in order.
    states: BTreeMap<&'a AllocationId, Vec<(Instant, &'a str)>>,
    reports: work::Reports<'a>,
    measured: BTreeMap<(&'a GpuId, Instant), Vec<&'a Rollup>>,
}

/// Whose part of a cell.
pub(crate) struct Due<'h> {
    pub(crate) allocation: &'h AllocationId,
    pub(crate) tenant: &'h TenantId,
    pub(crate) project: Option<&'h ProjectId>,
    pub(crate) part: i128,
}

/// A cell divided.
pub(crate) struct Dues<'h> {
    pub(crate) of: Vec<Due<'h>>,
    pub(crate) idle: i128,
    pub(crate) met: Met,
}

/// The slices of a unit whose device is known.
pub(crate) type Place<'p> = (&'p GpuId, Option<Placement>);

impl<'a> Pools<'a> {
    pub(crate) fn read(facts: &Facts<'a>, rules: &Rules<'a>) -> Self {
        let grants = facts.allocations.iter().map(|(id, allocation)| (*id, allocation.grant)).collect();
        let mut states: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for fact in &facts.all {
            if let FactBody::AllocationState { allocation, state } = &fact.body {
                states.entry(allocation).or_default().push((fact.at, state.as_str()));
            }
        }
        let mut measured: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for rollup in rules.measured {
            measured.entry((&rollup.gpu, rollup.hour)).or_default().push(rollup);
        }
        Self { rules: *rules, grants, states, reports: work::sort(facts, rules.pools), measured }
    }

    /// The billing state of an allocation at an instant.
    pub(crate) fn state(&self, allocation: &AllocationId, at: Instant) -> Option<&'a str> {
        let said = self.states.get(allocation)?;
        said.iter().rev().find(|(from, _)| *from <= at).map(|(_, state)| *state)
    }

    /// When billing states of an allocation are said.
    pub(crate) fn state_changes(&self, allocation: &AllocationId) -> impl Iterator<Item = Instant> {
        self.states.get(allocation).into_iter().flatten().map(|(at, _)| *at)
    }

    fn of(&self, holder: &Holder<'_>) -> Option<(&'a str, &'a Pool)> {
        let named = self.grants.get(holder.allocation)?.pool.as_deref()?;
        self.rules.pools.get_key_value(named).map(|(name, pool)| (name.as_str(), pool))
    }

    /// The time of a unit with these holders cut where it is divided anew: at quarters of an hour and at the windows of work pools.
    pub(crate) fn cells(&self, holders: &[Holder<'_>], time: Window) -> Vec<Window> {
        let mut step = CELL_US;
        for holder in holders {
            if let Some((_, Pool { policy: Policy::Work { window, .. }, .. })) = self.of(holder) {
                step = step.min(window.micros());
            }
        }
        shares::cut_every(time, step)
    }

    /// Who gets what of one cell. `place`: where the unit stands, none where nobody knows.
    pub(crate) fn dues<'h>(
        &'h self,
        holders: &[Holder<'h>],
        place: Option<Place<'_>>,
        cell: Window,
    ) -> Dues<'h> {
        let granted: Vec<Share> = holders.iter().map(|holder| holder.share).collect();
        let (mut parts, _) = shares::parts(cell.micros(), &granted);
        let mut met = Met::default();
        self.measure(holders, place, cell, &mut parts);
        met.measured = holders.iter().zip(&parts).any(|(h, part)| *part > 0 && self.is_measured(h));
        let mut idle = i128::from(cell.micros()) - parts.iter().sum::<i128>();
        let more = place.map_or_else(|| vec![0; parts.len()], |_| self.handed_out(holders, &parts, idle));
        for (part, more) in parts.iter_mut().zip(more) {
            *part += more;
            idle -= more;
            met.handed_out |= more > 0;
        }
        let mut of = Vec::new();
        for (holder, part) in holders.iter().zip(parts) {
            let served = self.served(holder, part, cell);
            met.work |= !served.is_empty();
            let own =
                Due { allocation: holder.allocation, tenant: holder.tenant, project: holder.project, part };
            if served.is_empty() { of.push(own) } else { of.extend(served) }
        }
        Dues { of, idle, met }
    }

    fn is_measured(&self, holder: &Holder<'_>) -> bool {
        self.of(holder).is_some_and(|(_, pool)| pool.policy == Policy::Measured)
    }

    /// Replaces the parts of holders in measured pools by what was measured, or by what there is room for.
    fn measure(&self, holders: &[Holder<'_>], place: Option<Place<'_>>, cell: Window, parts: &mut [i128]) {
        let mut room = i128::from(cell.micros());
        let mut times = Vec::new();
        let mut counted: Vec<Owner> = Vec::new();
        for (n, holder) in holders.iter().enumerate() {
            if !self.is_measured(holder) {
                room -= parts[n];
                continue;
            }
            let mut time = 0;
            for owner in self.grants.get(holder.allocation).into_iter().flat_map(|g| names(&g.runtime)) {
                // A process is counted once, for the first holder whose job or pod it is.
                if !counted.contains(&owner) {
                    time += place.map_or(0, |place| self.active(place, &owner, cell));
                    counted.push(owner);
                }
            }
            times.push((n, time));
        }
        let all: i128 = times.iter().map(|(_, time)| time).sum();
        if all > room {
            let weights: Vec<BigInt> = times.iter().map(|(_, time)| BigInt::from(*time)).collect();
            for ((_, time), fitting) in times.iter_mut().zip(shares::divide(room, &weights)) {
                *time = fitting;
            }
        }
        times.into_iter().for_each(|(n, time)| parts[n] = time);
    }

    fn active(&self, (gpu, placement): Place<'_>, owner: &Owner, cell: Window) -> i128 {
        let hour = Instant::from_micros(cell.start().as_micros().div_euclid(HOUR_US) * HOUR_US);
        let mut active = 0;
        for rollup in self.measured.get(&(gpu, hour)).into_iter().flatten() {
            if rollup.placement != placement || rollup.owner != *owner {
                continue;
            }
            for (minute, readings) in &rollup.minutes {
                let begin = rollup.hour.as_micros() + i64::from(*minute) * MINUTE_US;
                let end = (begin + MINUTE_US).min(cell.end().as_micros());
                let inside = (end - begin.max(cell.start().as_micros())).max(0);
                let read = readings.sm_active_us.map_or(0, i128::from);
                active += read * i128::from(inside) / i128::from(MINUTE_US);
            }
        }
        active
    }

    /// What each holder gets of the idle part of its unit.
    fn handed_out(&self, holders: &[Holder<'_>], parts: &[i128], idle: i128) -> Vec<i128> {
        let nothing = vec![0; parts.len()];
        let pools: Vec<_> = holders.iter().map(|holder| self.of(holder)).collect();
        let Some(Some((name, pool))) = pools.first() else { return nothing };
        if pools.iter().any(|other| other.is_none_or(|(other, _)| other != *name)) {
            return nothing;
        }
        let weight = |part: &i128| match (&pool.policy, pool.idle) {
            (Policy::Work { .. }, _) | (_, Idle::Provider) => 0,
            (_, Idle::Proportional) => *part,
            (Policy::Entitlement, Idle::Even) => 1,
            (Policy::Measured, Idle::Even) => (*part).min(1),
        };
        let weights: Vec<BigInt> = parts.iter().map(weight).map(BigInt::from).collect();
        if weights.iter().all(|weight| *weight == BigInt::ZERO) {
            return nothing;
        }
        shares::divide(idle, &weights)
    }

    /// Whom the pool of the holder serves with its part; empty where it divides otherwise, or did no work in the window.
    fn served<'h>(&'h self, holder: &Holder<'h>, part: i128, cell: Window) -> Vec<Due<'h>> {
        let Some((name, Pool { policy: Policy::Work { weights, window }, .. })) = self.of(holder) else {
            return Vec::new();
        };
        let start = work::window_start(cell.start(), window.micros());
        let reports = self.reports.get(name).and_then(|windows| windows.get(&start));
        let reports = reports.map(Vec::as_slice).unwrap_or_default();
        let tenants = work::weigh(reports, weights, start, window.micros());
        let sums: Vec<BigInt> = tenants.values().map(|projects| projects.values().sum()).collect();
        let mut dues = Vec::new();
        if tenants.is_empty() {
            return dues;
        }
        for ((tenant, projects), part) in tenants.iter().zip(shares::divide(part, &sums)) {
            let weights: Vec<BigInt> = projects.values().cloned().collect();
            for (project, part) in projects.keys().zip(shares::divide(part, &weights)) {
                dues.push(Due { allocation: holder.allocation, tenant, project: *project, part });
            }
        }
        dues
    }
}

/// The process owners that a grant's job and pod mean.
fn names(runtime: &Runtime) -> Vec<Owner> {
    let job = runtime.slurm_job.iter().map(|job| Owner::Job(job.clone()));
    job.chain(runtime.pod_uid.iter().map(|pod| Owner::Pod(pod.clone()))).collect()
}
