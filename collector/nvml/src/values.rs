//! What NVML says, as plain values.

use crate::absent::Reading;
use std::fmt;

/// Parts of a million of an interval: a share without binary floating point. May pass a million only where NVML itself says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppm(pub u32);

impl Ppm {
    /// The whole interval.
    pub const ALL: Self = Self(1_000_000);
}

/// Versions of what was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Kernel driver, `550.54.15`.
    pub driver: String,
    /// NVML, `12.550.54.15`.
    pub nvml: String,
    /// CUDA of the driver in thousands and tens: 12040 is 12.4.
    pub cuda: i32,
}

/// Which device: none of these change while the driver is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `GPU-…`; the key of the device.
    pub uuid: String,
    /// Place in the node's list; it changes over boots.
    pub index: u32,
    /// NVML's name, with the vendor.
    pub name: String,
    /// `00000000:3B:00.0`.
    pub pci_bus_id: String,
    /// Number of the device file `/dev/nvidiaN`.
    pub minor: Option<u32>,
    /// CUDA compute capability, major and minor: (8, 0) is A100, (9, 0) Hopper.
    pub compute_capability: Option<(u32, u32)>,
}

/// MIG mode of a device: three states, and whether a change waits for a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigMode {
    /// The model cannot do MIG.
    Unsupported,
    /// Can, and is off.
    Off {
        /// Will be on after the next reset.
        turns_on: bool,
    },
    /// Is on.
    On {
        /// Will be off after the next reset.
        turns_off: bool,
    },
}

/// A run of memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// First memory slice.
    pub start: u32,
    /// Number of them.
    pub size: u32,
}

/// One MIG device: a compute instance in a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigInstance {
    /// Its place in NVML's list of MIG devices, which may have holes.
    pub index: u32,
    /// `MIG-…`; it may come back for a later instance.
    pub uuid: String,
    /// Id of the GPU instance, reused after its end.
    pub gpu_instance: u32,
    /// Id of the compute instance within it, reused after its end.
    pub compute_instance: u32,
    /// Profile of the GPU instance, `3g.40gb`.
    pub profile: Reading<String>,
    /// Profile of the compute instance where it is not all of its GPU instance: `1c.3g.40gb`.
    pub compute_profile: Option<String>,
    /// Memory slices of the GPU instance. Reading it may need privilege.
    pub placement: Reading<Placement>,
    /// Compute slices of the GPU instance.
    pub compute_slices: Reading<u32>,
    /// Streaming multiprocessors of the compute instance.
    pub multiprocessors: Reading<u32>,
    /// Memory of the GPU instance in bytes.
    pub memory_bytes: Reading<u64>,
}

/// What a reading is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The whole device.
    Device,
    /// A GPU instance, by its id. Memory and GPM are per GPU instance.
    GpuInstance(u32),
}

/// Device memory in bytes. `total = reserved + used + free`, within a few MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// Kept by the driver; none where the driver is too old to tell it apart, and then it is within `used`.
    pub reserved: Option<u64>,
    /// Allocated.
    pub used: u64,
    /// Neither.
    pub free: u64,
}

/// In which of NVML's process lists a process stands. One that stands in several is named once, by the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessKind {
    /// A client of an MPS server.
    MpsClient,
    /// A compute context.
    Compute,
    /// A graphics context only.
    Graphics,
}

/// A process that holds a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    /// Number in the init namespace, or in ours: see `probe`.
    pub pid: u32,
    /// Memory it uses on the device, in bytes; none where NVML does not know.
    pub memory_bytes: Option<u64>,
    /// In which list it stood.
    pub kind: ProcessKind,
    /// Its GPU instance under MIG.
    pub gpu_instance: Option<u32>,
    /// Its compute instance under MIG.
    pub compute_instance: Option<u32>,
}

/// A row of the process utilisation ring, not yet believed: a zombie's row may hold anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilizationRow {
    /// Which process.
    pub pid: u32,
    /// When its last sample was taken, in microseconds of the driver's clock.
    pub timestamp_us: u64,
    /// Share of the time since the asked instant in which its kernels ran, in per cent as NVML gives it.
    pub sm_percent: u32,
}

/// A sample of the device's utilisation ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilizationSample {
    /// In microseconds of the driver's clock.
    pub timestamp_us: u64,
    /// Per cent.
    pub percent: u32,
}

/// The mean activity of an interval by GPM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpmMean {
    /// When the first sample was taken, by the caller's monotonic clock, in microseconds.
    pub from_us: u64,
    /// When the second was.
    pub to_us: u64,
    /// Share of the interval in which its multiprocessors were busy.
    pub sm_active: Ppm,
}

/// Lifetime figures of one process by accounting (version 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountingStats {
    /// Whole per cent over its life.
    pub gpu_percent: Option<u32>,
    /// Most memory in use at once, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Length of its life in milliseconds; 0 while it runs.
    pub time_ms: u64,
    /// When it began, in microseconds; with the pid its identity.
    pub start_us: u64,
    /// Whether it still runs.
    pub is_running: bool,
}

/// Counters of one process by accounting (version 2): they only grow while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountingCounters {
    /// Number of samples.
    pub samples: u64,
    /// Sum of per cent times 100 over the samples.
    pub gpu_percent_hundredths: u64,
    /// When the process began, in microseconds.
    pub start_us: u64,
    /// Whether it still runs.
    pub is_running: bool,
}

/// Something NVML reports by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// UUID of the device.
    pub gpu: String,
    /// GPU instance it concerns, where the driver says.
    pub gpu_instance: Option<u32>,
    /// What it is.
    pub kind: EventKind,
}

/// Kinds of events the collector acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A critical error with its number.
    Xid(u64),
    /// MIG instances came or went.
    MigChange,
    /// An uncorrectable memory error.
    DoubleBitError,
    /// Another one, with its bit.
    Other(u64),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.size)
    }
}
