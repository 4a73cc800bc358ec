//! Who holds which device: two independent witnesses become `allocation.placed`, or a disagreement.
//!
//! The kernel says by control groups which pod or job a process of a device belongs to ([`crate::process`]); the kubelet says which pod
//! it gave which device ([`crate::pods`]). A pod holds what the kubelet gave it, used or not; a process on a device that its pod was not
//! given is a [`Disagreement`] and places nothing. Where there is no kubelet, processes alone place pods, as they always do Slurm jobs.
//!
//! A share is said where a device is a replica of known number. Where it is not known nothing is said of it: the grant's share holds.

mod disagreement;
mod gift;
mod holders;
mod sole;
#[cfg(test)]
mod tests;
mod unit;

pub use disagreement::Disagreement;
pub use gift::Unplaceable;
pub use sole::sole_holders;
pub use unit::{Instance, NodeDevice, Sighting, Unit, Unresolved};

use crate::clock::Stamp;
use crate::pods::Listing;
use gift::Gifts;
use gpuledger_domain::time::Instant;
use gpuledger_wire::bodies::AllocationPlaced;
use gpuledger_wire::text::Name;
use holders::{Holder, Holders};
use std::collections::{BTreeMap, BTreeSet};
use unit::Seen;

/// How placements are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A device must be held this long before it is said, in microseconds: the devices of one job come one after another and shall be one
    /// fact, and the grant's time, by another clock, shall not be later than the placement's.
    pub settle_us: u64,
    /// Whether a Slurm job's number counts that only its process declares. Whoever may forge it lays his devices on another's account.
    pub trust_declared_jobs: bool,
}

impl Default for Rules {
    /// Three seconds; declared numbers do not count.
    fn default() -> Self {
        Self { settle_us: 3_000_000, trust_declared_jobs: false }
    }
}

/// A fact to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// When the holder held the devices: the event's time.
    pub at: Instant,
    /// What it holds.
    pub body: AllocationPlaced,
}

/// What one look at the node brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// New facts.
    pub placed: Vec<Placement>,
    /// New disagreements; those that last stand in [`Placer::disagreements`].
    pub disagreements: Vec<Disagreement>,
}

/// Joins the witnesses over time. It says each device of a holder once.
#[derive(Debug, Default)]
pub struct Placer {
    rules: Rules,
    holders: Holders,
    first_seen_us: BTreeMap<disagreement::Key, u64>,
    disagreements: BTreeMap<disagreement::Key, Disagreement>,
    unplaceable: BTreeSet<Unplaceable>,
}

impl Placer {
    /// Nothing was said yet.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Takes in what holds now: the devices of the node, all their processes, and the last listing there was. None: there never was one.
    pub fn observe(
        &mut self,
        now: Stamp,
        node: &[NodeDevice<'_>],
        sightings: &[Sighting<'_>],
        listing: Option<&Listing>,
    ) -> Outcome {
        let seen: Vec<Seen<'_>> = sightings.iter().filter_map(|sighting| sighting.on(node)).collect();
        let gifts = listing.map(|listing| Gifts::of(listing, node));
        self.note_unplaceable(gifts.as_ref());
        let disagreements = self.judge(now, &seen, listing, gifts.as_ref());
        for (holder, unit, share) in self.held(&seen, gifts.as_ref()) {
            self.holders.hold(now, holder, unit, share);
        }
        Outcome { placed: self.holders.due(now, self.rules.settle_us), disagreements }
    }

    /// Disagreements that last, by process.
    pub fn disagreements(&self) -> impl Iterator<Item = &Disagreement> {
        self.disagreements.values()
    }

    /// Devices of the kubelet's last listing that cannot be placed.
    pub fn unplaceable(&self) -> impl Iterator<Item = &Unplaceable> {
        self.unplaceable.iter()
    }

    fn held(&self, seen: &[Seen<'_>], gifts: Option<&Gifts>) -> Vec<gift::Held> {
        let jobs =
            seen.iter().filter_map(|seen| Some((Holder::Job(self.job(seen)?), seen.unit.clone(), None)));
        let pods = match gifts {
            Some(gifts) => gifts.held(seen),
            None => seen
                .iter()
                .filter_map(|s| Some((Holder::Pod(s.pod()?.clone()), s.unit.clone(), None)))
                .collect(),
        };
        jobs.chain(pods).collect()
    }

    /// The job that a process works for. The step's daemon opens devices only to hand them out.
    fn job(&self, seen: &Seen<'_>) -> Option<Name> {
        let job = seen.owner.belonging()?.slurm.as_ref().filter(|job| !job.is_daemon)?;
        let number =
            if self.rules.trust_declared_jobs { job.name.number() } else { job.name.proven_number() };
        number.cloned()
    }

    fn judge(
        &mut self,
        now: Stamp,
        seen: &[Seen<'_>],
        listing: Option<&Listing>,
        gifts: Option<&Gifts>,
    ) -> Vec<Disagreement> {
        let before = std::mem::take(&mut self.first_seen_us);
        let mut lasting = BTreeMap::new();
        for seen in seen {
            let key = seen.key();
            let first_us = before.get(&key).copied().unwrap_or(now.monotonic_us);
            self.first_seen_us.insert(key.clone(), first_us);
            // A listing that was asked for before the process came need not have its pod.
            let told = listing.is_some_and(|listing| listing.asked.monotonic_us >= first_us);
            let fresh = gifts.filter(|_| told).and_then(|gifts| gifts.contradict(now.real, seen));
            let standing = self.disagreements.get(&key);
            let lasts =
                if told { fresh.map(|fresh| standing.cloned().unwrap_or(fresh)) } else { standing.cloned() };
            lasting.extend(lasts.map(|disagreement| (key, disagreement)));
        }
        self.replace_disagreements(lasting)
    }

    fn replace_disagreements(
        &mut self,
        lasting: BTreeMap<disagreement::Key, Disagreement>,
    ) -> Vec<Disagreement> {
        let before = std::mem::replace(&mut self.disagreements, lasting);
        let fresh = self.disagreements.iter().filter(|(key, _)| !before.contains_key(key));
        let fresh: Vec<Disagreement> = fresh.map(|(_, disagreement)| disagreement.clone()).collect();
        for disagreement in &fresh {
            tracing::warn!(pod = %disagreement.pod_uid, pid = disagreement.process.pid, "{disagreement}");
        }
        for (_, over) in before.iter().filter(|(key, _)| !self.disagreements.contains_key(key)) {
            tracing::info!(pod = %over.pod_uid, pid = over.process.pid, "over: {over}");
        }
        fresh
    }

    fn note_unplaceable(&mut self, gifts: Option<&Gifts>) {
        let found = gifts.map(|gifts| gifts.unplaceable.clone()).unwrap_or_default();
        for unplaceable in found.difference(&self.unplaceable) {
            tracing::warn!(pod = unplaceable.pod, "{unplaceable}");
        }
        self.unplaceable = found;
    }
}
