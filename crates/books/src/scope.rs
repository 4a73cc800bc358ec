//! The part of the books that a batch touches: everything that can change what stands on the GPUs of the nodes it speaks of.

use crate::error::BooksError;
use crate::facts::{decode, proof};
use gpuledger_domain::fact::{Fact, FactBody, Placed, PlacedOf, Runtime};
use gpuledger_domain::ids::GpuId;
use gpuledger_storage::facts::StoredFact;
use gpuledger_storage::{PgConnection, alive};
use std::collections::{BTreeMap, BTreeSet};

/// Facts enough to attribute `gpus`, and what they name.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// GPUs that the seeds can change: those they name, and all others on the same nodes (proof of life).
    pub gpus: BTreeSet<GpuId>,
    /// Allocations known whole here: none of their units stands beyond `gpus`.
    pub allocations: BTreeSet<String>,
    /// All facts about any of it.
    pub facts: Vec<Fact>,
    /// Every subject that was asked for: what a batch must hold locked.
    pub subjects: BTreeSet<String>,
}

/// Gathers the scope of `seeds` (subjects of facts).
///
/// What is painted are the GPUs the seeds lead to and all others ever on the same nodes, whose proof of life may have changed. What is
/// read is wider: every node a painted GPU was ever on, every GPU there, and all facts of the allocations on those, because each of them
/// may prove that a node lived.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn gather(connection: &mut PgConnection, seeds: &BTreeSet<String>) -> Result<Scope, BooksError> {
    let mut gathering =
        Gathering { connection, stored: BTreeMap::new(), facts: BTreeMap::new(), asked: BTreeSet::new() };
    gathering.fetch(widened(seeds)).await?;
    gathering.follow_allocations().await?;
    let seeded = seeds.iter().filter(|subject| subject.starts_with("gpu:")).cloned();
    let touched: BTreeSet<String> = gathering.names().gpus.into_iter().chain(seeded).collect();
    let (_, neighbours) = gathering.follow_nodes(&touched).await?;
    let painted: BTreeSet<String> = touched.into_iter().chain(neighbours).collect();
    let (nodes, around) = gathering.follow_nodes(&painted).await?;
    gathering.fetch(around).await?;
    gathering.follow_allocations().await?;
    gathering.finish(painted, &nodes).await
}

/// A snapshot may end any grant of its source.
fn widened(seeds: &BTreeSet<String>) -> BTreeSet<String> {
    let mut wide = seeds.clone();
    for seed in seeds {
        wide.extend(seed.strip_prefix("snapshot:").map(|source| format!("source-grants:{source}")));
    }
    wide
}

struct Gathering<'c> {
    connection: &'c mut PgConnection,
    stored: BTreeMap<i64, StoredFact>,
    facts: BTreeMap<i64, Fact>,
    asked: BTreeSet<String>,
}

/// What facts name, as subjects.
#[derive(Default)]
struct Names {
    gpus: BTreeSet<String>,
    allocations: BTreeSet<String>,
    runtimes: BTreeSet<String>,
    snapshots: BTreeSet<String>,
}

impl Gathering<'_> {
    async fn fetch(&mut self, subjects: BTreeSet<String>) -> Result<(), BooksError> {
        let new: Vec<String> = subjects.into_iter().filter(|subject| !self.asked.contains(subject)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let found = gpuledger_storage::facts::load_by_subjects(self.connection, &new).await?;
        let found: Vec<StoredFact> =
            found.into_iter().filter(|fact| !self.stored.contains_key(&fact.seq)).collect();
        let decoded = decode(&found)?;
        self.facts.extend(found.iter().map(|fact| fact.seq).zip(decoded));
        self.stored.extend(found.into_iter().map(|fact| (fact.seq, fact)));
        self.asked.extend(new);
        Ok(())
    }

    /// Grants lead to their other facts, jobs and pods to placements, placements to more grants, sources to snapshots: until nothing new
    /// is named.
    async fn follow_allocations(&mut self) -> Result<(), BooksError> {
        loop {
            let asked = self.asked.len();
            let names = self.names();
            let more = names.allocations.into_iter().chain(names.runtimes).chain(names.snapshots);
            self.fetch(more.collect()).await?;
            if self.asked.len() == asked {
                return Ok(());
            }
        }
    }

    /// The nodes that `gpus` were ever on, and all GPUs ever on those.
    async fn follow_nodes(
        &mut self,
        gpus: &BTreeSet<String>,
    ) -> Result<(BTreeSet<String>, BTreeSet<String>), BooksError> {
        self.fetch(gpus.clone()).await?;
        let nodes = self.nodes_of(gpus);
        self.fetch(nodes.clone()).await?;
        let on_them = self.gpus_on(&nodes);
        Ok((nodes, on_them))
    }

    fn names(&self) -> Names {
        let mut names = Names::default();
        for fact in self.facts.values() {
            names.read(fact);
        }
        names
    }

    fn nodes_of(&self, gpus: &BTreeSet<String>) -> BTreeSet<String> {
        let inventories = self.facts.values().filter_map(|fact| match &fact.body {
            FactBody::Inventory(inventory) => Some(inventory),
            _ => None,
        });
        let listing = inventories.filter(|i| i.gpus.iter().any(|g| gpus.contains(&format!("gpu:{}", g.gpu))));
        listing.map(|inventory| format!("node:{}", inventory.node)).collect()
    }

    fn gpus_on(&self, nodes: &BTreeSet<String>) -> BTreeSet<String> {
        let mut gpus = BTreeSet::new();
        for fact in self.facts.values() {
            if let FactBody::Inventory(inventory) = &fact.body
                && nodes.contains(&format!("node:{}", inventory.node))
            {
                gpus.extend(inventory.gpus.iter().map(|g| format!("gpu:{}", g.gpu)));
            }
        }
        gpus
    }

    /// Allocations with a unit on a GPU that is not painted: what is known here of their ends is not all there is.
    fn allocations_beyond(&self, painted: &BTreeSet<String>) -> BTreeSet<String> {
        let mut beyond = BTreeSet::new();
        for fact in self.facts.values() {
            let mut names = Names::default();
            names.read(fact);
            if matches!(fact.body, FactBody::Granted(_) | FactBody::Placed(_))
                && !names.gpus.is_subset(painted)
            {
                beyond.extend(
                    names.allocations.iter().filter_map(|a| a.strip_prefix("alloc:")).map(str::to_owned),
                );
            }
        }
        beyond
    }

    async fn finish(self, gpus: BTreeSet<String>, nodes: &BTreeSet<String>) -> Result<Scope, BooksError> {
        let nodes: Vec<String> =
            nodes.iter().filter_map(|node| node.strip_prefix("node:")).map(str::to_owned).collect();
        let alive = alive::load(self.connection, &nodes).await?;
        let strip = |subjects: &BTreeSet<String>, prefix: &str| -> BTreeSet<String> {
            subjects.iter().filter_map(|s| s.strip_prefix(prefix)).map(str::to_owned).collect()
        };
        let elsewhere = self.allocations_beyond(&gpus);
        Ok(Scope {
            gpus: strip(&gpus, "gpu:").iter().map(|gpu| GpuId::new(gpu)).collect(),
            allocations: strip(&self.asked, "alloc:").difference(&elsewhere).cloned().collect(),
            facts: self.facts.into_values().chain(alive.iter().map(proof)).collect(),
            subjects: self.asked,
        })
    }
}

impl Names {
    fn read(&mut self, fact: &Fact) {
        self.gpus.extend(fact.body.gpus().into_iter().map(|gpu| format!("gpu:{gpu}")));
        match &fact.body {
            FactBody::Granted(grant) => {
                self.allocations.insert(format!("alloc:{}", grant.allocation));
                self.snapshots.insert(format!("snapshot:{}", fact.source));
                self.runtime(&grant.runtime);
            }
            FactBody::Placed(Placed { of: PlacedOf::Runtime(runtime), .. }) => self.runtime(runtime),
            FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), .. })
            | FactBody::AllocationState { allocation, .. }
            | FactBody::Transferred { allocation, .. }
            | FactBody::Released { allocation, .. } => {
                self.allocations.insert(format!("alloc:{allocation}"));
            }
            FactBody::Inventory(_)
            | FactBody::UnitState(_)
            | FactBody::ScrubStarted { .. }
            | FactBody::ScrubFinished { .. }
            | FactBody::GpuDecommissioned(_)
            | FactBody::NodeDecommissioned(_)
            | FactBody::NodeAlive(_)
            | FactBody::Snapshot { .. }
            | FactBody::Work(_)
            | FactBody::Other => {}
        }
    }

    fn runtime(&mut self, runtime: &Runtime) {
        self.runtimes.extend(runtime.slurm_job.as_ref().map(|job| format!("job:{job}")));
        self.runtimes.extend(runtime.pod_uid.as_ref().map(|pod| format!("pod:{pod}")));
    }
}
