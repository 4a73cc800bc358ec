//! What is put on the board.

use crate::cycle::{LiveProcess, View};
use crate::ladder::Ladder;
use crate::probe::want_word;
use crate::topology::GpuInstance;
use crate::window::UnitKey;
use gpuledger_nvml::{Absent, Identity, Memory, MigMode, Placement, Ppm, Reading};
use std::collections::BTreeSet;

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

impl GpuFigures {
    /// What a cycle saw.
    pub fn of(view: &View) -> Self {
        let gauges = view.gauges;
        Self {
            identity: view.identity.clone(),
            mig: matches!(view.mig, Ok(MigMode::On { .. })),
            device: unit(view, UnitKey::Device, |_| true),
            instances: view.instances.iter().map(|instance| instance_figures(view, instance)).collect(),
            utilization: gauges.utilization,
            power_mw: gauges.power_mw,
            energy_mj: gauges.energy_mj,
            temperature_c: gauges.temperature_c,
            clocks_mhz: gauges.clocks_mhz,
            uncorrectable_errors: gauges.uncorrectable_errors,
            readings: view.ladder.as_deref().map(readings).unwrap_or_default(),
        }
    }
}

fn unit(view: &View, key: UnitKey, has: impl Fn(&LiveProcess) -> bool) -> UnitFigures {
    // One with contexts in two compute instances is one process.
    let pids = |processes: &Vec<LiveProcess>| {
        let pids: BTreeSet<u32> =
            processes.iter().filter(|row| has(row)).map(|row| row.process.pid).collect();
        u32::try_from(pids.len()).unwrap_or(u32::MAX)
    };
    UnitFigures {
        memory: view.memory.get(&key).copied().unwrap_or(Err(Absent::NotYet)),
        processes: view.processes.as_ref().map(pids),
        sm_active: view.sm_active.get(&key).copied(),
    }
}

fn instance_figures(view: &View, instance: &GpuInstance) -> InstanceFigures {
    let GpuInstance { id, generation, devices } = instance;
    let profile = devices.iter().find_map(|device| device.profile.clone().ok()).unwrap_or_default();
    let key = UnitKey::Instance { id: *id, generation: *generation };
    let unit = unit(view, key, |row| row.gpu_instance == Some(*id));
    InstanceFigures {
        gpu_instance: *id,
        generation: *generation,
        profile,
        placement: instance.placement(),
        unit,
    }
}

fn readings(ladder: &Ladder) -> Vec<ReadingFigure> {
    let figure = |(want, standing): (crate::ladder::Want, &crate::ladder::Standing)| ReadingFigure {
        reading: want_word(want).to_owned(),
        rung: standing.rung.letter().map(String::from).unwrap_or_default(),
        quality: standing.quality().to_string(),
        source: standing.rung.call(want).to_owned(),
    };
    ladder.standings().map(figure).collect()
}

/// Who holds a unit, in Kubernetes' words. Only where exactly one pod does: a device value is never copied to each sharer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
}
