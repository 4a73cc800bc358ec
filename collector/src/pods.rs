//! Which pod was given which device: what the kubelet says of this node.
//!
//! The second, independent join beside the control groups of processes ([`crate::process`]). The kubelet's pod-resources API lists the pods
//! with their devices, finished ones too, and without UIDs; names become UIDs by the kubelet's log folders, and pods that still have a
//! control group are alive. A node without a kubelet is normal: there is no socket then.

mod alive;
mod device;
mod grpc;
mod kubelet;
mod listing;
mod names;
#[cfg(test)]
mod tests;
mod watch;

pub use device::{Claimed, Device, DeviceId};
pub use kubelet::{Kubelet, KubeletError};
pub use listing::{Given, Life, Listing, Pod};
pub use watch::{KubeletState, Watch};

use crate::clock::Stamp;
use std::path::PathBuf;
use std::time::Duration;

/// Where this node's pods are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// The kubelet.
    pub kubelet: Kubelet,
    /// Folder with a folder `NAMESPACE_NAME_UID` for each pod.
    pub logs: PathBuf,
    /// Root of the control groups.
    pub cgroups: PathBuf,
}

impl Default for Pods {
    /// The paths of Kubernetes and of Linux, and a second for the kubelet to answer in.
    fn default() -> Self {
        Self {
            kubelet: Kubelet {
                socket: PathBuf::from("/var/lib/kubelet/pod-resources/kubelet.sock"),
                deadline: Duration::from_secs(1),
            },
            logs: PathBuf::from("/var/log/pods"),
            cgroups: PathBuf::from("/sys/fs/cgroup"),
        }
    }
}

impl Pods {
    /// Asks for the pods and their devices. `now` is when it is asked.
    ///
    /// # Errors
    /// There is no kubelet, or it does not answer as it should within its deadline.
    pub fn list(&self, now: Stamp) -> Result<Listing, KubeletError> {
        let answer = self.kubelet.ask()?;
        // The UIDs and the living after the list, so that a pod that is new in the list is found there too.
        let uids = names::uids(&self.logs);
        let alive = alive::pods(&self.cgroups);
        Ok(Listing::new(now, answer, &uids, alive.as_ref()))
    }
}
