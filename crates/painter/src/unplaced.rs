//! Units whose devices nobody named: outside the balance, billed the same.

use crate::canvas::Holder;
use crate::facts::Facts;
use crate::gpu::Fleet;
use crate::holds::{owners, slots};
use crate::pools::Pools;
use crate::{Owned, Rules};
use gpuledger_domain::fact::Fact;
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use std::collections::BTreeMap;

/// Time of the unplaced units that one allocation has for one owner, all units added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnplacedTime {
    /// Held, in microseconds, by billing state. Whom a pool serves holds nothing.
    pub held_us: BTreeMap<Option<String>, i128>,
    /// The owner's part, in microseconds.
    pub billed_us: i128,
}

/// The time of the unplaced units of each allocation that has some and held them, as of `as_of`. They end only by release, by a
/// snapshot of all nodes, or at `as_of`. The order of `facts` and repetitions in it change nothing.
pub fn unplaced(facts: &[Fact], rules: &Rules<'_>, as_of: Instant) -> BTreeMap<Owned, UnplacedTime> {
    let facts = Facts::acting(facts, as_of);
    let fleet = Fleet::read(&facts);
    let pools = Pools::read(&facts, rules);
    let mut times = BTreeMap::new();
    for (id, allocation) in &facts.allocations {
        let end = facts.end_in_words(allocation, |_, _| false).unwrap_or(as_of);
        let owners = owners(id, allocation, &facts);
        let mut stays: Vec<(Instant, &crate::holds::Owner<'_>)> = Vec::new();
        for owner in &owners {
            // Two from one instant: the later said one. The same owner again: nothing new.
            stays.retain(|(from, _)| *from < owner.from);
            if stays.last().is_none_or(|(_, o)| (o.tenant, o.project) != (owner.tenant, owner.project)) {
                stays.push((owner.from, owner));
            }
        }
        let ends = stays.iter().skip(1).map(|(from, _)| *from).chain([end]);
        let stays: Vec<_> = stays.iter().zip(ends).collect();
        for slot in
            slots(id, allocation, &facts, &fleet, rules.geometry).iter().filter(|s| s.device.is_none())
        {
            let share = slot.share.unwrap_or_else(|| Share::from_integer(1));
            for ((from, owner), until) in &stays {
                let Some(window) = Window::new(*from, (*until).min(end)) else { continue };
                let holder =
                    Holder { allocation: id, index: 0, tenant: owner.tenant, project: owner.project, share };
                add(&pools, holder, window, &mut times);
            }
        }
    }
    times.retain(|_, time: &mut UnplacedTime| *time != UnplacedTime::default());
    times
}

/// Adds what one unit comes to while nothing changes.
fn add(pools: &Pools<'_>, holder: Holder<'_>, window: Window, times: &mut BTreeMap<Owned, UnplacedTime>) {
    let owner = (holder.allocation.clone(), holder.tenant.clone(), holder.project.cloned());
    let inside = |at: &Instant| window.contains(*at);
    let mut edges: Vec<Instant> = pools.state_changes(holder.allocation).filter(inside).collect();
    edges.extend([window.start(), window.end()]);
    edges.sort();
    let held = &mut times.entry(owner).or_default().held_us;
    for part in edges.windows(2).filter_map(|pair| Window::new(pair[0], pair[1])) {
        let state = pools.state(holder.allocation, part.start()).map(str::to_owned);
        *held.entry(state).or_default() += i128::from(part.micros());
    }
    let holders = [holder];
    for cell in pools.cells(&holders, window) {
        for due in pools.dues(&holders, None, cell).of.iter().filter(|due| due.part != 0) {
            let owner = (due.allocation.clone(), due.tenant.clone(), due.project.cloned());
            times.entry(owner).or_default().billed_us += due.part;
        }
    }
}
