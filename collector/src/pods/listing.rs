//! What the kubelet said, with what the node knows beside it.

use super::device::{Device, DeviceId};
use super::kubelet::{Answer, v1};
use super::names::Uids;
use crate::clock::Stamp;
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The vendor's resources and drivers; other devices (network cards) are none of our business.
const VENDOR: &str = "nvidia.com";

/// The pods of a node with the devices they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// When it was asked for: what began later need not be in it.
    pub asked: Stamp,
    /// Each pod that was given a device, finished ones too.
    pub pods: Vec<Pod>,
    /// How many replicas each shared device has. None: the kubelet does not tell.
    pub replicas: Option<BTreeMap<Device, u32>>,
}

/// A pod that was given devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Its UID, where the node tells it.
    pub uid: Option<Name>,
    /// Whether it still lives.
    pub life: Life,
    /// Its devices.
    pub given: Vec<Given>,
}

/// Whether a listed pod still lives: the kubelet lists finished pods until they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has a control group.
    Alive,
    /// It has none any more.
    Ended,
    /// Nobody can tell.
    Untold,
}

/// A device that a container was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Name of the container in the pod.
    pub container: String,
    /// `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`, or the driver and claim.
    pub resource: String,
    /// The id as it was given.
    pub text: String,
    /// The same, read. None: a form that is not known.
    pub id: Option<DeviceId>,
}

impl Listing {
    pub(super) fn new(asked: Stamp, answer: Answer, uids: &Uids, alive: Option<&BTreeSet<Name>>) -> Self {
        let pods = answer.pods.into_iter().filter_map(|pod| Pod::new(pod, uids, alive)).collect();
        Self { asked, pods, replicas: answer.allocatable.map(|devices| replicas(&devices)) }
    }
}

impl Pod {
    fn new(pod: v1::PodResources, uids: &Uids, alive: Option<&BTreeSet<Name>>) -> Option<Self> {
        let given: Vec<Given> = pod.containers.iter().flat_map(Given::of).collect();
        if given.is_empty() {
            return None;
        }
        let uid = uids.get(&(pod.namespace.clone(), pod.name.clone())).cloned();
        let life = match (&uid, alive) {
            (Some(uid), Some(alive)) if alive.contains(uid) => Life::Alive,
            (Some(_), Some(_)) => Life::Ended,
            _ => Life::Untold,
        };
        Some(Self { name: format!("{}/{}", pod.namespace, pod.name), uid, life, given })
    }
}

impl Given {
    fn of(container: &v1::ContainerResources) -> Vec<Self> {
        let plugins =
            container.devices.iter().filter(|devices| is_gpu(&devices.resource_name)).flat_map(|devices| {
                devices.device_ids.iter().map(|id| Self {
                    container: container.name.clone(),
                    resource: devices.resource_name.clone(),
                    text: id.clone(),
                    id: DeviceId::of_plugin(id),
                })
            });
        let claims = container.dynamic_resources.iter().flat_map(|claim| {
            let devices = claim.claim_resources.iter().filter(|device| is_gpu_driver(&device.driver_name));
            devices.map(|device| Self {
                container: container.name.clone(),
                resource: format!("{} {}/{}", device.driver_name, claim.claim_namespace, claim.claim_name),
                text: device.device_name.clone(),
                id: DeviceId::of_claim(&device.device_name),
            })
        });
        plugins.chain(claims).collect()
    }
}

/// `nvidia.com/gpu`, `nvidia.com/gpu.shared`, `nvidia.com/mig-1g.10gb`, `nvidia.com/mig-1g.10gb.shared`.
fn is_gpu(resource: &str) -> bool {
    let kind = resource.strip_prefix(VENDOR).and_then(|rest| rest.strip_prefix('/'));
    kind.is_some_and(|kind| kind == "gpu" || kind == "gpu.shared" || kind.starts_with("mig-"))
}

/// `gpu.nvidia.com`, and not `compute-domain.nvidia.com`, whose devices are channels.
fn is_gpu_driver(driver: &str) -> bool {
    driver.strip_suffix(VENDOR) == Some("gpu.")
}

fn replicas(devices: &[v1::ContainerDevices]) -> BTreeMap<Device, u32> {
    let ids = devices
        .iter()
        .filter(|devices| is_gpu(&devices.resource_name))
        .flat_map(|devices| &devices.device_ids);
    // The kubelet lists a device once for each NUMA node it lies on.
    let ids: BTreeSet<DeviceId> = ids.filter_map(|id| DeviceId::of_plugin(id)).collect();
    let mut counts = BTreeMap::new();
    for id in ids.into_iter().filter(|id| id.replica.is_some()) {
        *counts.entry(id.device).or_insert(0) += 1;
    }
    counts
}
