//! Accepted facts as the rules see them: what was said, by whom, about when. Free of any encoding.

use crate::ids::{AllocationId, GpuId, NodeId, ProjectId, ScrubId, SkuId, Source, TenantId};
use crate::pool::Work;
use crate::share::Share;
use crate::time::{Instant, Window};
use std::collections::BTreeMap;

/// One accepted fact. Identity is `(source, id)` (I-1); the order of facts at one instant is rule A-18.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Who said it.
    pub source: Source,
    /// The event's id, unique within its source.
    pub id: String,
    /// When it happened.
    pub at: Instant,
    /// What was said.
    pub body: FactBody,
}

/// What a fact says, one case per event type the ledger attributes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactBody {
    /// Full state of a node.
    Inventory(Inventory),
    /// A node's capacity ends.
    NodeDecommissioned(NodeId),
    /// A GPU's capacity ends.
    GpuDecommissioned(GpuId),
    /// The state of a GPU or of one placement from now on.
    UnitState(UnitState),
    /// A collector was alive at the fact's instant, which is the end of its window. Other parts of telemetry are no matter of attribution.
    NodeAlive(NodeId),
    /// A tenant holds units from now on.
    Granted(Grant),
    /// The devices of an unplaced grant.
    Placed(Placed),
    /// A billing state of an allocation.
    AllocationState {
        /// Whose.
        allocation: AllocationId,
        /// `pulling`, `loading`, `ready`, …
        state: String,
    },
    /// Another tenant owns the allocation from now on.
    Transferred {
        /// Which.
        allocation: AllocationId,
        /// New owner.
        tenant: TenantId,
        /// New owner's project.
        project: Option<ProjectId>,
    },
    /// The hold ends.
    Released {
        /// Which.
        allocation: AllocationId,
        /// `completed`, `failed`, `preempted`, …
        reason: Option<String>,
    },
    /// The complete live list of this source.
    Snapshot {
        /// Only of these nodes; none: of all its nodes.
        nodes: Option<Vec<NodeId>>,
        /// Live at the fact's instant.
        allocations: Vec<AllocationId>,
    },
    /// Sanitising began.
    ScrubStarted {
        /// Which.
        scrub: ScrubId,
        /// Where.
        gpu: GpuId,
        /// None: the whole GPU.
        placement: Option<Placement>,
    },
    /// Sanitising ended at the fact's instant.
    ScrubFinished {
        /// Which.
        scrub: ScrubId,
        /// Where.
        gpu: GpuId,
        /// None: the whole GPU.
        placement: Option<Placement>,
        /// When it began.
        started_at: Instant,
        /// What it says of its result.
        evidence: ScrubEvidence,
    },
    /// A named person lets slices out of quarantine.
    QuarantineReleased {
        /// Where.
        gpu: GpuId,
        /// None: the whole GPU.
        placement: Option<Placement>,
    },
    /// Work that a pool did for a tenant.
    Work(Work),
    /// A fact of a type that moves no GPU-time by itself.
    Other,
}

impl FactBody {
    /// The GPUs it names, in its order.
    pub fn gpus(&self) -> Vec<&GpuId> {
        match self {
            Self::Inventory(inventory) => inventory.gpus.iter().map(|g| &g.gpu).collect(),
            Self::Granted(grant) => grant
                .units
                .iter()
                .filter_map(|unit| match unit {
                    GrantUnit::Placed(placed) => Some(&placed.gpu),
                    GrantUnit::Unplaced { .. } => None,
                })
                .collect(),
            Self::Placed(placed) => placed.units.iter().map(|u| &u.gpu).collect(),
            Self::UnitState(state) => vec![&state.gpu],
            Self::ScrubStarted { gpu, .. }
            | Self::ScrubFinished { gpu, .. }
            | Self::GpuDecommissioned(gpu) => vec![gpu],
            Self::NodeDecommissioned(_)
            | Self::NodeAlive(_)
            | Self::AllocationState { .. }
            | Self::Transferred { .. }
            | Self::Released { .. }
            | Self::Snapshot { .. }
            // It says who may use slices, not that they are there.
            | Self::QuarantineReleased { .. }
            | Self::Work(_)
            | Self::Other => Vec::new(),
        }
    }
}

/// A node's GPUs at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Which node.
    pub node: NodeId,
    /// The node's boot.
    pub boot_id: String,
    /// Every GPU it has.
    pub gpus: Vec<InventoryGpu>,
}

/// One GPU as an inventory lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InventoryGpu {
    /// Which.
    pub gpu: GpuId,
    /// The NVML name.
    pub model: String,
    /// Compute slices, 1 or more.
    pub compute_slices: u8,
    /// Memory slices, 1 to 16.
    pub memory_slices: u8,
    /// Whether MIG mode is on.
    pub mig: bool,
    /// MIG instances.
    pub instances: Vec<Instance>,
}

/// A MIG instance of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The vendor's MIG UUID, which comes back for later instances.
    pub uuid: String,
    /// Such as `3g.40gb`.
    pub profile: String,
    /// Compute slices where the node could read them.
    pub compute_slices: Option<u8>,
    /// Memory slices where the node could read them.
    pub placement: Option<Placement>,
}

/// A run of memory slices of one GPU; `size` is 1 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// First memory slice.
    pub start: u8,
    /// Number of memory slices.
    pub size: u8,
}

/// How a scrub says that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScrubResult {
    /// Done and clean. Whether that is believed is R-3's matter.
    Passed,
    /// Residue remains or may remain.
    Failed,
    /// Broken off.
    Incomplete,
    /// Not done, on purpose.
    Skipped,
}

/// How much of the memory was read back after a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadBack {
    /// All of it.
    Full,
    /// A sample.
    Sampled,
    /// Nothing.
    Nothing,
}

/// What a scrub says of its result, in bytes, each 0 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScrubEvidence {
    /// How it ended.
    pub result: ScrubResult,
    /// How it was checked.
    pub read_back: ReadBack,
    /// Read back.
    pub bytes_read: i64,
    /// Not as they should be.
    pub mismatches: i64,
    /// All there is.
    pub bytes_total: i64,
    /// Reached.
    pub bytes_covered: i64,
    /// Held by driver or firmware, out of reach.
    pub bytes_reserved: i64,
}

/// The state of a scope (GPU or exact placement).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitState {
    /// Which GPU.
    pub gpu: GpuId,
    /// None: the whole GPU.
    pub placement: Option<Placement>,
    /// From the fact's instant on.
    pub state: State,
}

/// What a scope is in. A cause that nobody named is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Working.
    Ok,
    /// Broken.
    Fault(Cause),
    /// Taken by the operator.
    Maintenance,
}

/// Why a scope is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The device or its node: not charged.
    Hardware,
    /// The tenant's own program: charged.
    Application,
    /// Not known yet: counts as fault until a later fact classifies it.
    Unknown,
    /// Another definite cause, counted as fault.
    Named(String),
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which allocation.
    pub allocation: AllocationId,
    /// Who holds it.
    pub tenant: TenantId,
    /// For which of the tenant's projects.
    pub project: Option<ProjectId>,
    /// What is held, at least one.
    pub units: Vec<GrantUnit>,
    /// Exclusive or shared.
    pub mode: Mode,
    /// How it was bought.
    pub class: Class,
    /// Pool of a shared unit.
    pub pool: Option<String>,
    /// Commitment it names.
    pub commitment: Option<String>,
    /// Job or pod of it.
    pub runtime: Runtime,
    /// Labels for reports.
    pub labels: BTreeMap<String, String>,
}

/// Names by which a node knows an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runtime {
    /// Slurm job number; comes back after the counter wraps.
    pub slurm_job: Option<String>,
    /// Kubernetes pod UID.
    pub pod_uid: Option<String>,
}

/// One unit of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantUnit {
    /// A device or MIG instance.
    Placed(PlacedUnit),
    /// So many of a SKU, devices not (yet) known.
    Unplaced {
        /// Which.
        sku: SkuId,
        /// How many, 1 or more.
        count: u32,
        /// Share of each, or none for all of it.
        share: Option<Share>,
    },
}

/// A device or MIG instance named by a grant or a later placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedUnit {
    /// Which GPU.
    pub gpu: GpuId,
    /// None: the whole GPU.
    pub mig: Option<MigUnit>,
    /// Share of it, or none for all of it.
    pub share: Option<Share>,
}

/// A MIG instance as a grant names it. Where only the UUID is given, the inventory gives the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigUnit {
    /// The vendor's MIG UUID.
    pub uuid: Option<String>,
    /// Such as `3g.40gb`.
    pub profile: Option<String>,
    /// Which memory slices.
    pub placement: Option<Placement>,
}

/// Devices of an unplaced grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Whose.
    pub of: PlacedOf,
    /// The devices.
    pub units: Vec<PlacedUnit>,
}

/// How a placement names its allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacedOf {
    /// By its id.
    Allocation(AllocationId),
    /// By job or pod: the one allocation that holds it at the fact's instant.
    Runtime(Runtime),
}

/// Whether others may hold the identical unit too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Beside other shared allocations of the identical unit.
    Shared,
}

/// How an allocation was bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// By use.
    OnDemand,
    /// From reserved capacity.
    Reserved,
    /// May be taken back.
    Spot,
}

impl Class {
    /// The word used in events, prices and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on_demand",
            Self::Reserved => "reserved",
            Self::Spot => "spot",
        }
    }

    /// The class with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::OnDemand, Self::Reserved, Self::Spot].into_iter().find(|class| class.as_str() == word)
    }
}

/// Where GPU-time stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// Held by a tenant.
    Tenant,
    /// Free and sellable.
    Idle,
    /// Free, but no profile fits it.
    Stranded,
    /// Being sanitised.
    Scrub,
    /// Kept from tenants until sanitised.
    Quarantine,
    /// Broken.
    Fault,
    /// Taken by the operator.
    Maintenance,
    /// Free on a node nobody heard of.
    Unobserved,
}

impl Account {
    /// The word used in SQL, reports and panels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Idle => "idle",
            Self::Stranded => "stranded",
            Self::Scrub => "scrub",
            Self::Quarantine => "quarantine",
            Self::Fault => "fault",
            Self::Maintenance => "maintenance",
            Self::Unobserved => "unobserved",
        }
    }
}

/// Times after which silence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A node unheard of for longer than this is unobserved, in microseconds.
    pub observation_gap_us: i64,
    /// A hold without release ends at the last proof of life once the horizon is further past it than this, in microseconds.
    pub lease_us: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { observation_gap_us: crate::time::CELL_US, lease_us: crate::time::HOUR_US }
    }
}

/// A posting of a GPU: who has which of its slices over a window. What both attribution and the naive painter produce.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Posting {
    /// Over which time.
    pub window: Window,
    /// In which account.
    pub account: Account,
    /// Whose, in account `tenant`.
    pub tenant: Option<TenantId>,
    /// By which allocation, in account `tenant`.
    pub allocation: Option<AllocationId>,
    /// Compute-slice-microseconds.
    pub compute_slice_us: i128,
    /// Memory-slice-microseconds.
    pub memory_slice_us: i128,
}
