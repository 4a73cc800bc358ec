//! The devices of the simulated fleet: two nodes of eight GPUs, some whole, some cut into MIG instances, one of each node shared.

use anyhow::Result;
use gpuledger_wire::text::Name;
use std::fmt;

/// A model of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Model {
    /// Hopper: NVML measures each GPU and each MIG instance.
    H100,
    /// Ampere: NVML counts for each process of a whole GPU, and measures nothing of a MIG instance.
    A100,
}

impl Model {
    /// Its name in NVML.
    pub(crate) const fn nvml_name(self) -> &'static str {
        match self {
            Self::H100 => "NVIDIA H100 80GB HBM3",
            Self::A100 => "NVIDIA A100-SXM4-80GB",
        }
    }

    /// Its product, as a grant without devices names it.
    pub(crate) const fn sku(self) -> &'static str {
        match self {
            Self::H100 => "h100-80gb-hbm3",
            Self::A100 => "a100-sxm4-80gb",
        }
    }
}

/// A node: eight GPUs of one model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its boot.
    pub(crate) boot_id: &'static str,
    /// The model of all its GPUs.
    pub(crate) model: Model,
    /// How each GPU begins the day.
    pub(crate) gpus: [Use; 8],
}

/// What a GPU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// For one tenant at a time.
    Whole,
    /// For MIG instances; with these it begins the day.
    Cut(&'static [Part]),
    /// For several tenants at once, each with a share.
    Shared,
}

/// A MIG instance by profile and memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// First memory slice.
    pub(crate) start: u8,
    /// Number of memory slices.
    pub(crate) size: u8,
    /// Such as `3g.40gb`.
    pub(crate) profile: &'static str,
}

impl Part {
    pub(super) const fn new(profile: &'static str, start: u8, size: u8) -> Self {
        Self { start, size, profile }
    }

    /// NVML's id of the GPU instance: numbers of a pool for each size, here one for each place.
    pub(crate) const fn instance_id(self) -> u8 {
        match self.size {
            8 => 0,
            4 => 1 + self.start / 4,
            2 => 3 + self.start / 2,
            _ => 7 + self.start,
        }
    }

    /// Whether both need the same memory slice.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.start < other.start + other.size && other.start < self.start + self.size
    }
}

/// A GPU of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gpu {
    /// Place of its node in [`NODES`].
    node: usize,
    /// Its place on the node.
    pub(crate) index: u8,
}

/// Two halves leave a compute slice that nothing fits.
const HALVES: [Part; 2] = [Part::new("3g.40gb", 0, 4), Part::new("3g.40gb", 4, 4)];
/// These leave a memory slice.
const STEPS: [Part; 3] = [Part::new("4g.40gb", 0, 4), Part::new("2g.20gb", 4, 2), Part::new("1g.10gb", 6, 1)];

use Use::{Cut, Shared, Whole};

/// The fleet.
pub(crate) const NODES: [Node; 2] = [
    Node {
        name: "n1",
        boot_id: "0b5e7a52-8c1e-4f7a-9d42-6f2d1c9a0001",
        model: Model::H100,
        gpus: [Whole, Whole, Whole, Whole, Whole, Whole, Cut(&HALVES), Shared],
    },
    Node {
        name: "n2",
        boot_id: "0b5e7a52-8c1e-4f7a-9d42-6f2d1c9a0002",
        model: Model::A100,
        gpus: [Whole, Whole, Whole, Whole, Cut(&STEPS), Cut(&HALVES), Cut(&HALVES), Shared],
    },
];

impl Gpu {
    /// The GPU at a place of a node of [`NODES`].
    pub(super) const fn at(node: usize, index: u8) -> Self {
        Self { node, index }
    }

    /// All of them, node by node.
    pub(crate) fn all() -> impl Iterator<Item = (Self, Use)> {
        (0..)
            .zip(&NODES)
            .flat_map(|(node, on)| (0..).zip(on.gpus).map(move |(index, used)| (Self { node, index }, used)))
    }

    /// Those of a node.
    pub(crate) fn of(node: &str) -> impl Iterator<Item = (Self, Use)> {
        Self::all().filter(move |(gpu, _)| gpu.node().name == node)
    }

    /// Its node.
    pub(crate) const fn node(self) -> &'static Node {
        &NODES[self.node]
    }

    /// Its UUID in events.
    ///
    /// # Errors
    /// None: it is a name.
    pub(crate) fn name(self) -> Result<Name> {
        Ok(Name::new(&self.to_string())?)
    }

    /// The UUID of an instance on it: the same part has the same one each time, as on real devices.
    pub(crate) fn instance_uuid(self, part: Part) -> String {
        let node = if self.node().model == Model::H100 { "b1000000" } else { "a1000000" };
        format!("MIG-{node}-{:04}-5000-8000-{:06}{:06}", self.index, part.start, part.size)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = if self.node().model == Model::H100 { "b1000000" } else { "a1000000" };
        write!(f, "GPU-{node}-0000-4000-8000-{:012}", self.index)
    }
}
