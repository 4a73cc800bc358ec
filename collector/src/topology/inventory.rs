//! `node.inventory`: what the node has, as the ledger wants it.

use super::slices::Slicing;
use super::tracker::Tracker;
use gpuledger_nvml::{Identity, MigInstance};
use gpuledger_wire::bodies::{InventoryGpu, InventoryInstance, NodeInventory, Placement};
use gpuledger_wire::number::{Count, SliceIndex, Slices};
use gpuledger_wire::text::Name;

/// The entry of one device. None: its name or slices cannot be told in an event.
pub fn inventory_gpu(
    identity: &Identity,
    slicing: Slicing,
    memory_bytes: Option<u64>,
    mig: bool,
    tracker: &Tracker,
) -> Option<InventoryGpu> {
    Some(InventoryGpu {
        uuid: Name::new(&identity.uuid).ok()?,
        index: Count::new(i64::from(identity.index)),
        model: Name::new(&identity.name).ok()?,
        memory_bytes: memory_bytes.and_then(|bytes| i64::try_from(bytes).ok()).and_then(Count::new),
        compute_slices: Slices::new(slicing.compute)?,
        memory_slices: Slices::new(slicing.memory)?,
        mig,
        state: None,
        instances: tracker.instances().flat_map(|instance| &instance.devices).filter_map(entry).collect(),
    })
}

/// The inventory of the node: every GPU once, in order of index.
pub fn inventory(node: Name, boot_id: Name, mut gpus: Vec<InventoryGpu>) -> NodeInventory {
    gpus.sort_by(|a, b| (a.index, &a.uuid).cmp(&(b.index, &b.uuid)));
    gpus.dedup_by(|a, b| a.uuid == b.uuid);
    NodeInventory { node, boot_id, gpus }
}

/// An instance whose profile cannot be read stands under `unknown`: it is there, and that is what an inventory says.
fn entry(device: &MigInstance) -> Option<InventoryInstance> {
    let profile = device.profile.as_deref().unwrap_or("unknown");
    Some(InventoryInstance {
        uuid: Name::new(&device.uuid).ok()?,
        profile: Name::new(device.compute_profile.as_deref().unwrap_or(profile)).ok()?,
        compute_slices: device.compute_slices.ok().and_then(|n| u8::try_from(n).ok()).and_then(Slices::new),
        gpu_instance_id: Count::new(i64::from(device.gpu_instance)),
        compute_instance_id: Count::new(i64::from(device.compute_instance)),
        placement: device.placement.ok().and_then(wire_placement),
    })
}

/// A placement as events have it. None: outside slices 0 to 15.
pub(crate) fn wire_placement(placement: gpuledger_nvml::Placement) -> Option<Placement> {
    let start = SliceIndex::new(u8::try_from(placement.start).ok()?)?;
    let size = Slices::new(u8::try_from(placement.size).ok()?)?;
    (start.get() + size.get() <= 16).then_some(Placement { start, size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_nvml::{Absent, Placement as Place};

    fn identity(index: u32, uuid: &str) -> Identity {
        Identity {
            uuid: uuid.to_owned(),
            index,
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            pci_bus_id: "00000000:3B:00.0".to_owned(),
            minor: Some(index),
            compute_capability: Some((9, 0)),
        }
    }

    fn device(compute_instance: u32, placement: gpuledger_nvml::Reading<Place>) -> MigInstance {
        MigInstance {
            index: compute_instance,
            uuid: format!("MIG-{compute_instance}"),
            gpu_instance: 1,
            compute_instance,
            profile: Ok("3g.40gb".to_owned()),
            compute_profile: (compute_instance > 0).then(|| "1c.3g.40gb".to_owned()),
            placement,
            compute_slices: Ok(3),
            multiprocessors: Ok(60),
            memory_bytes: Ok(1),
        }
    }

    #[test]
    fn each_mig_device_has_its_entry_and_what_could_not_be_read_is_absent() {
        let mut tracker = Tracker::default();
        tracker.update(&[device(0, Ok(Place { start: 4, size: 4 })), device(1, Err(Absent::NoPermission))]);
        let slicing = Slicing { compute: 7, memory: 8 };
        let gpu = inventory_gpu(&identity(0, "GPU-1"), slicing, Some(7), true, &tracker).unwrap();
        let text = serde_json::to_value(&gpu).unwrap();
        assert_eq!(text["instances"][0]["placement"], serde_json::json!({"start": 4, "size": 4}));
        assert_eq!(text["instances"][1]["profile"], "1c.3g.40gb");
        assert_eq!(text["instances"][1].get("placement"), None);
        assert_eq!((&text["compute_slices"], &text["memory_slices"]), (&7.into(), &8.into()));
    }

    #[test]
    fn the_node_lists_each_gpu_once_in_order() {
        let gpu = |index, uuid| {
            let slicing = Slicing { compute: 7, memory: 8 };
            inventory_gpu(&identity(index, uuid), slicing, None, false, &Tracker::default()).unwrap()
        };
        let name = |text| Name::new(text).unwrap();
        let gpus = vec![gpu(1, "GPU-b"), gpu(0, "GPU-a"), gpu(1, "GPU-b")];
        let listed = inventory(name("n1"), name("b7"), gpus).gpus;
        assert_eq!(listed.iter().map(|gpu| gpu.uuid.as_str()).collect::<Vec<_>>(), ["GPU-a", "GPU-b"]);
    }
}
