//! One cell of a unit in a pool: whole microseconds for each holder, and for each tenant that a work pool serves.

use super::measured::owners;
use super::{Holder, Pooling};
use crate::ids::GpuId;
use crate::measured::Owner;
use crate::pool::{Idle, Policy, Pool, Weighed};
use crate::share::{Share, split_by_largest_remainder};
use crate::time::Window;
use num_rational::Ratio;
use std::collections::BTreeSet;

impl Pooling<'_> {
    /// The holders of the cell `window` with their parts as shares of its length. `gpu`: where the unit stands; none: nobody knows.
    pub(super) fn divided(&mut self, gpu: Option<&GpuId>, holders: &[Holder], window: Window) -> Vec<Holder> {
        let total = i128::from(window.micros());
        let shares: Vec<Share> = holders.iter().map(|holder| holder.share).collect();
        let mut parts = entitled(total, &shares);
        let measured = self.measured_times(gpu, holders, window);
        let is_measured = measured.iter().any(Option::is_some);
        replace_by_measured(&mut parts, &measured, total);
        // What is left of a unit that nobody named is not known to be free.
        if let Some(pool) = gpu.and(self.common(holders)) {
            hand_out(&mut parts, total, pool);
        }
        // Billed as granted where more was granted than there is; measured time is billed as it is.
        let sum: Share = shares.iter().sum();
        let granted = (sum * Ratio::from_integer(total)).floor().to_integer().max(total);
        let granted = if is_measured { total } else { granted };
        let with_part = |holder: Holder, part: i128| Holder {
            share: Ratio::new(part * granted, total * total),
            ..holder
        };
        let mut divided = Vec::new();
        for (holder, part) in holders.iter().zip(parts) {
            let Some(work) = self.work(holder, window) else {
                divided.push(with_part(holder.clone(), part));
                continue;
            };
            divided.push(with_part(holder.clone(), 0));
            for served in work.split(part).into_iter().filter(|served| served.part > 0) {
                let (tenant, project) = (served.tenant.clone(), served.project.cloned());
                let served_holder = Holder { tenant, project, held: false, ..holder.clone() };
                divided.push(with_part(served_holder, served.part));
            }
        }
        divided
    }

    /// The work by which the holder's part is divided; none outside work pools, and where nobody was served.
    fn work(&mut self, holder: &Holder, window: Window) -> Option<&Weighed> {
        let member = self.members.get(&holder.allocation)?;
        let weighed = self.reported.at(member.name, window.start())?;
        (!weighed.is_empty()).then_some(weighed)
    }

    /// The measured microseconds of each holder in a measured pool; none for the others. Time of a process that the names of several
    /// holders fit is the first one's.
    fn measured_times(&self, gpu: Option<&GpuId>, holders: &[Holder], window: Window) -> Vec<Option<i128>> {
        let mut taken: BTreeSet<Owner> = BTreeSet::new();
        let time = |holder: &Holder| {
            let member = self.members.get(&holder.allocation)?;
            if member.pool.policy != Policy::Measured {
                return None;
            }
            let own = owners(member.runtime).filter(|owner| taken.insert(owner.clone()));
            let place = gpu.zip(self.places.get(&(&holder.allocation, holder.unit)));
            let Some((gpu, placement)) = place else { return Some(0) };
            Some(own.map(|owner| self.measured.active_us(gpu, *placement, &owner, window)).sum())
        };
        holders.iter().map(time).collect()
    }
}

/// Parts by share as M-3 splits a cell; shares over 1 in all are scaled down.
fn entitled(total: i128, shares: &[Share]) -> Vec<i128> {
    let rest = Ratio::from_integer(1) - shares.iter().sum::<Share>();
    let mut weights = shares.to_vec();
    weights.extend(Some(rest).filter(|rest| *rest > Ratio::from_integer(0)));
    let mut parts = split_by_largest_remainder(total, &weights);
    parts.truncate(shares.len());
    parts
}

/// Holders in a measured pool get what was measured, at most the time that the others leave.
fn replace_by_measured(parts: &mut [i128], measured: &[Option<i128>], total: i128) {
    let others: i128 =
        parts.iter().zip(measured).filter(|(_, time)| time.is_none()).map(|(part, _)| part).sum();
    let times: Vec<i128> = measured.iter().copied().flatten().collect();
    let room = total - others;
    let fitting = if times.iter().sum::<i128>() > room {
        let weights: Vec<Share> = times.into_iter().map(Ratio::from_integer).collect();
        split_by_largest_remainder(room, &weights)
    } else {
        times
    };
    let in_pool = parts.iter_mut().zip(measured).filter(|(_, time)| time.is_some());
    in_pool.zip(fitting).for_each(|((part, _), time)| *part = time);
}

/// Hands what is left of the cell to the holders as the pool says. A work pool has nothing left: its windows without work are the
/// operator's.
fn hand_out(parts: &mut [i128], total: i128, pool: &Pool) {
    let has_part = |part: &i128| Ratio::from_integer(i128::from(*part > 0));
    let weights: Vec<Share> = match (&pool.policy, pool.idle) {
        (Policy::Work { .. }, _) | (_, Idle::Provider) => return,
        (_, Idle::Proportional) => parts.iter().copied().map(Ratio::from_integer).collect(),
        (Policy::Entitlement, Idle::Even) => parts.iter().map(|_| Ratio::from_integer(1)).collect(),
        (Policy::Measured, Idle::Even) => parts.iter().map(has_part).collect(),
    };
    let rest = total - parts.iter().sum::<i128>();
    let more = split_by_largest_remainder(rest, &weights);
    parts.iter_mut().zip(more).for_each(|(part, more)| *part += more);
}
