//! Which source each reading of a device stands on, and why not on a better one.
//!
//! The rungs, best first: A hardware counters (GPM), B the driver's accounting counters, C its samples of processes, D its samples of the
//! device, E the gauge, F nothing but the fact of being allocated, G a derived share, 0 nothing at all. Where a device stands is probed
//! once for each load of the driver and each change of its MIG mode, kept, and probed anew when the error of a rung changes; and seldom
//! besides, so that accounting that was turned on is used.

mod advice;
mod probe;
mod quality;
mod rung;

pub use probe::{Known, probe};
pub use quality::{Quality, Rule, Why};
pub use rung::{Refusal, Refused, Rung, Standing, Want};

use std::collections::BTreeMap;

/// Where each reading of one device stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// Whether MIG was on when it was probed.
    pub mig: bool,
    standings: BTreeMap<Want, Standing>,
}

impl Ladder {
    /// All readings with their rungs, in the order in which people read them.
    pub fn standings(&self) -> impl Iterator<Item = (Want, &Standing)> {
        self.standings.iter().map(|(want, standing)| (*want, standing))
    }

    /// The rung of a reading; [`Rung::Nothing`] for one that this device cannot have, such as that of instances with MIG off.
    pub fn rung(&self, want: Want) -> Rung {
        self.standings.get(&want).map_or(Rung::Nothing, |standing| standing.rung)
    }

    /// The label of a reading that is not there, by the best rung that was refused.
    pub fn absence(&self, want: Want) -> Quality {
        let standing = self.standings.get(&want);
        standing.map_or(Quality::from(gpuledger_nvml::Absent::NotSupported), Standing::quality)
    }

    /// Whether some rung could not be probed, for a reason that may pass by itself.
    pub fn is_doubtful(&self) -> bool {
        self.standings.values().any(|standing| standing.doubt.is_some())
    }
}
