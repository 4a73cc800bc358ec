//! What the facts that were read name: where allocations may stand, and under which jobs and pods.

use gpuledger_domain::fact::{Fact, FactBody, Grant, GrantUnit, PlacedOf, PlacedUnit, Runtime};
use gpuledger_domain::ids::{GpuId, Source};
use gpuledger_domain::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// All that is known of allocations.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) allocations: BTreeMap<String, Named>,
    /// By `job:…` or `pod:…`.
    runtimes: BTreeMap<String, Shared>,
}

/// One allocation.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// GPUs that its grants and placements name.
    gpus: BTreeSet<GpuId>,
    /// Its jobs and pods.
    pub(super) runtimes: BTreeSet<String>,
    /// Times of its grants.
    pub(super) granted: BTreeSet<Instant>,
    /// Who granted it.
    pub(super) sources: BTreeSet<Source>,
    /// Pools of its grants.
    pub(super) pools: BTreeSet<String>,
    /// Whether a grant has units without a device.
    pub(super) unplaced: bool,
    /// Times of its releases.
    released: BTreeSet<Instant>,
    /// The earliest fact that names it.
    pub(super) first: Option<Instant>,
    /// The latest fact that names it.
    pub(super) last: Option<Instant>,
    /// MIG instances that are named by UUID alone.
    by_uuid: BTreeSet<(GpuId, String)>,
}

/// What a job or pod has in common.
#[derive(Debug, Default)]
struct Shared {
    allocations: BTreeSet<String>,
    gpus: BTreeSet<GpuId>,
    by_uuid: BTreeSet<(GpuId, String)>,
}

/// `job:…` and `pod:…` of a runtime.
pub(super) fn runtime_subjects(runtime: &Runtime) -> impl Iterator<Item = String> + use<> {
    let job = runtime.slurm_job.as_ref().map(|job| format!("job:{job}"));
    job.into_iter().chain(runtime.pod_uid.as_ref().map(|pod| format!("pod:{pod}")))
}

impl Places {
    /// Takes note of a fact; again changes nothing.
    pub(super) fn note(&mut self, fact: &Fact) {
        let id = match &fact.body {
            FactBody::Granted(grant) => {
                self.grant(fact, grant);
                &grant.allocation
            }
            FactBody::Placed(placed) => {
                let gpus = placed.units.iter().map(|unit| unit.gpu.clone());
                let by_uuid = placed.units.iter().filter_map(uuid_alone);
                match &placed.of {
                    PlacedOf::Allocation(allocation) => {
                        let named = self.named(allocation.as_str());
                        named.gpus.extend(gpus);
                        named.by_uuid.extend(by_uuid);
                        allocation
                    }
                    PlacedOf::Runtime(runtime) => {
                        for subject in runtime_subjects(runtime) {
                            let shared = self.runtimes.entry(subject).or_default();
                            shared.gpus.extend(gpus.clone());
                            shared.by_uuid.extend(by_uuid.clone());
                        }
                        return;
                    }
                }
            }
            FactBody::Released { allocation, .. } => {
                self.named(allocation.as_str()).released.insert(fact.at);
                allocation
            }
            FactBody::Transferred { allocation, .. } | FactBody::AllocationState { allocation, .. } => {
                allocation
            }
            _ => return,
        };
        let named = self.named(id.as_str());
        named.first = Some(named.first.map_or(fact.at, |first| fact.at.min(first)));
        named.last = named.last.max(Some(fact.at));
    }

    fn named(&mut self, id: &str) -> &mut Named {
        self.allocations.entry(id.to_owned()).or_default()
    }

    fn grant(&mut self, fact: &Fact, grant: &Grant) {
        let runtimes: BTreeSet<String> = runtime_subjects(&grant.runtime).collect();
        for runtime in &runtimes {
            let shared = self.runtimes.entry(runtime.clone()).or_default();
            shared.allocations.insert(grant.allocation.to_string());
        }
        let named = self.named(grant.allocation.as_str());
        named.granted.insert(fact.at);
        named.sources.insert(fact.source.clone());
        named.pools.extend(grant.pool.clone());
        named.runtimes.extend(runtimes);
        for unit in &grant.units {
            match unit {
                GrantUnit::Placed(placed) => {
                    named.gpus.insert(placed.gpu.clone());
                    named.by_uuid.extend(uuid_alone(placed));
                }
                GrantUnit::Unplaced { .. } => named.unplaced = true,
            }
        }
    }

    /// Every GPU an allocation may stand on.
    pub(super) fn gpus_of(&self, allocation: &str) -> BTreeSet<GpuId> {
        let Some(named) = self.allocations.get(allocation) else { return BTreeSet::new() };
        let shared = named.runtimes.iter().filter_map(|runtime| self.runtimes.get(runtime));
        named.gpus.iter().chain(shared.flat_map(|shared| &shared.gpus)).cloned().collect()
    }

    /// GPUs and UUIDs of MIG instances of an allocation that an inventory must place.
    pub(super) fn by_uuid(&self, allocation: &str) -> BTreeSet<(GpuId, String)> {
        let Some(named) = self.allocations.get(allocation) else { return BTreeSet::new() };
        let shared = named.runtimes.iter().filter_map(|runtime| self.runtimes.get(runtime));
        named.by_uuid.iter().chain(shared.flat_map(|shared| &shared.by_uuid)).cloned().collect()
    }

    /// Allocations that a job or pod may mean.
    pub(super) fn of_runtime(&self, runtime: &str) -> impl Iterator<Item = &String> {
        self.runtimes.get(runtime).into_iter().flat_map(|shared| &shared.allocations)
    }

    /// GPUs that placements of a job or pod name.
    pub(super) fn gpus_of_runtime(&self, runtime: &str) -> impl Iterator<Item = &GpuId> {
        self.runtimes.get(runtime).into_iter().flat_map(|shared| &shared.gpus)
    }
}

impl Named {
    /// Whether a release acts at `now`.
    pub(super) fn is_released(&self, now: Instant) -> bool {
        self.released.first().is_some_and(|at| *at <= now)
    }
}

fn uuid_alone(unit: &PlacedUnit) -> Option<(GpuId, String)> {
    let mig = unit.mig.as_ref().filter(|mig| mig.profile.is_none() || mig.placement.is_none())?;
    Some((unit.gpu.clone(), mig.uuid.clone()?))
}
