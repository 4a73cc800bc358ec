//! One GPU in the report.

use crate::ladder::{self, Known, Ladder, Standing, Want};
use gpuledger_nvml::{Absent, Gpu, Identity, MigInstance, MigMode};
use serde::Serialize;

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuReport {
    /// Place in NVML's list.
    pub index: u32,
    /// Why it cannot be read at all; the rest is empty then.
    pub unreadable: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its name.
    pub model: Option<String>,
    /// Where it sits.
    pub pci_bus_id: Option<String>,
    /// `unsupported`, `off`, `on`, or `unavailable(…)`.
    pub mig: String,
    /// Its MIG devices.
    pub instances: Vec<Instance>,
    /// Its readings.
    pub readings: Vec<ReadingReport>,
}

/// One MIG device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its UUID.
    pub uuid: String,
    /// Id of its GPU instance.
    pub gpu_instance: u32,
    /// Id of its compute instance.
    pub compute_instance: u32,
    /// `3g.40gb`; none where it could not be read.
    pub profile: Option<String>,
    /// `4:4`, first memory slice and number of them, or `unavailable(…)`.
    pub placement: String,
}

/// How one reading is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadingReport {
    /// In words that do not change: `gpu_sm`, `instance_memory`, …
    pub reading: &'static str,
    /// The same for people.
    #[serde(skip)]
    pub words: String,
    /// Letter of its rung; none for readings with a single source, and `0` where there is no reading.
    pub rung: Option<char>,
    /// Quality label (M-8).
    pub quality: String,
    /// NVML call; none where nothing is called.
    pub source: Option<&'static str>,
    /// Better rungs that are out of reach.
    pub refused: Vec<Refused>,
}

/// A better rung that is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its letter.
    pub rung: Option<char>,
    /// Its call.
    pub source: &'static str,
    /// The reason, `not_supported`, `accounting_off`, …
    pub why: String,
    /// What would raise the reading to it.
    pub advice: &'static str,
}

impl GpuReport {
    pub(super) fn unreadable(index: u32, why: Absent) -> Self {
        Self {
            index,
            unreadable: Some(why.to_string()),
            uuid: None,
            model: None,
            pci_bus_id: None,
            mig: unavailable(why),
            instances: Vec::new(),
            readings: Vec::new(),
        }
    }

    pub(super) fn read(index: u32, identity: Identity, mut gpu: Box<dyn Gpu>) -> Self {
        let mode = gpu.mig_mode();
        let is_on = matches!(mode, Ok(MigMode::On { .. }));
        let instances = if is_on { gpu.instances().unwrap_or_default() } else { Vec::new() };
        let gpu_instance = instances.first().map(|instance| instance.gpu_instance);
        let ladder = ladder::probe(&*gpu, is_on, Known { gpu_instance, ..Known::default() });
        Self {
            index,
            unreadable: None,
            uuid: Some(identity.uuid),
            model: Some(identity.name),
            pci_bus_id: Some(identity.pci_bus_id),
            mig: mode.map_or_else(unavailable, |mode| mig_word(mode).to_owned()),
            instances: instances.iter().map(Instance::of).collect(),
            readings: readings(&ladder),
        }
    }
}

impl Instance {
    fn of(instance: &MigInstance) -> Self {
        Self {
            uuid: instance.uuid.clone(),
            gpu_instance: instance.gpu_instance,
            compute_instance: instance.compute_instance,
            profile: instance.compute_profile.clone().or_else(|| instance.profile.clone().ok()),
            placement: instance.placement.map_or_else(unavailable, |placement| placement.to_string()),
        }
    }
}

fn readings(ladder: &Ladder) -> Vec<ReadingReport> {
    ladder.standings().map(|(want, standing)| ReadingReport::of(want, standing)).collect()
}

impl ReadingReport {
    fn of(want: Want, standing: &Standing) -> Self {
        let refused = |refusal: &ladder::Refusal| Refused {
            rung: refusal.rung.letter(),
            source: refusal.rung.call(want),
            why: refusal.why.to_string(),
            advice: refusal.advice(),
        };
        let source = standing.rung.call(want);
        Self {
            reading: want_word(want),
            words: want.to_string(),
            rung: standing.rung.letter(),
            quality: standing.quality().to_string(),
            source: (source != "none").then_some(source),
            refused: standing.refused.iter().map(refused).collect(),
        }
    }
}

/// The word of a reading in JSON and in labels.
pub(crate) const fn want_word(want: Want) -> &'static str {
    match want {
        Want::DeviceSm => "gpu_sm",
        Want::InstanceSm => "instance_sm",
        Want::ProcessSm => "process_sm",
        Want::DeviceMemory => "gpu_memory",
        Want::InstanceMemory => "instance_memory",
        Want::ProcessMemory => "process_memory",
        Want::Energy => "gpu_energy",
    }
}

fn mig_word(mode: MigMode) -> &'static str {
    match mode {
        MigMode::Unsupported => "unsupported",
        MigMode::Off { turns_on: false } => "off",
        MigMode::Off { turns_on: true } => "off, on after a reset",
        MigMode::On { turns_off: false } => "on",
        MigMode::On { turns_off: true } => "on, off after a reset",
    }
}

fn unavailable(why: Absent) -> String {
    format!("unavailable({why})")
}
