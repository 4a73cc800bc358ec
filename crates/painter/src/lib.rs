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
mod shares;
mod states;
mod totals;
mod unplaced;

#[cfg(test)]
mod tests;

use facts::Facts;
use gpuledger_domain::fact::{Fact, Posting, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

pub use met::Met;
pub use totals::{Totals, TotalsKey};
pub use unplaced::{UnplacedTime, unplaced};

/// What the naive method finds for every GPU that has capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painting {
    /// Per GPU, the postings that tile its capacity, in no special order; each lies within one UTC 15-minute cell.
    pub postings: BTreeMap<GpuId, Vec<Posting>>,
    /// Which of the harder rules the facts touch.
    pub met: Met,
}

/// Paints the time of every GPU that some inventory names, up to `as_of`, from the facts that act at `as_of` (those not
/// later). The order of `facts` and repetitions in it change nothing.
pub fn paint(facts: &[Fact], geometry: &Geometry, settings: &Settings, as_of: Instant) -> Painting {
    let facts = Facts::acting(facts, as_of);
    let fleet = gpu::Fleet::read(&facts);
    let units = holds::units(&facts, &fleet, geometry);
    let life = life::Life::read(&facts, &fleet, &units);
    let mut painting = Painting::default();
    for (id, gpu) in &fleet.gpus {
        let units = units.on.get(id).map(Vec::as_slice).unwrap_or_default();
        let held = holds::held_on(units, &facts, gpu, &life, settings);
        let (postings, met) = canvas::paint_gpu(gpu, &held, &life, geometry, settings, as_of);
        painting.postings.insert((*id).clone(), postings);
        painting.met.add(met);
    }
    painting
}
