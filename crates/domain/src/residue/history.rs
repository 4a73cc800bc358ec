//! What the memory slices of each GPU went through, from facts: holds, scrubs, and what makes their content unknown.

use super::slices::Slices;
use crate::fact::{Fact, FactBody, Inventory, Placement, ReadBack, ScrubEvidence, ScrubResult};
use crate::ids::{AllocationId, GpuId, NodeId, ScrubId, TenantId};
use crate::time::Instant;
use std::collections::BTreeMap;

/// One unit's hold on slices of a GPU, contested or not: whoever was granted slices may have written there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// When it was granted.
    pub start: Instant,
    /// By which allocation.
    pub allocation: AllocationId,
    /// Which unit of it.
    pub unit: u32,
    /// On which GPU.
    pub gpu: GpuId,
    /// Which memory slices; none: the whole GPU.
    pub placement: Option<Placement>,
    /// Whether others may hold the identical unit too.
    pub shared: bool,
    /// When it ended, after the start.
    pub end: Instant,
    /// Whether only the horizon ends it.
    pub open: bool,
    /// Owners from their instant on, at least one; the first from the start.
    pub owners: Vec<(Instant, TenantId)>,
}

impl Hold {
    /// Who owns it at `at`, or did last. None only where it has no owner at all.
    pub fn owner(&self, at: Instant) -> Option<&TenantId> {
        let upto = self.owners.partition_point(|(since, _)| *since <= at);
        self.owners.get(upto.saturating_sub(1)).map(|(_, tenant)| tenant)
    }

    /// Whose data it left: the last owner's.
    pub fn last_owner(&self) -> Option<&TenantId> {
        self.owner(self.end.plus(-1))
    }
}

/// A scrub that ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scrub {
    /// When it ended.
    pub finished_at: Instant,
    /// When it began.
    pub started_at: Instant,
    /// The scrubber's name of it.
    pub scrub: ScrubId,
    /// Which slices.
    pub slices: Slices,
    /// What it says of its result.
    pub evidence: ScrubEvidence,
}

impl Scrub {
    /// Whether it passed and is believed.
    pub fn is_verified(&self) -> bool {
        let ScrubEvidence {
            result,
            read_back,
            bytes_read,
            mismatches,
            bytes_total,
            bytes_covered,
            bytes_reserved,
        } = self.evidence;
        result == ScrubResult::Passed
            && matches!(read_back, ReadBack::Full | ReadBack::Sampled)
            && bytes_read > 0
            && mismatches == 0
            && bytes_covered.checked_add(bytes_reserved) == Some(bytes_total)
    }

    /// Whether it was left out on purpose.
    pub fn is_skipped(&self) -> bool {
        self.evidence.result == ScrubResult::Skipped
    }

    /// Whether it leaves its slices dirty: failed, broken off, or passed without the evidence of it.
    pub fn dirties(&self) -> bool {
        !self.is_verified() && !self.is_skipped()
    }
}

/// Why nobody knows what is in a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its node booted, which reloads the driver.
    Boot,
    /// It came from another node.
    Moved,
    /// Its node did not list it, or it was taken out, and it came back.
    Returned,
}

impl Cause {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Boot => "its node booted",
            Self::Moved => "it came from another node",
            Self::Returned => "it had been away",
        }
    }
}

/// An instant from which on nobody knows what is in a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// When it was seen.
    pub at: Instant,
    /// Why.
    pub cause: Cause,
}

/// A named person let slices out of quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifted {
    /// When.
    pub at: Instant,
    /// Which.
    pub slices: Slices,
}

/// What one GPU's slices went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Which GPU.
    pub gpu: GpuId,
    /// The node it is on.
    pub node: NodeId,
    /// Its NVML name.
    pub model: String,
    /// How many memory slices it has.
    pub memory_slices: u8,
    /// The earliest fact about it.
    pub first: Instant,
    /// Everything that happened from then on is known; [`Instant::MIN`] where everything is.
    pub known_from: Instant,
    /// In the order in which units take slices.
    pub holds: Vec<Hold>,
    /// In order of their end.
    pub scrubs: Vec<Scrub>,
    /// When scrubs began, whether they ended yet or not, and of which slices; in order of time.
    pub begun: Vec<(Instant, Slices)>,
    /// In order of time.
    pub unknowns: Vec<Unknown>,
    /// In order of time.
    pub lifted: Vec<Lifted>,
}

impl History {
    /// All slices of the GPU.
    pub fn all(&self) -> Slices {
        Slices::of(None, self.memory_slices)
    }

    /// The slices of a placement on this GPU.
    pub fn slices(&self, placement: Option<Placement>) -> Slices {
        Slices::of(placement, self.memory_slices)
    }
}

/// What an inventory last said of a GPU, while facts are read in order.
struct Sight<'f> {
    node: &'f NodeId,
    boot_id: &'f str,
    /// Not listed by its node since, or taken out.
    away: bool,
}

/// What each GPU went through that an inventory names, up to `as_of`. `holds` are those of [`crate::attribution::holds`] from the same facts. The order in
/// which facts are given, and how often, changes nothing.
pub fn histories<'f>(
    facts: impl IntoIterator<Item = &'f Fact>,
    holds: Vec<Hold>,
    as_of: Instant,
) -> BTreeMap<GpuId, History> {
    let facts: BTreeMap<(Instant, u8, &str, &str), &Fact> = facts
        .into_iter()
        .filter(|fact| fact.at <= as_of)
        .map(|fact| ((fact.at, taken_out(fact), fact.source.as_str(), fact.id.as_str()), fact))
        .collect();
    let mut reading = Gathering::default();
    facts.values().for_each(|fact| reading.sight(fact));
    facts.values().for_each(|fact| reading.scrub(fact));
    for hold in holds {
        if let Some(history) = reading.histories.get_mut(&hold.gpu).filter(|_| hold.end > hold.start) {
            history.holds.push(hold);
        }
    }
    for history in reading.histories.values_mut() {
        history.holds.sort();
        history.scrubs.sort();
        history.begun.sort();
        history.lifted.sort();
    }
    reading.histories
}

/// Taking out comes last of equal times.
fn taken_out(fact: &Fact) -> u8 {
    u8::from(matches!(fact.body, FactBody::GpuDecommissioned(_) | FactBody::NodeDecommissioned(_)))
}

#[derive(Default)]
struct Gathering<'f> {
    histories: BTreeMap<GpuId, History>,
    sights: BTreeMap<&'f GpuId, Sight<'f>>,
    /// The earliest fact about a GPU that no inventory has named yet.
    firsts: BTreeMap<&'f GpuId, Instant>,
}

impl<'f> Gathering<'f> {
    fn sight(&mut self, fact: &'f Fact) {
        for gpu in fact.body.gpus() {
            self.firsts.entry(gpu).or_insert(fact.at);
        }
        match &fact.body {
            FactBody::Inventory(inventory) => self.inventory(fact.at, inventory),
            FactBody::GpuDecommissioned(gpu) => self.away(|seen, _| seen == gpu),
            FactBody::NodeDecommissioned(node) => self.away(|_, sight| sight.node == node),
            _ => {}
        }
    }

    fn inventory(&mut self, at: Instant, inventory: &'f Inventory) {
        let listed = |gpu: &GpuId| inventory.gpus.iter().any(|listed| listed.gpu == *gpu);
        self.away(|gpu, sight| *sight.node == inventory.node && !listed(gpu));
        for listed in &inventory.gpus {
            let now = Sight { node: &inventory.node, boot_id: &inventory.boot_id, away: false };
            let cause = self.sights.get(&listed.gpu).and_then(|before| cause(before, &now));
            self.sights.insert(&listed.gpu, now);
            let first = self.firsts.get(&listed.gpu).copied().unwrap_or(at);
            let history = self.histories.entry(listed.gpu.clone()).or_insert_with(|| History {
                gpu: listed.gpu.clone(),
                node: inventory.node.clone(),
                model: String::new(),
                memory_slices: 0,
                first,
                known_from: Instant::MIN,
                holds: Vec::new(),
                scrubs: Vec::new(),
                begun: Vec::new(),
                unknowns: Vec::new(),
                lifted: Vec::new(),
            });
            // The later inventory knew better, for all its time.
            history.node = inventory.node.clone();
            history.model.clone_from(&listed.model);
            history.memory_slices = listed.memory_slices;
            history.unknowns.extend(cause.map(|cause| Unknown { at, cause }));
        }
    }

    fn away(&mut self, is_away: impl Fn(&GpuId, &Sight<'f>) -> bool) {
        for (gpu, sight) in &mut self.sights {
            sight.away |= is_away(gpu, sight);
        }
    }

    fn scrub(&mut self, fact: &Fact) {
        match &fact.body {
            FactBody::ScrubFinished { scrub, gpu, placement, started_at, evidence } => {
                let Some(history) = self.histories.get_mut(gpu) else { return };
                history.begun.push((*started_at, history.slices(*placement)));
                history.scrubs.push(Scrub {
                    finished_at: fact.at,
                    started_at: *started_at,
                    scrub: scrub.clone(),
                    slices: Slices::of(*placement, history.memory_slices),
                    evidence: *evidence,
                });
            }
            FactBody::ScrubStarted { gpu, placement, .. } => {
                let Some(history) = self.histories.get_mut(gpu) else { return };
                history.begun.push((fact.at, history.slices(*placement)));
            }
            FactBody::QuarantineReleased { gpu, placement } => {
                let Some(history) = self.histories.get_mut(gpu) else { return };
                let slices = Slices::of(*placement, history.memory_slices);
                history.lifted.push(Lifted { at: fact.at, slices });
            }
            _ => {}
        }
    }
}

/// Why a GPU's content is unknown at the second of two sights in a row.
fn cause(before: &Sight<'_>, now: &Sight<'_>) -> Option<Cause> {
    match () {
        () if before.node != now.node => Some(Cause::Moved),
        () if before.boot_id != now.boot_id => Some(Cause::Boot),
        () if before.away => Some(Cause::Returned),
        () => None,
    }
}
