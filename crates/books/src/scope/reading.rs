//! Reading: what acts on some GPUs from their floors on, and what is carried over them.
//!
//! Around the GPUs that are asked for lie the nodes they were ever on, and all GPUs of those: what an allocator says of a neighbour proves that
//! the node lived. Proofs are read from as long before a floor as a silence can be that still matters there.

use super::floors::floor_before;
use super::places::Places;
use super::{Known, News};
use crate::Terms;
use crate::error::BooksError;
use crate::facts::proof;
use crate::known::KnownFacts;
use gpuledger_domain::fact::{Fact, FactBody, Settings};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, Source};
use gpuledger_domain::time::{CELL_US, Instant};
use gpuledger_storage::index::{self, Asked, Entry};
use gpuledger_storage::{PgConnection, Tx, alive, reach};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All kinds of facts that name an allocation by its id.
pub(super) const OF_ALLOCATIONS: &str = "gprta";

/// Facts read so far.
pub(super) struct Reading<'c> {
    pub(super) connection: &'c mut PgConnection,
    known: Arc<KnownFacts>,
    patience_us: i64,
    now: Instant,
    pub(super) read: BTreeMap<i64, Arc<Fact>>,
    pub(super) places: Places,
    /// Snapshots with those allocations only that were read.
    pub(super) narrowed: BTreeMap<i64, Arc<Fact>>,
    /// Open allocations of sources of new snapshots.
    pub(super) open_of: BTreeMap<Source, Vec<String>>,
    /// From when on snapshots were read.
    pub(super) snapshots_from: Option<Instant>,
    /// Since when snapshots name allocations, as far as that was asked for.
    firsts: BTreeMap<String, Instant>,
    contents: BTreeMap<Vec<u8>, FactBody>,
    alive: BTreeMap<NodeId, Vec<Arc<Fact>>>,
    /// What was asked for, by what and whom, from when on.
    asked: BTreeMap<(&'static str, String), i64>,
    asked_once: BTreeSet<(&'static str, String, i64)>,
    /// From when on each GPU around was read.
    around: BTreeMap<GpuId, Instant>,
    homes: BTreeMap<GpuId, BTreeSet<NodeId>>,
}

impl<'c> Reading<'c> {
    pub(super) fn new(tx: &'c mut Tx, settings: Settings, now: Instant) -> Self {
        Self {
            known: tx.memory().of(),
            connection: tx,
            patience_us: settings.lease_us.max(settings.observation_gap_us),
            now,
            read: BTreeMap::new(),
            places: Places::default(),
            narrowed: BTreeMap::new(),
            open_of: BTreeMap::new(),
            snapshots_from: None,
            firsts: BTreeMap::new(),
            contents: BTreeMap::new(),
            alive: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_once: BTreeSet::new(),
            around: BTreeMap::new(),
            homes: BTreeMap::new(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Takes facts that need not be read.
    pub(super) fn take(&mut self, facts: &BTreeMap<i64, Arc<Fact>>) {
        for (seq, fact) in facts {
            self.add(*seq, Arc::clone(fact));
        }
    }

    fn add(&mut self, seq: i64, fact: Arc<Fact>) {
        self.places.note(&fact);
        self.read.insert(seq, fact);
    }

    /// Every GPU an allocation may stand on.
    pub(super) fn gpus_of(&self, allocation: &str) -> BTreeSet<GpuId> {
        self.places.gpus_of(allocation)
    }

    /// Nodes a GPU around was ever on.
    pub(super) fn homes_of(&self, gpu: &GpuId) -> Option<&BTreeSet<NodeId>> {
        self.homes.get(gpu)
    }

    /// From when on proofs on this GPU matter; none: it is not around.
    pub(super) fn reads_from(&self, gpu: &GpuId) -> Option<Instant> {
        self.around.get(gpu).copied()
    }

    /// GPUs around that were ever on a node.
    pub(super) fn gpus_on(&self, node: &str) -> impl Iterator<Item = &GpuId> {
        let node = NodeId::new(node);
        self.homes.iter().filter(move |(_, homes)| homes.contains(&node)).map(|(gpu, _)| gpu)
    }

    /// The earliest instant from which on anything around was read.
    pub(super) fn earliest_read(&self) -> Option<Instant> {
        self.around.values().min().copied()
    }

    /// Since when an allocation is named, by facts or snapshots.
    pub(super) fn first_named(&self, allocation: &str) -> Option<Instant> {
        let own = self.places.allocations.get(allocation).and_then(|named| named.first);
        own.into_iter().chain(self.firsts.get(allocation).copied()).min()
    }

    /// Learns since when these allocations are named by snapshots that may not have been read.
    pub(super) async fn learn_firsts(
        &mut self,
        allocations: &BTreeSet<AllocationId>,
    ) -> Result<(), BooksError> {
        let subjects: Vec<String> = allocations.iter().map(|id| format!("alloc:{id}")).collect();
        let asks = self.due("first named", subjects.into_iter().map(|subject| (subject, i64::MIN)).collect());
        let subjects: Vec<String> = asks.into_iter().map(|(subject, _)| subject).collect();
        for (subject, first_us) in reach::firsts(self.connection, &subjects).await? {
            if let Some(id) = subject.strip_prefix("alloc:") {
                self.firsts.insert(id.to_owned(), Instant::from_micros(first_us));
            }
        }
        Ok(())
    }

    /// Facts as attribution wants them.
    pub(super) fn facts(&self) -> Vec<Known<'_>> {
        let stored = self
            .read
            .iter()
            .map(|(seq, fact)| Known { seq: Some(*seq), fact: self.narrowed.get(seq).unwrap_or(fact) });
        let heard = self.alive.values().flatten().map(|fact| Known { seq: None, fact });
        stored.chain(heard).collect()
    }

    /// All facts, and all subjects that were asked for.
    pub(super) fn finish(self) -> (Vec<Arc<Fact>>, BTreeSet<String>) {
        let Self { read, mut narrowed, alive, asked, .. } = self;
        let stored = read.into_iter().map(|(seq, fact)| narrowed.remove(&seq).unwrap_or(fact));
        let facts = stored.chain(alive.into_values().flatten()).collect();
        (facts, asked.into_keys().map(|(_, subject)| subject).collect())
    }

    /// Reads what acts on these GPUs from their floors on.
    pub(super) async fn read_around(
        &mut self,
        floors: &BTreeMap<GpuId, Instant>,
        heard: &BTreeMap<NodeId, Instant>,
    ) -> Result<(), BooksError> {
        let nodes = self.lay_out(floors, heard).await?;
        self.read_devices(&nodes).await?;
        self.read_states().await?;
        self.read_decommissions(&nodes).await?;
        self.read_carried().await?;
        self.follow().await?;
        self.read_starts().await?;
        self.read_alive(&nodes).await?;
        self.read_snapshots().await?;
        self.narrow_snapshots();
        Ok(())
    }

    /// Which nodes and GPUs lie around, and from when on each is read.
    async fn lay_out(
        &mut self,
        floors: &BTreeMap<GpuId, Instant>,
        heard: &BTreeMap<NodeId, Instant>,
    ) -> Result<BTreeMap<NodeId, Instant>, BooksError> {
        let mut nodes: BTreeMap<NodeId, Instant> = BTreeMap::new();
        let mut lower = |node: NodeId, to: Instant| {
            let standing = nodes.entry(node).or_insert(to);
            *standing = to.min(*standing);
        };
        let patience_us = self.patience_us;
        let names: Vec<String> = floors.keys().map(ToString::to_string).collect();
        for (gpu, node) in index::homes(self.connection, &names).await? {
            let floor = floors.get(&GpuId::new(&gpu)).copied().unwrap_or(self.now);
            lower(NodeId::new(&node), floor.plus(-patience_us));
        }
        for (node, from) in heard {
            lower(node.clone(), floor_before(*from).plus(-patience_us));
        }
        let names: Vec<String> = nodes.keys().map(ToString::to_string).collect();
        let mut around: BTreeMap<GpuId, Instant> =
            floors.iter().map(|(gpu, floor)| (gpu.clone(), floor.plus(-patience_us))).collect();
        for (gpu, node) in index::gpus_on(self.connection, &names).await? {
            let from = nodes.get(&NodeId::new(&node)).copied().unwrap_or(self.now);
            let gpu = GpuId::new(&gpu);
            self.homes.entry(gpu.clone()).or_default().insert(NodeId::new(&node));
            let standing = around.entry(gpu).or_insert(from);
            *standing = from.min(*standing);
        }
        self.around = around;
        Ok(nodes)
    }

    fn gpus_around(&self) -> Vec<Asked> {
        self.around.iter().map(|(gpu, from)| (format!("gpu:{gpu}"), from.as_micros())).collect()
    }

    /// Inventories: the latest before, and all from then on, of each GPU and node.
    async fn read_devices(&mut self, nodes: &BTreeMap<NodeId, Instant>) -> Result<(), BooksError> {
        let mut asks = self.gpus_around();
        asks.extend(nodes.iter().map(|(node, from)| (format!("node:{node}"), from.as_micros())));
        let since = self.due("inventories", asks.clone());
        let mut found = index::since(self.connection, "i", &since).await?;
        let before = index::latest(self.connection, "i", &since).await?;
        let seen: BTreeSet<&str> = before.iter().map(|entry| entry.subject.as_str()).collect();
        // A GPU that no inventory named before: its first fact begins its capacity, whatever it is.
        let unseen: Vec<Asked> = self
            .gpus_around()
            .into_iter()
            .filter(|(subject, _)| !seen.contains(subject.as_str()))
            .map(|(subject, _)| (subject, i64::MIN))
            .collect();
        let unseen = self.due_once("first facts", unseen);
        let first = index::next(self.connection, "i", &unseen).await?;
        found.extend(before.into_iter().chain(first));
        self.fetch_inventories(&found).await?;
        let first = index::next(self.connection, &index::kind::OF_GPUS.replace('i', ""), &unseen).await?;
        self.fetch(&first).await
    }

    /// States since the last time the whole GPU was said to work; scrubs, grants and placements from the floor on.
    async fn read_states(&mut self) -> Result<(), BooksError> {
        let asks = self.due("facts", self.gpus_around());
        let mut found = index::since(self.connection, "bfgpq", &asks).await?;
        let works: BTreeMap<String, i64> = index::latest(self.connection, "k", &asks)
            .await?
            .into_iter()
            .map(|entry| (entry.subject, entry.at_us))
            .collect();
        let since: Vec<Asked> = asks
            .into_iter()
            .map(|(subject, _)| {
                let from = works.get(&subject).copied().unwrap_or(i64::MIN);
                (subject, from)
            })
            .collect();
        found.extend(index::since(self.connection, "ks", &since).await?);
        self.fetch(&found).await
    }

    /// Ends of capacity, with the inventories before and after each.
    async fn read_decommissions(&mut self, nodes: &BTreeMap<NodeId, Instant>) -> Result<(), BooksError> {
        let gpus = self.gpus_around().into_iter().map(|(subject, _)| (subject, i64::MIN));
        let nodes = nodes.keys().map(|node| (format!("node:{node}"), i64::MIN));
        let asks = self.due("ends", gpus.chain(nodes).collect());
        let ends = index::since(self.connection, "d", &asks).await?;
        self.fetch(&ends).await?;
        let mut beside = Vec::new();
        for fact in self.read.values() {
            match &fact.body {
                FactBody::GpuDecommissioned(gpu) => beside.push((format!("gpu:{gpu}"), fact.at.as_micros())),
                FactBody::NodeDecommissioned(node) => {
                    let here = self.homes.iter().filter(|(_, homes)| homes.contains(node));
                    beside.extend(here.map(|(gpu, _)| (format!("gpu:{gpu}"), fact.at.as_micros())));
                }
                _ => {}
            }
        }
        let beside = self.due_once("beside ends", beside);
        let mut found = index::latest(self.connection, "i", &beside).await?;
        found.extend(index::next(self.connection, "i", &beside).await?);
        self.fetch_inventories(&found).await
    }

    /// Allocations and scrubs that matter at the floors or later.
    async fn read_carried(&mut self) -> Result<(), BooksError> {
        let asks = self.due("reach", self.gpus_around());
        let bare: Vec<Asked> = asks
            .into_iter()
            .filter_map(|(subject, from)| Some((subject.strip_prefix("gpu:")?.to_owned(), from)))
            .collect();
        let carried = reach::since(self.connection, &bare).await?;
        let (allocations, scrubs): (Vec<String>, Vec<String>) =
            carried.into_iter().partition(|subject| subject.starts_with("alloc:"));
        self.read_all("allocation", OF_ALLOCATIONS, allocations).await?;
        self.read_all("scrub", "bf", scrubs).await
    }

    /// All facts of these kinds about these subjects, whenever they happened.
    pub(super) async fn read_all(
        &mut self,
        what: &'static str,
        kinds: &str,
        subjects: Vec<String>,
    ) -> Result<(), BooksError> {
        let asks = self.due(what, subjects.into_iter().map(|subject| (subject, i64::MIN)).collect());
        let subjects: Vec<String> = asks.into_iter().map(|(subject, _)| subject).collect();
        let found = index::all(self.connection, kinds, &subjects).await?;
        self.fetch(&found).await
    }

    async fn read_alive(&mut self, nodes: &BTreeMap<NodeId, Instant>) -> Result<(), BooksError> {
        let asks = nodes.iter().map(|(node, from)| (format!("node:{node}"), from.as_micros())).collect();
        let mut by_time: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (subject, from) in self.due("heard", asks) {
            by_time.entry(from).or_default().extend(subject.strip_prefix("node:").map(str::to_owned));
        }
        for (from, nodes) in by_time {
            let heard = alive::load_since(self.connection, &nodes, from).await?;
            for node in &nodes {
                self.alive.insert(NodeId::new(node), Vec::new());
            }
            for one in &heard {
                self.alive.entry(NodeId::new(&one.node)).or_default().push(Arc::new(proof(one)));
            }
        }
        Ok(())
    }

    /// Those of `asks` that were not asked for from as early on.
    pub(super) fn due(&mut self, what: &'static str, asks: Vec<Asked>) -> Vec<Asked> {
        let mut due = Vec::new();
        for (subject, from) in asks {
            let key = (what, subject);
            if self.asked.get(&key).is_none_or(|before| from < *before) {
                self.asked.insert(key.clone(), from);
                due.push((key.1, from));
            }
        }
        due
    }

    /// Those of `asks` that were not asked for at just this instant.
    pub(super) fn due_once(&mut self, what: &'static str, asks: Vec<Asked>) -> Vec<Asked> {
        let mut due = Vec::new();
        for (subject, at) in asks {
            if self.asked_once.insert((what, subject.clone(), at)) {
                due.push((subject, at));
            }
        }
        due
    }

    /// Reads facts that are not known yet.
    pub(super) async fn fetch(&mut self, found: &[Entry]) -> Result<(), BooksError> {
        self.fetch_seqs(found.iter().map(|entry| entry.fact_seq).collect()).await
    }

    pub(super) async fn fetch_seqs(&mut self, mut seqs: BTreeSet<i64>) -> Result<(), BooksError> {
        seqs.retain(|seq| !self.read.contains_key(seq));
        for (seq, fact) in self.known.read(self.connection, seqs).await? {
            self.add(seq, fact);
        }
        Ok(())
    }

    /// Reads inventories that are not known yet; of those that say the same only one.
    pub(super) async fn fetch_inventories(&mut self, found: &[Entry]) -> Result<(), BooksError> {
        let mut seqs: BTreeSet<i64> =
            found.iter().map(|entry| entry.fact_seq).filter(|seq| !self.read.contains_key(seq)).collect();
        for (seq, fact) in self.known.take_from(&mut seqs) {
            self.add(seq, fact);
        }
        let heads = index::inventory_heads(self.connection, &seqs.into_iter().collect::<Vec<_>>()).await?;
        let mut first: BTreeMap<&[u8], i64> = BTreeMap::new();
        let mut bodies: BTreeSet<i64> = BTreeSet::new();
        for head in &heads {
            match head.content.as_deref() {
                Some(content) if self.contents.contains_key(content) => {}
                Some(content) => drop(first.entry(content).or_insert(head.seq)),
                None => drop(bodies.insert(head.seq)),
            }
        }
        bodies.extend(first.values());
        self.fetch_seqs(bodies).await?;
        for (content, seq) in first {
            if let Some(fact) = self.read.get(&seq) {
                self.contents.insert(content.to_vec(), fact.body.clone());
            }
        }
        for head in heads.iter().filter(|head| !self.read.contains_key(&head.seq)).collect::<Vec<_>>() {
            let body = head.content.as_ref().and_then(|content| self.contents.get(content)).cloned();
            if let Some(body) = body {
                let (source, at) = (Source::new(&head.source), Instant::from_micros(head.at_us));
                let fact = Arc::new(Fact { source, id: head.id.clone(), at, body });
                self.known.keep([(head.seq, &fact)]);
                self.add(head.seq, fact);
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// Facts the news lead to: all of the allocations they name, of those that share a job, pod or pool with them, and of those that a snapshot
    /// may end.
    pub(super) async fn follow_news(&mut self, news: &News, terms: &Terms) -> Result<(), BooksError> {
        let mut pools: BTreeMap<String, Instant> = BTreeMap::new();
        let mut named: BTreeSet<String> = news.allocations.iter().map(|id| format!("alloc:{id}")).collect();
        let mut sources = BTreeSet::new();
        for fact in news.facts.values() {
            match &fact.body {
                FactBody::Work(work) if terms.pools.contains_key(&work.pool) => {
                    let from = pools.entry(work.pool.clone()).or_insert(Instant::MAX);
                    // Its windows divide a cell: it weighs on whoever held in the cell it begins in.
                    *from = work.start.floor(CELL_US).min(*from);
                }
                FactBody::Snapshot { allocations, .. } => {
                    named.extend(allocations.iter().map(|allocation| format!("alloc:{allocation}")));
                    sources.insert(fact.source.clone());
                }
                _ => {}
            }
        }
        for (pool, from) in pools {
            let members = reach::members(self.connection, &[pool], from.as_micros()).await?;
            named.extend(members.into_iter().map(|(subject, _)| subject));
        }
        self.read_homes(news).await?;
        for source in sources {
            let open = reach::open_of(self.connection, &[source.to_string()]).await?;
            named.extend(open.iter().cloned());
            self.open_of.insert(source, open);
        }
        self.read_all("allocation", OF_ALLOCATIONS, named.into_iter().collect()).await?;
        self.follow().await
    }

    /// GPUs on the nodes that the news name.
    async fn read_homes(&mut self, news: &News) -> Result<(), BooksError> {
        let named = news.facts.values().filter_map(|fact| match &fact.body {
            FactBody::Inventory(inventory) => Some(&inventory.node),
            FactBody::NodeDecommissioned(node) => Some(node),
            _ => None,
        });
        let nodes: BTreeSet<String> = named.map(ToString::to_string).collect();
        for (gpu, node) in index::gpus_on(self.connection, &nodes.into_iter().collect::<Vec<_>>()).await? {
            self.homes.entry(GpuId::new(&gpu)).or_default().insert(NodeId::new(&node));
        }
        Ok(())
    }
}
