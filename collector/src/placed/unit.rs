//! Units of a node: which one a name means, and on which one a process works.

use super::disagreement;
use crate::pods::{Claimed, Device};
use crate::process::{Owner, ProcessId};
use crate::topology::wire_placement;
use gpuledger_domain::share::Share;
use gpuledger_nvml::{Identity, MigInstance};
use gpuledger_wire::bodies::{MigUnit, PlacedUnit, Placement};
use gpuledger_wire::share::ShareText;
use gpuledger_wire::text::Name;
use std::fmt;

/// A device of the node as it is now.
#[derive(Clone, Copy, Debug)]
pub struct NodeDevice<'a> {
    /// Which.
    pub identity: &'a Identity,
    /// Its MIG instances; none with MIG off.
    pub instances: &'a [MigInstance],
}

/// A process seen on a device.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// UUID of the GPU.
    pub gpu: &'a str,
    /// Its GPU instance, under MIG.
    pub gpu_instance: Option<u32>,
    /// Its compute instance, under MIG.
    pub compute_instance: Option<u32>,
    /// Which process.
    pub process: ProcessId,
    /// Whose.
    pub owner: &'a Owner,
}

/// A whole GPU, or a MIG instance of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// UUID of the GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    pub instance: Option<Instance>,
}

/// A MIG instance. One that is made anew elsewhere under the same UUID is another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// Its UUID.
    pub uuid: Name,
    /// Its profile as in the inventory, where it can be read.
    pub profile: Option<Name>,
    /// Its memory slices, where they can be read.
    pub placement: Option<Placement>,
    /// Its part of its GPU instance, where that has several compute instances.
    pub part: Option<Share>,
}

/// Why a name means no unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unresolved {
    /// It is written in a form that is not known.
    Form,
    /// The node has no such device now.
    Missing,
    /// It may mean several.
    Ambiguous,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "is written in no known form",
            Self::Missing => "is no device of this node now",
            Self::Ambiguous => "may mean several devices of this node",
        })
    }
}

/// A process on a unit.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) unit: Unit,
    pub(super) process: ProcessId,
    pub(super) owner: &'a Owner,
}

impl Seen<'_> {
    pub(super) fn pod(&self) -> Option<&Name> {
        self.owner.pod_uid()
    }

    pub(super) fn key(&self) -> disagreement::Key {
        (self.process, self.unit.clone())
    }
}

impl<'a> Sighting<'a> {
    /// On which unit of the node. None: the node has no such device or instance (any more), or the row names none although MIG is on.
    pub(super) fn on(&self, node: &[NodeDevice<'_>]) -> Option<Seen<'a>> {
        let device = node.iter().find(|device| device.identity.uuid == self.gpu)?;
        let unit = match self.gpu_instance {
            None if device.instances.is_empty() => device.whole(),
            None => None,
            Some(gpu_instance) => only(device.instances.iter().filter(|i| {
                i.gpu_instance == gpu_instance
                    && self.compute_instance.is_none_or(|ci| ci == i.compute_instance)
            }))
            .ok()
            .and_then(|instance| device.part(instance)),
        };
        Some(Seen { unit: unit?, process: self.process, owner: self.owner })
    }
}

impl NodeDevice<'_> {
    fn whole(&self) -> Option<Unit> {
        Some(Unit { gpu: Name::new(&self.identity.uuid).ok()?, instance: None })
    }

    fn part(&self, mig: &MigInstance) -> Option<Unit> {
        let name = |text: &str| Name::new(text).ok();
        let profile = mig.profile.as_deref().ok();
        let instance = Instance {
            uuid: name(&mig.uuid)?,
            profile: mig.compute_profile.as_deref().or(profile).and_then(name),
            placement: mig.placement.ok().and_then(wire_placement),
            part: mig.compute_profile.as_deref().and_then(part_of),
        };
        Some(Unit { gpu: name(&self.identity.uuid)?, instance: Some(instance) })
    }
}

/// `1c.3g.40gb` is one of three compute slices.
fn part_of(profile: &str) -> Option<Share> {
    let (own, of) = profile.split_once("c.")?;
    let (all, _) = of.split_once('g')?;
    let (own, all): (i128, i128) = (own.parse().ok()?, all.parse().ok()?);
    (0 < own && own <= all).then(|| Share::new(own, all))
}

/// The unit that the kubelet's name means on this node.
pub(super) fn resolve(device: &Device, node: &[NodeDevice<'_>]) -> Result<Unit, Unresolved> {
    match device {
        Device::Gpu(uuid) => whole(find(node, |gpu| gpu.uuid == *uuid)?),
        Device::Mig(uuid) => instance(node, |_, mig| mig.uuid == *uuid),
        Device::Minor { minor, gpu_instance: None } => whole(find(node, |gpu| gpu.minor == Some(*minor))?),
        Device::Minor { minor, gpu_instance: Some(id) } => {
            instance(node, |gpu, mig| gpu.minor == Some(*minor) && mig.gpu_instance == *id)
        }
        Device::Index { gpu, mig: None } => whole(find(node, |identity| identity.index == *gpu)?),
        Device::Index { gpu, mig: Some(place) } => {
            instance(node, |identity, mig| identity.index == *gpu && mig.index == *place)
        }
        Device::Claimed(claimed) => resolve_claimed(claimed, node),
    }
}

fn resolve_claimed(claimed: &Claimed, node: &[NodeDevice<'_>]) -> Result<Unit, Unresolved> {
    match claimed {
        Claimed::Gpu(number) => whole(numbered(*number, node)?),
        Claimed::MigPlaced { gpu, start, size } => instance_of(numbered(*gpu, node)?, |mig| {
            mig.placement.is_ok_and(|at| (at.start, at.size) == (*start, *size))
        }),
        Claimed::MigNamed { gpu, profile, start } => instance_of(numbered(*gpu, node)?, |mig| {
            let same_profile = mig.profile.as_deref().is_ok_and(|named| is_written_as(named, profile));
            same_profile && mig.placement.is_ok_and(|at| at.start == *start)
        }),
    }
}

/// Newer drivers of claims count device files, older ones places in the list: where these differ nobody can tell which it is.
fn numbered<'n, 'd>(number: u32, node: &'n [NodeDevice<'d>]) -> Result<&'n NodeDevice<'d>, Unresolved> {
    let device = find(node, |gpu| gpu.minor == Some(number))?;
    if device.identity.index == number { Ok(device) } else { Err(Unresolved::Ambiguous) }
}

/// `1g.24gb+me` is written `1g24gb-me`.
fn is_written_as(profile: &str, written: &str) -> bool {
    profile.replace('.', "").replace('+', "-") == written
}

fn find<'n, 'd>(
    node: &'n [NodeDevice<'d>],
    is_it: impl Fn(&Identity) -> bool,
) -> Result<&'n NodeDevice<'d>, Unresolved> {
    only(node.iter().filter(|device| is_it(device.identity)))
}

fn instance(
    node: &[NodeDevice<'_>],
    is_it: impl Fn(&Identity, &MigInstance) -> bool,
) -> Result<Unit, Unresolved> {
    let all = node.iter().flat_map(|device| device.instances.iter().map(move |mig| (device, mig)));
    let (device, mig) = only(all.filter(|(device, mig)| is_it(device.identity, mig)))?;
    device.part(mig).ok_or(Unresolved::Form)
}

fn instance_of(device: &NodeDevice<'_>, is_it: impl Fn(&MigInstance) -> bool) -> Result<Unit, Unresolved> {
    device.part(only(device.instances.iter().filter(|mig| is_it(mig)))?).ok_or(Unresolved::Form)
}

fn whole(device: &NodeDevice<'_>) -> Result<Unit, Unresolved> {
    device.whole().ok_or(Unresolved::Form)
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Result<T, Unresolved> {
    let first = found.next().ok_or(Unresolved::Missing)?;
    if found.next().is_some() { Err(Unresolved::Ambiguous) } else { Ok(first) }
}

impl Unit {
    /// Whether the other unit is this one or lies in it.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.gpu == other.gpu && self.instance.as_ref().is_none_or(|own| other.instance.as_ref() == Some(own))
    }

    /// As it travels, with a share of it.
    pub(super) fn placed(&self, share: Option<Share>) -> PlacedUnit {
        let part = self.instance.as_ref().and_then(|instance| instance.part);
        let share = match (share, part) {
            (Some(share), Some(part)) => Some(share * part),
            (share, part) => share.or(part),
        };
        let mig = self.instance.as_ref().map(|instance| MigUnit {
            uuid: Some(instance.uuid.clone()),
            profile: instance.profile.clone(),
            placement: instance.placement,
        });
        PlacedUnit { gpu: self.gpu.clone(), mig, share: share.map(ShareText) }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.instance {
            None => f.write_str(&self.gpu),
            Some(instance) => write!(f, "{} of {}", instance.uuid, self.gpu),
        }
    }
}
