//! What is put on the board.

use gpuledger_nvml::{Identity, Memory, Placement, Ppm, Reading};

/// What a cycle showed of a device or a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFigures {
    /// Memory now.
    pub memory: Reading<Memory>,
    /// Processes that hold a context; none where the list could not be read.
    pub processes: Option<u32>,
    /// Mean of the interval that ended with this cycle, from performance counters.
    pub sm_active: Option<Ppm>,
}

/// What a cycle showed of a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFigures {
    /// NVML's id of the GPU instance.
    pub gpu_instance: u32,
    /// The collector's generation of it: a new one begins new counters.
    pub generation: u64,
    /// `3g.40gb`; empty where it could not be read.
    pub profile: String,
    /// The memory slices it takes, by which windows name it.
    pub placement: Reading<Placement>,
    /// Its figures.
    pub unit: UnitFigures,
}

/// How a reading is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadingFigure {
    /// `gpu_sm`, `process_memory`, `gpu_energy`, … as in `probe`.
    pub reading: String,
    /// Rung of the ladder, `A` to `G`, or `0`; empty for readings with a single source.
    pub rung: String,
    /// Quality label, `interval_mean`, `unavailable(no_permission)`, …
    pub quality: String,
    /// Name of the NVML call.
    pub source: String,
}

/// What a cycle showed of a GPU. Device values stand here once, never again at its instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFigures {
    /// Which.
    pub identity: Identity,
    /// Whether MIG is on.
    pub mig: bool,
    /// The whole device.
    pub device: UnitFigures,
    /// Its GPU instances as they stand now, each once.
    pub instances: Vec<InstanceFigures>,
    /// Utilisation gauge.
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
    /// How its readings are taken.
    pub readings: Vec<ReadingFigure>,
}

/// Who holds a unit, in Kubernetes' words. Only where exactly one pod does: a device value is never copied to each sharer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container; empty where several of the pod's were given the unit.
    pub container: String,
}
