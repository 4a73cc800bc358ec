//! What the kubelet gave, as units of the node.

use super::disagreement::Disagreement;
use super::holders::Holder;
use super::unit::{NodeDevice, Seen, Unit, Unresolved, resolve};
use crate::pods::{Device, Given, Life, Listing};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Instant;
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A holder with a unit and its share of it.
pub(super) type Held = (Holder, Unit, Option<Share>);

/// A device that was given and cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unplaceable {
    /// `NAMESPACE/NAME` of its pod.
    pub pod: String,
    /// Which resource.
    pub resource: String,
    /// Its id as it was given.
    pub device: String,
    /// Why not.
    pub why: Unresolved,
}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device `{}` ({}) of pod {} {}", self.device, self.resource, self.pod, self.why)
    }
}

/// A unit in the hand of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gift {
    pod: String,
    uid: Option<Name>,
    life: Life,
    unit: Unit,
    share: Option<Share>,
}

/// All that was given on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gifts {
    gifts: Vec<Gift>,
    pub(super) unplaceable: BTreeSet<Unplaceable>,
    /// Pods with a device that is not known here: nothing can be said against their processes. None among them: a pod without a UID.
    doubtful: BTreeSet<Option<Name>>,
}

impl Gifts {
    pub(super) fn of(listing: &Listing, node: &[NodeDevice<'_>]) -> Self {
        let mut gifts = Self::default();
        for pod in &listing.pods {
            let mut replicas: BTreeMap<Unit, BTreeSet<(&Device, Option<u32>)>> = BTreeMap::new();
            for given in &pod.given {
                match unit_of(given, node) {
                    Ok((unit, device, replica)) => {
                        replicas.entry(unit).or_default().insert((device, replica));
                    }
                    Err(why) => {
                        gifts.unplaceable.insert(unplaceable(&pod.name, given, why));
                        gifts.doubtful.insert(pod.uid.clone());
                    }
                }
            }
            gifts.gifts.extend(replicas.into_iter().map(|(unit, held)| Gift {
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                life: pod.life,
                share: share(&held, listing.replicas.as_ref()),
                unit,
            }));
        }
        gifts
    }

    /// Who holds what: the pods that still live, by their UIDs. A pod whose UID is not known here is the one whose processes are seen on
    /// its unit and which no other gift explains.
    pub(super) fn held(&self, seen: &[Seen<'_>]) -> Vec<Held> {
        let mut held = Vec::new();
        for gift in self.gifts.iter().filter(|gift| gift.life != Life::Ended) {
            match &gift.uid {
                Some(uid) => held.push((Holder::Pod(uid.clone()), gift.unit.clone(), gift.share)),
                None => held.extend(self.strangers_on(gift, seen)),
            }
        }
        held
    }

    fn strangers_on<'s>(&'s self, gift: &'s Gift, seen: &'s [Seen<'_>]) -> impl Iterator<Item = Held> + 's {
        let rivals = self.gifts.iter().filter(|other| other.uid.is_none() && other.unit == gift.unit);
        let share = rivals.into_iter().all(|other| other.share == gift.share).then_some(gift.share).flatten();
        let pods = seen.iter().filter(|seen| gift.unit.covers(&seen.unit)).filter_map(Seen::pod);
        let strangers = pods.filter(|pod| !self.gifts.iter().any(|other| other.uid.as_ref() == Some(pod)));
        strangers.map(move |pod| (Holder::Pod(pod.clone()), gift.unit.clone(), share))
    }

    /// What speaks against a process of a pod on a unit.
    pub(super) fn contradict(&self, now: Instant, seen: &Seen<'_>) -> Option<Disagreement> {
        let pod = seen.pod()?;
        let of_pod = |gift: &&Gift| gift.uid.as_ref() == Some(pod);
        let on_unit = |gift: &&Gift| gift.unit.covers(&seen.unit);
        let explained = self.gifts.iter().filter(on_unit).any(|gift| gift.uid.is_none() || of_pod(&gift));
        let has_name = self.gifts.iter().any(|gift| of_pod(&gift));
        let doubtful =
            self.doubtful.contains(&Some(pod.clone())) || (!has_name && self.doubtful.contains(&None));
        (!explained && !doubtful).then(|| Disagreement {
            since: now,
            process: seen.process,
            pod_uid: pod.clone(),
            container: seen.owner.container().cloned(),
            unit: seen.unit.clone(),
            given: self.gifts.iter().filter(of_pod).map(|gift| gift.unit.clone()).collect(),
            holders: self.gifts.iter().filter(on_unit).map(|gift| gift.pod.clone()).collect(),
        })
    }
}

fn unit_of<'g>(
    given: &'g Given,
    node: &[NodeDevice<'_>],
) -> Result<(Unit, &'g Device, Option<u32>), Unresolved> {
    let id = given.id.as_ref().ok_or(Unresolved::Form)?;
    Ok((resolve(&id.device, node)?, &id.device, id.replica))
}

fn unplaceable(pod: &str, given: &Given, why: Unresolved) -> Unplaceable {
    Unplaceable { pod: pod.to_owned(), resource: given.resource.clone(), device: given.text.clone(), why }
}

/// Replicas held, of all there are. None: it is no replica, or nobody says how many there are.
fn share(held: &BTreeSet<(&Device, Option<u32>)>, all: Option<&BTreeMap<Device, u32>>) -> Option<Share> {
    let replicas = held.iter().filter(|(_, replica)| replica.is_some()).count();
    let (device, _) = held.iter().find(|(_, replica)| replica.is_some())?;
    let all = i128::from(*all?.get(*device)?);
    let replicas = i128::try_from(replicas).ok()?;
    (replicas <= all).then(|| Share::new(replicas, all))
}
