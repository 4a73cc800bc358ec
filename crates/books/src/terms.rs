//! Terms: what attribution knows besides the facts.

use gpuledger_domain::attribution::{Attribution, Context, attribute, attribute_gpus};
use gpuledger_domain::fact::{Fact, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::pool::Pools;
use gpuledger_domain::sku::SkuBook;
use gpuledger_domain::time::Instant;
use std::collections::BTreeSet;

/// Geometry, names of products and times of silence.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What models can be cut into.
    pub geometry: Geometry,
    /// Names of products.
    pub skus: SkuBook,
    /// Times after which silence counts.
    pub settings: Settings,
    /// By what pools are divided.
    pub pools: Pools,
    /// Measured time of GPUs in measured pools.
    pub measured: Vec<Rollup>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            geometry: gpuledger_wire::geometry::geometry(),
            skus: SkuBook::default(),
            settings: Settings::default(),
            pools: Pools::new(),
            measured: Vec::new(),
        }
    }
}

impl Terms {
    /// The ledger at `as_of`.
    pub fn attribute(&self, facts: &[Fact], as_of: Instant) -> Attribution {
        attribute(facts, &self.context(), as_of)
    }

    /// The ledger at `as_of`, of these GPUs only.
    pub fn attribute_gpus(&self, facts: &[Fact], as_of: Instant, gpus: &BTreeSet<GpuId>) -> Attribution {
        attribute_gpus(facts, &self.context(), as_of, Some(gpus))
    }

    fn context(&self) -> Context<'_> {
        Context {
            geometry: &self.geometry,
            skus: &self.skus,
            settings: self.settings,
            pools: &self.pools,
            measured: &self.measured,
        }
    }
}
