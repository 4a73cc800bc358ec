//! Who stands at the values of `--dcgm-names`.

use crate::metrics::Holder;
use crate::placed::{NodeDevice, sole_holders};
use crate::pods::Listing;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Notices when holders have to be looked for anew: pods and layouts change seldom, and cycles come each second.
#[derive(Debug, Default)]
pub(super) struct Labels {
    listing: Option<Arc<Listing>>,
    is_layout_new: bool,
}

impl Labels {
    /// A GPU came, or its instances changed.
    pub(super) fn changed(&mut self) {
        self.is_layout_new = true;
    }

    /// The holders by the listing, if they may be others than before.
    pub(super) fn take(
        &mut self,
        listing: Option<&Arc<Listing>>,
        devices: &[NodeDevice<'_>],
    ) -> Option<BTreeMap<(String, Option<u32>), Holder>> {
        let listing = listing?;
        let is_listing_old = self.listing.as_ref().is_some_and(|before| before.pods == listing.pods);
        if is_listing_old && !self.is_layout_new {
            return None;
        }
        self.listing = Some(Arc::clone(listing));
        self.is_layout_new = false;
        Some(sole_holders(listing, devices))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::clock::Stamp;
    use crate::pods::{DeviceId, Given, Life, Pod};
    use gpuledger_domain::time::Instant;
    use gpuledger_nvml::Identity;

    /// GPU-1 was given to this pod.
    pub(in crate::run) fn listing(pod: &str) -> Arc<Listing> {
        let given = Given {
            container: "main".to_owned(),
            resource: "nvidia.com/gpu".to_owned(),
            text: "GPU-1".to_owned(),
            id: DeviceId::of_plugin("GPU-1"),
        };
        let pod = Pod { name: format!("ml/{pod}"), uid: None, life: Life::Untold, given: vec![given] };
        let asked = Stamp { monotonic_us: 0, real: Instant::from_micros(0) };
        Arc::new(Listing { asked, pods: vec![pod], replicas: None })
    }

    #[test]
    fn holders_are_looked_for_when_pods_or_layout_changed_and_not_else() {
        let identity = Identity {
            uuid: "GPU-1".to_owned(),
            index: 0,
            name: String::new(),
            pci_bus_id: String::new(),
            minor: None,
            compute_capability: None,
        };
        let devices = [NodeDevice { identity: &identity, instances: &[] }];
        let mut labels = Labels::default();
        labels.changed();
        assert_eq!(labels.take(None, &devices), None, "nobody has said anything yet");
        let of = |holders: Option<BTreeMap<_, Holder>>| {
            holders.map(|holders| holders.into_values().map(|holder| holder.pod).collect::<Vec<_>>())
        };
        assert_eq!(of(labels.take(Some(&listing("a")), &devices)), Some(vec!["a".to_owned()]));
        assert_eq!(of(labels.take(Some(&listing("a")), &devices)), None, "the same pods, asked again");
        assert_eq!(of(labels.take(Some(&listing("b")), &devices)), Some(vec!["b".to_owned()]));
        labels.changed();
        assert_eq!(of(labels.take(Some(&listing("b")), &[])), Some(vec![]), "the GPU is gone");
    }
}
