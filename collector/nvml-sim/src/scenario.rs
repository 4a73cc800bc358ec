//! What a scenario file says: a node, its GPUs, and what happens when. The README of the package shows the format by example.

mod action;
mod load;
mod read;
mod text;

pub use action::{
    Action, AnyGpu, AtGpu, Change, ChangeMig, Close, ComputeSpec, ContextSpec, CreateCompute, CreateInstance,
    Delay, DestroyCompute, DestroyInstance, DoubleBit, Fail, GarbageRow, GarbageRows, JumpClock, Leaves,
    Open, Pid, ReloadDriver, SetAccounting, SetEnergy, SetGpu, Start, Step, Stop, WrongEcho, Xid,
};
pub use load::Load;
pub use read::{Fault, read, read_file};
pub use text::{Bytes, Jump, Percent, Span, Utc};

use crate::code::ReturnCode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, as the file's.
    pub name: String,
    /// What it shows, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Numbers of the public failure reports it covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<u32>,
    /// Seed of everything drawn: loads between bounds.
    #[serde(default)]
    pub seed: u64,
    /// Name of the node.
    #[serde(default = "defaults::node")]
    pub node: String,
    /// Boot id of the node.
    #[serde(default = "defaults::boot_id")]
    pub boot_id: String,
    /// The instant at which the timeline begins; a whole second.
    #[serde(default = "defaults::start")]
    pub start: Utc,
    /// How long the node had been up then; whole seconds.
    #[serde(default = "defaults::uptime")]
    pub uptime: Span,
    /// What the caller of the library may do.
    #[serde(default)]
    pub privilege: Privilege,
    /// In which PID namespace the caller is.
    #[serde(default)]
    pub namespace: Namespace,
    /// The open kernel modules translate PIDs into the caller's namespace, the closed ones never do.
    #[serde(default)]
    pub open_kernel_modules: bool,
    /// Length of one of the 64 cells after which a drawn load repeats.
    #[serde(default = "defaults::load_cell")]
    pub load_cell: Span,
    /// The driver at the start.
    #[serde(default)]
    pub driver: Driver,
    /// Functions that the library lacks, by their C names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_functions: Vec<String>,
    /// Its GPUs, in NVML's order.
    pub gpus: Vec<GpuSpec>,
    /// What happens, in order of time.
    #[serde(default, deserialize_with = "read::steps")]
    pub timeline: Vec<Step>,
}

/// Whether the caller is privileged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// Everything answers.
    #[default]
    Root,
    /// Placements, aggregates of a GPU with MIG on and the like answer `NO_PERMISSION`.
    User,
}

/// A PID namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// The init namespace.
    #[default]
    Host,
    /// One of a container: `/proc` shows only processes with `ns_pid`, by that number.
    Container,
}

/// A loaded driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// `550.54.15`.
    #[serde(default = "defaults::driver")]
    pub version: String,
    /// Version of the library; absent: the CUDA release and the driver's, `12.550.54.15`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvml: Option<String>,
    /// CUDA release in thousands and tens: 12040 is 12.4.
    #[serde(default = "defaults::cuda")]
    pub cuda: u32,
    /// How long before the start it was loaded.
    #[serde(default = "defaults::loaded_before")]
    pub loaded_before: Span,
    /// Bytes of a record that the `_v3` process lists write; absent: what this driver release is known to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_record_bytes: Option<u32>,
    /// Clock of the timestamps of samples.
    #[serde(default)]
    pub timestamps: Timestamps,
}

/// The clock domain of the driver's timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// Microseconds of Unix time.
    #[default]
    Realtime,
    /// Microseconds since boot.
    Boottime,
}

/// A GPU of the node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GpuSpec {
    /// `GPU-…`.
    pub uuid: String,
    /// Key of a model of the catalogue.
    pub model: String,
    /// Another name than the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other memory than the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Number of the device file; absent: its place in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// PCI address, `00000000:3B:00.0`; absent: one by its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// Serial number; absent: the board has none to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// MIG mode at the start.
    #[serde(default)]
    pub mig: MigSpec,
    /// Error correction.
    #[serde(default = "defaults::yes")]
    pub ecc: bool,
    /// Accounting at the start; MIG forces it off.
    #[serde(default)]
    pub accounting: bool,
    /// Persistence mode.
    #[serde(default = "defaults::yes")]
    pub persistence: bool,
    /// Compute mode at the start.
    #[serde(default)]
    pub compute_mode: ComputeMode,
    /// Energy counter at the start, in millijoules.
    #[serde(default)]
    pub energy_mj: u64,
    /// Functions that this device answers with a code, by their C names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, ReturnCode>,
}

/// MIG mode at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MigSpec {
    /// Off, or unsupported where the model cannot do MIG.
    #[default]
    Off,
    /// On.
    On,
    /// Off, and on after the next reset.
    PendingOn,
    /// On, and off after the next reset.
    PendingOff,
}

/// Who may open contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputeMode {
    /// Everybody.
    #[default]
    Default,
    /// Nobody.
    Prohibited,
    /// One process at a time: usual under MPS.
    ExclusiveProcess,
}

/// What sort of context a process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    /// In the compute list.
    #[default]
    Compute,
    /// In the graphics list.
    Graphics,
    /// An MPS server: in the compute list.
    MpsServer,
    /// An MPS client: in the compute list and in the MPS list.
    MpsClient,
}

impl Scenario {
    /// A scenario that says nothing: no GPU, nothing happens.
    pub fn bare() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            covers: Vec::new(),
            seed: 0,
            node: defaults::node(),
            boot_id: defaults::boot_id(),
            start: defaults::start(),
            uptime: defaults::uptime(),
            privilege: Privilege::default(),
            namespace: Namespace::default(),
            open_kernel_modules: false,
            load_cell: defaults::load_cell(),
            driver: Driver::default(),
            missing_functions: Vec::new(),
            gpus: Vec::new(),
            timeline: Vec::new(),
        }
    }
}

impl GpuSpec {
    /// A GPU of a model, otherwise as a file leaves it.
    pub fn new(uuid: &str, model: &str) -> Self {
        Self {
            uuid: uuid.to_owned(),
            model: model.to_owned(),
            name: None,
            memory: None,
            minor: None,
            pci: None,
            serial: None,
            mig: MigSpec::default(),
            ecc: true,
            accounting: false,
            persistence: true,
            compute_mode: ComputeMode::default(),
            energy_mj: 0,
            unreadable: BTreeMap::new(),
        }
    }
}

impl Driver {
    /// Release numbers: `535.86.10` is [535, 86, 10].
    pub fn release(&self) -> Vec<u32> {
        self.version.split('.').map_while(|part| part.parse().ok()).collect()
    }

    /// Version of the library.
    pub fn nvml_version(&self) -> String {
        self.nvml.clone().unwrap_or_else(|| format!("{}.{}", self.cuda / 1000, self.version))
    }

    /// Bytes of a record of the `_v3` process lists: 24, but 32 from driver 535.43 to 535.86.
    pub fn record_bytes(&self) -> u32 {
        let release = self.release();
        let is_long = release.as_slice() >= [535, 43].as_slice() && release.as_slice() < [535, 87].as_slice();
        self.process_record_bytes.unwrap_or(if is_long { 32 } else { 24 })
    }
}

impl Default for Driver {
    fn default() -> Self {
        Self {
            version: defaults::driver(),
            nvml: None,
            cuda: defaults::cuda(),
            loaded_before: defaults::loaded_before(),
            process_record_bytes: None,
            timestamps: Timestamps::default(),
        }
    }
}

/// Values of what a file does not say.
mod defaults {
    use super::{Span, Utc};

    pub(super) fn node() -> String {
        "sim-1".to_owned()
    }

    pub(super) fn boot_id() -> String {
        "3f6c2b1e-8a57-4d0e-9c41-5b7d6e2f9a10".to_owned()
    }

    /// 2026-10-01T00:00:00Z.
    pub(super) fn start() -> Utc {
        Utc(1_790_812_800_000_000)
    }

    pub(super) fn uptime() -> Span {
        Span::seconds(3600)
    }

    pub(super) fn load_cell() -> Span {
        Span::seconds(1)
    }

    pub(super) fn driver() -> String {
        "580.105.08".to_owned()
    }

    pub(super) fn cuda() -> u32 {
        13_000
    }

    pub(super) fn loaded_before() -> Span {
        Span::seconds(3000)
    }

    pub(super) fn yes() -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
