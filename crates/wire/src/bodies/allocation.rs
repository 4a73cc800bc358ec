//! What an allocator says: grants, placements, states, transfers, releases, snapshots.

use super::{Body, GrantUnit, PlacedUnit, Problem, Runtime, not_empty};
use crate::text::{Name, Text};
use gpuledger_domain::time::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `allocation.granted`: a tenant holds units from the event's time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationGranted {
    /// The allocator's name of it.
    pub allocation: Name,
    /// Who holds it.
    pub tenant: Name,
    /// For which of the tenant's projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// What is held, at least one.
    #[schemars(length(min = 1))]
    pub units: Vec<GrantUnit>,
    /// Alone or beside others.
    pub mode: Mode,
    /// How it was bought.
    pub class: Class,
    /// Pool of a shared unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// The commitment it draws on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Name>,
    /// The quota reservation it confirms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Name>,
    /// Job or pod of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// For reports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Name, Text>,
}

/// Whether others may hold the identical unit too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Beside other shared allocations of the identical unit.
    Shared,
}

/// How an allocation was bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Class {
    /// By use.
    OnDemand,
    /// From reserved capacity.
    Reserved,
    /// May be taken back.
    Spot,
}

impl Body for AllocationGranted {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        not_empty("units", &self.units)
    }
}

/// `allocation.placed`: the devices of an unplaced grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["allocation"]}, {"required": ["runtime"]}]))]
pub struct AllocationPlaced {
    /// The allocation by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Name>,
    /// Or by its job or pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// The devices, at least one.
    #[schemars(length(min = 1))]
    pub units: Vec<PlacedUnit>,
}

impl Body for AllocationPlaced {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        match (&self.allocation, &self.runtime) {
            (Some(_), None) => {}
            (None, Some(runtime)) if runtime.slurm_job.is_some() || runtime.pod_uid.is_some() => {}
            (None, Some(_)) => {
                return Err(Problem::new("runtime", "names nothing, expected `slurm_job` or `pod_uid`"));
            }
            _ => {
                return Err(Problem::new(
                    "allocation",
                    "both or neither of `allocation` and `runtime` are named, expected one",
                ));
            }
        }
        not_empty("units", &self.units)
    }
}

/// `allocation.state`: a billing state of an allocation from the event's time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationState {
    /// Whose.
    pub allocation: Name,
    /// `pulling`, `loading`, `ready`, `idle`, `held`, …
    pub state: Name,
}

impl Body for AllocationState {}

/// `allocation.transferred`: another tenant owns it from the event's time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationTransferred {
    /// Which.
    pub allocation: Name,
    /// New owner.
    pub tenant: Name,
    /// New owner's project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
}

impl Body for AllocationTransferred {}

/// `allocation.released`: the hold ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationReleased {
    /// Which.
    pub allocation: Name,
    /// `completed`, `failed`, `cancelled`, `preempted`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Name>,
}

impl Body for AllocationReleased {}

/// `allocation.snapshot`: the complete live list of its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationSnapshot {
    /// Only of these nodes; none: of all the source's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Live at the event's time.
    pub allocations: Vec<Name>,
}

/// The nodes a snapshot speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scope {
    /// Their names.
    pub nodes: Vec<Name>,
}

impl Body for AllocationSnapshot {}
