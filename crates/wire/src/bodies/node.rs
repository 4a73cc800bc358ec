//! What a node says of its devices: inventory, end of capacity, states.

use super::{Body, Placement, Problem};
use crate::number::{Count, Slices};
use crate::text::{Name, Text};
use gpuledger_domain::time::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;

/// `node.inventory`: the full state of a node; also its heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeInventory {
    /// Which node.
    pub node: Name,
    /// Changes with each boot of the node.
    pub boot_id: Name,
    /// Every GPU it has, each once.
    pub gpus: Vec<InventoryGpu>,
}

/// One GPU of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryGpu {
    /// The vendor's UUID.
    pub uuid: Name,
    /// Place in the node's list; it changes over boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<Count>,
    /// The NVML name.
    pub model: Name,
    /// Device memory in bytes, where it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Count>,
    /// Compute slices: 7, or 4, or 1 for a model that cannot do MIG.
    pub compute_slices: Slices,
    /// Memory slices: 8, or 4, or 1 for a model that cannot do MIG.
    pub memory_slices: Slices,
    /// Whether MIG mode is on.
    pub mig: bool,
    /// What the node thinks of it; evidence only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Name>,
    /// MIG instances.
    #[serde(default)]
    pub instances: Vec<InventoryInstance>,
}

/// One MIG instance of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryInstance {
    /// The vendor's MIG UUID, which may come back for a later instance.
    pub uuid: Name,
    /// Such as `3g.40gb`.
    pub profile: Name,
    /// Compute slices, where they could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_slices: Option<Slices>,
    /// NVML's id of the GPU instance; reused after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_instance_id: Option<Count>,
    /// NVML's id of the compute instance; reused after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_instance_id: Option<Count>,
    /// Memory slices, where they could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

impl Body for NodeInventory {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for (index, gpu) in self.gpus.iter().enumerate() {
            if !seen.insert(&gpu.uuid) {
                return Err(Problem::new(
                    format!("gpus[{index}].uuid"),
                    format_args!("{} is listed twice", gpu.uuid),
                ));
            }
        }
        Ok(())
    }
}

/// `node.decommissioned`: capacity ends, of a node or of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("not" = {"required": ["node", "gpu"]}))]
pub enum NodeDecommissioned {
    /// `{node}`.
    Node(Name),
    /// `{gpu}`.
    Gpu(Name),
}

#[derive(Deserialize)]
struct DecommissionedParts {
    node: Option<Name>,
    gpu: Option<Name>,
}

impl TryFrom<DecommissionedParts> for NodeDecommissioned {
    type Error = &'static str;

    fn try_from(parts: DecommissionedParts) -> Result<Self, &'static str> {
        match (parts.node, parts.gpu) {
            (Some(node), None) => Ok(Self::Node(node)),
            (None, Some(gpu)) => Ok(Self::Gpu(gpu)),
            _ => Err("names both or neither of `node` and `gpu`, expected one"),
        }
    }
}

impl<'de> Deserialize<'de> for NodeDecommissioned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::from_parts::<DecommissionedParts, _, _>(deserializer)
    }
}

impl Body for NodeDecommissioned {}

/// `unit.state`: the state of a GPU or of one placement from the event's time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitState {
    /// Which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What it is in.
    pub state: State,
    /// Of a fault: `hardware`, `application`, `unknown` or another definite cause. None: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Name>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
}

/// What a unit is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum State {
    /// Working.
    Ok,
    /// Broken.
    Fault,
    /// Taken by the operator.
    Maintenance,
}

impl Body for UnitState {}
