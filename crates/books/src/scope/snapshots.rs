//! Snapshots: from the floors on all of them prove that nodes lived; before them only the last that speaks of an open allocation matters.

use super::News;
use super::reading::Reading;
use crate::error::BooksError;
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::{AllocationId, NodeId, Source};
use gpuledger_domain::time::Instant;
use gpuledger_storage::index;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Snapshots read at once on the way back.
const BACK_AT_ONCE: i64 = 16;

/// Allocations that new snapshots name, with the first and the last instant at which they do.
pub(super) fn named(news: &News) -> BTreeMap<String, (i64, i64)> {
    let mut named: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for fact in news.facts.values() {
        if let FactBody::Snapshot { allocations, .. } = &fact.body {
            let at_us = fact.at.as_micros();
            for allocation in allocations {
                let times = named.entry(format!("alloc:{allocation}")).or_insert((at_us, at_us));
                *times = (at_us.min(times.0), at_us.max(times.1));
            }
        }
    }
    named
}

impl Reading<'_> {
    pub(super) async fn read_snapshots(&mut self) -> Result<(), BooksError> {
        // Units without a device have no floor: a snapshot ends them all the same.
        let from = self.earliest_read().unwrap_or(self.now().plus(1));
        if self.snapshots_from.is_none_or(|before| from < before) {
            let until = self.snapshots_from.unwrap_or(self.now().plus(1));
            let found = index::snapshots(self.connection, from.as_micros(), until.as_micros()).await?;
            self.fetch_seqs(found.into_iter().collect()).await?;
            self.snapshots_from = Some(from);
        }
        let mut waiting: BTreeMap<Source, BTreeMap<String, Instant>> = BTreeMap::new();
        for (id, named) in &self.places.allocations {
            let Some(last) = named.last.filter(|last| *last < from && !named.is_released(self.now())) else {
                continue;
            };
            for source in &named.sources {
                waiting.entry(source.clone()).or_default().insert(id.clone(), last);
            }
        }
        for (source, open) in waiting {
            self.read_back(&source, open, from).await?;
        }
        Ok(())
    }

    /// Reads a source's snapshots back from `before` until each open allocation (with the last fact that names it) was named, or lacked by one that
    /// speaks of all its units, or its own last fact is later.
    async fn read_back(
        &mut self,
        source: &Source,
        open: BTreeMap<String, Instant>,
        before: Instant,
    ) -> Result<(), BooksError> {
        let mut open = open;
        let mut before = before;
        while !open.is_empty() {
            let page =
                index::snapshots_before(self.connection, source.as_str(), before.as_micros(), BACK_AT_ONCE)
                    .await?;
            let Some((earliest, _)) = page.last().copied() else { return Ok(()) };
            self.fetch_seqs(page.iter().map(|(_, seq)| *seq).collect()).await?;
            for (at_us, seq) in page {
                let at = Instant::from_micros(at_us);
                open.retain(|_, last| *last <= at);
                let Some(FactBody::Snapshot { nodes, allocations }) =
                    self.read.get(&seq).map(|fact| &fact.body)
                else {
                    continue;
                };
                let listed: BTreeSet<&str> = allocations.iter().map(AllocationId::as_str).collect();
                open.retain(|id, _| {
                    !listed.contains(id.as_str()) && !self.speaks_of_all(nodes.as_deref(), id)
                });
            }
            before = Instant::from_micros(earliest);
        }
        Ok(())
    }

    /// Whether a snapshot of these nodes speaks of every unit of an allocation, wherever it may have been.
    fn speaks_of_all(&self, nodes: Option<&[NodeId]>, allocation: &str) -> bool {
        let Some(nodes) = nodes else { return true };
        let gpus = self.gpus_of(allocation);
        let covered = |homes: &BTreeSet<NodeId>| homes.iter().all(|home| nodes.contains(home));
        !gpus.is_empty() && gpus.iter().all(|gpu| self.homes_of(gpu).is_some_and(covered))
    }

    /// Leaves in each snapshot only allocations that were read: the others prove nothing here.
    pub(super) fn narrow_snapshots(&mut self) {
        let mut narrowed = BTreeMap::new();
        for (seq, fact) in &self.read {
            if let FactBody::Snapshot { nodes, allocations } = &fact.body {
                let read = |id: &&AllocationId| self.places.allocations.contains_key(id.as_str());
                let allocations = allocations.iter().filter(read).cloned().collect();
                let body = FactBody::Snapshot { nodes: nodes.clone(), allocations };
                narrowed.insert(
                    *seq,
                    Arc::new(Fact { source: fact.source.clone(), id: fact.id.clone(), at: fact.at, body }),
                );
            }
        }
        self.narrowed = narrowed;
    }
}
