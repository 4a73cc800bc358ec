//! What a cycle brings to those who compose the collector.

use crate::clock::Stamp;
use crate::integrate::Discard;
use crate::ladder::Ladder;
use crate::process::{Owner, ProcessId};
use crate::topology::GpuInstance;
use crate::window::{Part, UnitKey};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, Identity, Memory, MigMode, Placement, Ppm, ProcessKind, Reading};
use gpuledger_wire::bodies::InventoryGpu;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One process with a context on the device, as it stands now. One row a compute instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveProcess {
    /// Which.
    pub process: ProcessId,
    /// Whose.
    pub owner: Arc<Owner>,
    /// In which of NVML's lists it stood.
    pub kind: ProcessKind,
    /// Its GPU instance under MIG.
    pub gpu_instance: Option<u32>,
    /// Its compute instance under MIG.
    pub compute_instance: Option<u32>,
    /// Memory in bytes; none where the driver does not say.
    pub memory_bytes: Option<u64>,
}

/// Readings of the whole device that are shown and not integrated, as they were when they were last due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Utilisation of the last sample.
    pub utilization: Reading<Ppm>,
    /// Milliwatts.
    pub power_mw: Reading<u32>,
    /// Millijoules since the driver was loaded.
    pub energy_mj: Reading<u64>,
    /// Degrees Celsius.
    pub temperature_c: Reading<u32>,
    /// MHz: multiprocessors, memory.
    pub clocks_mhz: Reading<(u32, u32)>,
    /// Uncorrectable memory errors since the driver was loaded.
    pub uncorrectable_errors: Reading<u64>,
    /// What the driver wants done (field 230).
    pub recovery_action: Reading<u32>,
}

impl Gauges {
    /// All absent for one reason.
    pub const fn absent(why: Absent) -> Self {
        Self {
            utilization: Err(why),
            power_mw: Err(why),
            energy_mj: Err(why),
            temperature_c: Err(why),
            clocks_mhz: Err(why),
            uncorrectable_errors: Err(why),
            recovery_action: Err(why),
        }
    }
}

/// The device as the cycle saw it.
#[derive(Clone, Debug)]
pub struct View {
    /// Which device.
    pub identity: Identity,
    /// Its MIG mode.
    pub mig: Reading<MigMode>,
    /// Its GPU instances.
    pub instances: Vec<GpuInstance>,
    /// Memory of the units.
    pub memory: BTreeMap<UnitKey, Reading<Memory>>,
    /// Mean activity of the units where the hardware counts it, over the interval that ended with this cycle.
    pub sm_active: BTreeMap<UnitKey, Ppm>,
    /// Its processes; none where the list could not be read or believed.
    pub processes: Option<Vec<LiveProcess>>,
    /// What is shown beside.
    pub gauges: Gauges,
    /// Where its readings stand; none before the first probe.
    pub ladder: Option<Arc<Ladder>>,
}

impl View {
    /// The memory slices of a live GPU instance.
    pub fn placement(&self, gpu_instance: u32) -> Option<Placement> {
        self.instances.iter().find(|instance| instance.id == gpu_instance)?.placement().ok()
    }

    /// Whether it has clients of MPS.
    pub fn has_mps(&self) -> bool {
        self.processes.iter().flatten().any(|process| process.kind == ProcessKind::MpsClient)
    }
}

/// One cycle of one GPU.
#[derive(Clone, Debug)]
pub struct CycleReport {
    /// After the last call.
    pub at: Stamp,
    /// UUID of the device; none while it could never be read.
    pub gpu: Option<Name>,
    /// Windows that end up to here are told.
    pub told_to: Instant,
    /// Windows that were closed.
    pub parts: Vec<Part>,
    /// The device as a whole gives no sound answers. One reading that fails is told where it would stand, and is none.
    pub trouble: Option<Absent>,
    /// The device as it is now; none while it could never be read.
    pub view: Option<View>,
    /// The device's entry in the inventory, with its last known instances; none while its slices cannot be told.
    pub inventory: Option<InventoryGpu>,
    /// The entry differs from the one of the cycle before.
    pub inventory_changed: bool,
    /// The layout changed during the cycle, and its MIG rows were discarded.
    pub torn: bool,
    /// Rows left out.
    pub discarded: Vec<Discard>,
}

impl CycleReport {
    /// A cycle of a device whose name was never read.
    pub(super) fn nameless(at: Stamp, why: Absent) -> Self {
        Self {
            at,
            gpu: None,
            told_to: Instant::MIN,
            parts: Vec::new(),
            trouble: Some(why),
            view: None,
            inventory: None,
            inventory_changed: false,
            torn: false,
            discarded: Vec::new(),
        }
    }
}
