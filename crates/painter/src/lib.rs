//! The second, naive method behind `gpuledger ledger verify`: paint every slice of a GPU anew in each interval between
//! neighbouring instants at which anything can change, straight from the accepted facts.
//!
//! It shares data types with the ledger's attribution and no code: a mistake in one of the two shows as a difference.
//! Nothing here is incremental or clever; every question ("who is on which node", "what is broken now") is answered by
//! looking through the facts.

mod canvas;
mod facts;
mod gpu;
mod holds;
mod life;
mod met;
mod packing;
mod pools;
mod shares;
mod states;
mod totals;
mod unplaced;
mod work;

#[cfg(test)]
mod tests;

use facts::Facts;
use gpuledger_domain::fact::{Fact, Posting, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{AllocationId, GpuId, ProjectId, TenantId};
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::pool;
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

pub use met::Met;
pub use totals::{Totals, TotalsKey};
pub use unplaced::{UnplacedTime, unplaced};

/// What the painter knows besides the facts.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// What models can be cut into.
    pub geometry: &'a Geometry,
    /// Times after which silence counts.
    pub settings: Settings,
    /// By what pools are divided.
    pub pools: &'a pool::Pools,
    /// Measured time.
    pub measured: &'a [Rollup],
}

/// Whose time by which allocation.
pub type Owned = (AllocationId, TenantId, Option<ProjectId>);

/// What the naive method finds for every GPU that has capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painting {
    /// Per GPU, the postings that tile its capacity, in no special order; each lies within one UTC 15-minute cell.
    pub postings: BTreeMap<GpuId, Vec<Posting>>,
    /// Parts of the time of placed units, in microseconds; none where there is no part.
    pub parts: BTreeMap<Owned, i128>,
    /// Time over which placed units were held, in microseconds, by billing state.
    pub held: BTreeMap<(Owned, Option<String>), i128>,
    /// Which of the harder rules the facts touch.
    pub met: Met,
}

/// Paints the time of every GPU that some inventory names, up to `as_of`, from the facts that act at `as_of` (those not
/// later). The order of `facts` and repetitions in it change nothing.
pub fn paint(facts: &[Fact], rules: &Rules<'_>, as_of: Instant) -> Painting {
    let facts = Facts::acting(facts, as_of);
    let fleet = gpu::Fleet::read(&facts);
    let units = holds::units(&facts, &fleet, rules.geometry);
    let life = life::Life::read(&facts, &fleet, &units);
    let pools = pools::Pools::read(&facts, rules);
    let mut painting = Painting::default();
    for (id, gpu) in &fleet.gpus {
        let units = units.on.get(id).map(Vec::as_slice).unwrap_or_default();
        let held = holds::held_on(units, &facts, gpu, &life, &rules.settings);
        canvas::Studio { id, gpu, holds: &held, life: &life, pools: &pools, rules, as_of }
            .paint(&mut painting);
    }
    painting.parts.retain(|_, part| *part != 0);
    painting
}
