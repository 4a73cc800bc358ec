//! The devices of the made-up fleet: node n1 with four whole H100, node n2 with four A100, two of them cut into MIG instances.

use super::{Part, placement, slices};
use anyhow::Result;
use gpuledger_wire::bodies::{InventoryGpu, InventoryInstance, NodeInventory};
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;

/// One of the eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gpu {
    H0,
    H1,
    H2,
    H3,
    A0,
    A1,
    A2,
    A3,
}

const ALL: [Gpu; 8] = [Gpu::H0, Gpu::H1, Gpu::H2, Gpu::H3, Gpu::A0, Gpu::A1, Gpu::A2, Gpu::A3];

impl Gpu {
    /// Its UUID.
    pub(super) fn name(self) -> Result<Name> {
        let (node, index) = self.place();
        let prefix = if node == "n1" { "b1000000" } else { "a1000000" };
        Ok(Name::new(&format!("GPU-{prefix}-0000-4000-8000-{index:012}"))?)
    }

    /// Its node, and its place in the node's list.
    fn place(self) -> (&'static str, u8) {
        match self {
            Self::H0 => ("n1", 0),
            Self::H1 => ("n1", 1),
            Self::H2 => ("n1", 2),
            Self::H3 => ("n1", 3),
            Self::A0 => ("n2", 0),
            Self::A1 => ("n2", 1),
            Self::A2 => ("n2", 2),
            Self::A3 => ("n2", 3),
        }
    }

    /// How it is cut. Two 3g instances leave a compute slice that nothing fits; 4g, 2g and 1g leave a memory slice.
    fn parts(self, is_recut: bool) -> &'static [Part] {
        match self {
            Self::A0 if is_recut => &[("4g.40gb", 0, 4), ("3g.40gb", 4, 4)],
            Self::A0 => &[("3g.40gb", 0, 4), ("3g.40gb", 4, 4)],
            Self::A1 => &[("4g.40gb", 0, 4), ("2g.20gb", 4, 2), ("1g.10gb", 6, 1)],
            Self::H0 | Self::H1 | Self::H2 | Self::H3 | Self::A2 | Self::A3 => &[],
        }
    }
}

/// What a node says of itself.
pub(super) fn inventory(node: &str, is_recut: bool) -> Result<NodeInventory> {
    let gpus = ALL.into_iter().filter(|gpu| gpu.place().0 == node);
    Ok(NodeInventory {
        node: Name::new(node)?,
        boot_id: Name::new(&format!("boot-{node}"))?,
        gpus: gpus.map(|gpu| listed(gpu, is_recut)).collect::<Result<_>>()?,
    })
}

fn listed(gpu: Gpu, is_recut: bool) -> Result<InventoryGpu> {
    let (node, index) = gpu.place();
    let model = if node == "n1" { "NVIDIA H100 80GB HBM3" } else { "NVIDIA A100-SXM4-80GB" };
    let parts = gpu.parts(is_recut);
    Ok(InventoryGpu {
        uuid: gpu.name()?,
        index: Count::new(index.into()),
        model: Name::new(model)?,
        memory_bytes: Count::new(85_520_809_984),
        compute_slices: slices(7)?,
        memory_slices: slices(8)?,
        mig: !parts.is_empty(),
        state: Some(Name::new("ok")?),
        instances: parts.iter().map(|part| instance(index, *part)).collect::<Result<_>>()?,
    })
}

fn instance(gpu: u8, (profile, start, size): Part) -> Result<InventoryInstance> {
    Ok(InventoryInstance {
        uuid: Name::new(&format!("MIG-a1000000-{gpu:04}-4000-8000-{start:06}{size:06}"))?,
        profile: Name::new(profile)?,
        compute_slices: None,
        gpu_instance_id: None,
        compute_instance_id: None,
        placement: Some(placement(start, size)?),
    })
}
