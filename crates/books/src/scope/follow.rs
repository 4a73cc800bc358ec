//! From facts to the facts that go with them: allocations, jobs and pods, scrubs, pools, and the inventories at the start of each hold.

use super::places::runtime_subjects;
use super::reading::{OF_ALLOCATIONS, Reading};
use crate::error::BooksError;
use gpuledger_domain::fact::{Fact, FactBody, PlacedOf};
use gpuledger_domain::ids::{GpuId, ScrubId};
use gpuledger_domain::time::Instant;
use gpuledger_storage::index::{self, Asked};
use gpuledger_wire::scrub_subject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Inventories read at once on the way back to one that names a MIG instance.
const BACK_AT_ONCE: i64 = 64;

impl Reading<'_> {
    /// Reads until nothing new is named.
    pub(super) async fn follow(&mut self) -> Result<(), BooksError> {
        loop {
            let before = self.read.len();
            let (mut allocations, mut runtimes, mut scrubs, mut pools) = (vec![], vec![], vec![], vec![]);
            for (id, named) in &self.places.allocations {
                allocations.push(format!("alloc:{id}"));
                runtimes.extend(named.runtimes.iter().cloned());
                let gpus = self.gpus_of(id);
                let from = gpus.iter().filter_map(|gpu| self.reads_from(gpu)).min();
                let from = if named.unplaced { named.granted.first().copied() } else { from };
                pools.extend(from.into_iter().flat_map(|from| {
                    named.pools.iter().map(move |pool| (format!("pool:{pool}"), from.as_micros()))
                }));
            }
            for fact in self.read.values() {
                match &fact.body {
                    FactBody::ScrubStarted { scrub, gpu, .. }
                    | FactBody::ScrubFinished { scrub, gpu, .. } => {
                        scrubs.push(subject_of_scrub(gpu, scrub));
                    }
                    FactBody::Placed(placed) => {
                        if let PlacedOf::Runtime(runtime) = &placed.of {
                            runtimes.extend(runtime_subjects(runtime));
                        }
                    }
                    _ => {}
                }
            }
            self.read_all("allocation", OF_ALLOCATIONS, allocations).await?;
            self.read_all("runtime", "gp", runtimes).await?;
            self.read_all("scrub", "bf", scrubs).await?;
            let pools = self.due("work", earliest(pools));
            let found = index::since(self.connection, "w", &pools).await?;
            self.fetch(&found).await?;
            if self.read.len() == before {
                return Ok(());
            }
        }
    }

    /// The inventory that counts at the start of each hold: the latest at or before it, else the first.
    pub(super) async fn read_starts(&mut self) -> Result<(), BooksError> {
        let mut asks = Vec::new();
        let mut by_uuid = Vec::new();
        for (id, named) in &self.places.allocations {
            let around: Vec<GpuId> =
                self.gpus_of(id).into_iter().filter(|gpu| self.reads_from(gpu).is_some()).collect();
            for start in &named.granted {
                asks.extend(around.iter().map(|gpu| (format!("gpu:{gpu}"), start.as_micros())));
                let named = self.places.by_uuid(id).into_iter().filter(|(gpu, _)| around.contains(gpu));
                by_uuid.extend(named.map(|(gpu, uuid)| (gpu, uuid, *start)));
            }
        }
        let asks = self.due_once("starts", asks);
        let mut found = index::latest(self.connection, "i", &asks).await?;
        let seen: BTreeSet<(&str, i64)> =
            found.iter().map(|entry| (entry.subject.as_str(), entry.asked_us)).collect();
        let unseen: BTreeSet<String> = asks
            .iter()
            .filter(|(subject, at)| !seen.contains(&(subject.as_str(), *at)))
            .map(|(subject, _)| subject.clone())
            .collect();
        let first = unseen.into_iter().map(|subject| (subject, i64::MIN)).collect();
        let first = self.due_once("first sightings", first);
        found.extend(index::next(self.connection, "i", &first).await?);
        self.fetch_inventories(&found).await?;
        for (gpu, uuid, start) in by_uuid {
            self.read_back_to(&gpu, &uuid, start).await?;
        }
        Ok(())
    }

    /// Reads back from a start to the latest inventory that names a MIG instance.
    async fn read_back_to(&mut self, gpu: &GpuId, uuid: &str, start: Instant) -> Result<(), BooksError> {
        let subject = format!("gpu:{gpu}");
        if self.due_once("instances", vec![(format!("{subject}/{uuid}"), start.as_micros())]).is_empty() {
            return Ok(());
        }
        let mut until = start.plus(1);
        loop {
            let found =
                index::latest_before(self.connection, &subject, until.as_micros(), BACK_AT_ONCE).await?;
            let Some(earliest) = found.iter().map(|entry| entry.at_us).min() else { return Ok(()) };
            self.fetch_inventories(&found).await?;
            let lists = |fact: &Arc<Fact>| match &fact.body {
                FactBody::Inventory(inventory) => inventory
                    .gpus
                    .iter()
                    .any(|listed| listed.gpu == *gpu && listed.instances.iter().any(|i| i.uuid == uuid)),
                _ => false,
            };
            if found.iter().filter_map(|entry| self.read.get(&entry.fact_seq)).any(lists) {
                return Ok(());
            }
            until = Instant::from_micros(earliest);
        }
    }
}

/// Of each subject the earliest instant.
fn earliest(asks: Vec<Asked>) -> Vec<Asked> {
    let mut earliest: BTreeMap<String, i64> = BTreeMap::new();
    for (subject, from) in asks {
        let standing = earliest.entry(subject).or_insert(from);
        *standing = from.min(*standing);
    }
    earliest.into_iter().collect()
}

/// What a scrub's begin and end are found by.
pub(super) fn subject_of_scrub(gpu: &GpuId, scrub: &ScrubId) -> String {
    scrub_subject(gpu.as_str(), scrub.as_str())
}
