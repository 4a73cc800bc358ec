//! Terms: what attribution knows besides the facts.

use crate::objects::Objects;
use gpuledger_domain::attribution::{
    Attribution, Changes, Context, Look, attribute, attribute_from, attribute_gpus, changes, holds,
};
use gpuledger_domain::fact::{Fact, FactBody, PlacedOf, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{AllocationId, GpuId};
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::pool::{Policy, Pools};
use gpuledger_domain::residue::{History, Rules, Sets, histories};
use gpuledger_domain::sku::SkuBook;
use gpuledger_domain::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

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
    /// What is sanitised between tenants, and how strictly.
    pub residue: Sets,
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
            residue: Sets::default(),
            measured: Vec::new(),
        }
    }
}

impl Terms {
    /// What the objects say; no measured time yet.
    pub fn of(objects: &Objects) -> Self {
        Self {
            skus: objects.sku_book(),
            pools: objects.pools(),
            residue: objects.residue_sets(),
            ..Self::default()
        }
    }

    /// The GPUs whose measured time these facts need: those of grants in measured pools, and where `allocation.placed` may have put them.
    pub fn gpus_measured<'f>(&self, facts: impl IntoIterator<Item = &'f Fact> + Clone) -> BTreeSet<GpuId> {
        let is_measured =
            |pool: &str| self.pools.get(pool).is_some_and(|pool| pool.policy == Policy::Measured);
        let mut allocations: BTreeSet<&AllocationId> = BTreeSet::new();
        let mut gpus = BTreeSet::new();
        for fact in facts.clone() {
            if let FactBody::Granted(grant) = &fact.body
                && grant.pool.as_deref().is_some_and(is_measured)
            {
                allocations.insert(&grant.allocation);
                gpus.extend(fact.body.gpus().into_iter().cloned());
            }
        }
        for fact in facts.into_iter().filter(|_| !allocations.is_empty()) {
            if let FactBody::Placed(placed) = &fact.body {
                let concerned = match &placed.of {
                    PlacedOf::Allocation(allocation) => allocations.contains(allocation),
                    PlacedOf::Runtime(_) => true,
                };
                gpus.extend(fact.body.gpus().into_iter().filter(|_| concerned).cloned());
            }
        }
        gpus
    }

    /// The ledger at `as_of`.
    pub fn attribute(&self, facts: &[Fact], as_of: Instant) -> Attribution {
        attribute(facts, &self.context(), as_of)
    }

    /// The ledger at `as_of`, of these GPUs only.
    pub fn attribute_gpus(&self, facts: &[Fact], as_of: Instant, gpus: &BTreeSet<GpuId>) -> Attribution {
        attribute_gpus(facts, &self.context(), as_of, Some(gpus))
    }

    /// The ledger at `as_of`, of each of these GPUs from its floor on.
    pub fn attribute_from<'f>(
        &self,
        facts: impl IntoIterator<Item = &'f Fact>,
        as_of: Instant,
        floors: &BTreeMap<GpuId, Instant>,
    ) -> Attribution {
        attribute_from(facts.into_iter().collect(), &self.context(), as_of, floors)
    }

    /// What each GPU's memory went through up to `as_of`, as far as these facts tell it.
    pub fn residue<'f>(
        &self,
        facts: impl IntoIterator<Item = &'f Fact> + Clone,
        as_of: Instant,
    ) -> BTreeMap<GpuId, History> {
        let holds = holds(facts.clone().into_iter().collect(), &self.context(), as_of);
        histories(facts, holds, as_of)
    }

    /// The rules for a GPU's residue.
    pub fn residue_rules(&self, history: &History) -> Rules {
        self.residue.of(&history.gpu, &history.node, &history.model)
    }

    /// What differs between two looks at the ledger.
    pub fn changes(&self, before: Look<'_>, after: Look<'_>) -> Changes {
        changes(before, after, &self.context())
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
