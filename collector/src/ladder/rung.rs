//! Rungs, and the readings that stand on them.

use super::advice::advice;
use super::quality::{Quality, Rule, Why};
use gpuledger_nvml::Absent;
use std::fmt;

/// A reading that stands on some rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// SM-active time of the whole GPU.
    DeviceSm,
    /// SM-active time of a GPU instance.
    InstanceSm,
    /// SM-active time of a process.
    ProcessSm,
    /// Memory of the whole GPU.
    DeviceMemory,
    /// Memory of a GPU instance.
    InstanceMemory,
    /// Memory of a process.
    ProcessMemory,
    /// Energy of the whole GPU. There is no such value of an instance.
    Energy,
}

/// Sources, best first within each reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// A: the mean between two samples of the hardware's counters.
    Gpm,
    /// B: the counters of accounting, version 2.
    Accounting,
    /// C: the driver's samples of processes.
    ProcessSamples,
    /// D: the driver's samples of the device.
    DeviceSamples,
    /// E: the last sample alone.
    Gauge,
    /// F: what is allocated is known, what is used is not.
    AllocationOnly,
    /// G: a part of the unit's reading.
    Derived,
    /// Memory as it stands when it is read.
    MemoryRead,
    /// The energy counter.
    EnergyCounter,
    /// 0: no source.
    Nothing,
}

/// Where one reading stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// On which rung.
    pub rung: Rung,
    /// Better rungs, and why each of them is out of reach.
    pub refused: Vec<Refusal>,
    /// Why the rung failed when it was probed, for a reason that may pass.
    pub doubt: Option<Refused>,
}

/// A rung that is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub rung: Rung,
    /// Why.
    pub why: Refused,
}

/// Why a rung is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// NVML said so.
    Nvml(Absent),
    /// Accounting is off.
    AccountingOff,
    /// The device is cut by MIG, and the call is for whole ones.
    MigOn,
    /// The call answers, and says nothing of it.
    NotReported,
}

impl Rung {
    /// Its letter in the ladder; none for readings that have but one source.
    pub const fn letter(self) -> Option<char> {
        match self {
            Self::Gpm => Some('A'),
            Self::Accounting => Some('B'),
            Self::ProcessSamples => Some('C'),
            Self::DeviceSamples => Some('D'),
            Self::Gauge => Some('E'),
            Self::AllocationOnly => Some('F'),
            Self::Derived => Some('G'),
            Self::Nothing => Some('0'),
            Self::MemoryRead | Self::EnergyCounter => None,
        }
    }

    /// The call of NVML it rests on.
    pub const fn call(self, want: Want) -> &'static str {
        match (self, want) {
            (Self::Gpm, Want::InstanceSm) => "nvmlGpmMigSampleGet",
            (Self::Gpm, _) => "nvmlGpmSampleGet",
            (Self::Accounting, _) => "nvmlDeviceGetAccountingStats_v2",
            (Self::ProcessSamples, _) => "nvmlDeviceGetProcessUtilization",
            (Self::DeviceSamples, _) => "nvmlDeviceGetSamples",
            (Self::Gauge, _) => "nvmlDeviceGetUtilizationRates",
            (Self::MemoryRead, Want::ProcessMemory) => "nvmlDeviceGetComputeRunningProcesses",
            (Self::MemoryRead, _) => "nvmlDeviceGetMemoryInfo",
            (Self::EnergyCounter, _) => "nvmlDeviceGetTotalEnergyConsumption",
            (Self::AllocationOnly | Self::Derived | Self::Nothing, _) => "none",
        }
    }
}

impl Standing {
    /// The label readings have here, or why they are absent for now. Where a share is derived the rule of each interval decides; this names the usual one.
    pub fn quality(&self) -> Quality {
        if let Some(Refused::Nvml(why)) = self.doubt {
            return Quality::from(why);
        }
        match self.rung {
            Rung::Gpm => Quality::IntervalMean,
            Rung::Accounting | Rung::EnergyCounter => Quality::DriverCounter { shared: false },
            Rung::ProcessSamples => Quality::DriverSampled { scaled: false },
            Rung::DeviceSamples => Quality::DriverSampledDevice,
            Rung::Gauge | Rung::MemoryRead => Quality::POINT,
            Rung::AllocationOnly => Quality::AllocationOnly,
            Rung::Derived => Quality::DerivedShare(Rule::SoleProcess),
            Rung::Nothing => self.absence(),
        }
    }

    fn absence(&self) -> Quality {
        let why = self.refused.iter().find_map(|refusal| match refusal.why {
            Refused::Nvml(why) => Some(Why::Nvml(why)),
            Refused::NotReported => Some(Why::NotReported),
            Refused::AccountingOff | Refused::MigOn => None,
        });
        Quality::Unavailable(why.unwrap_or(Why::Nvml(Absent::NotSupported)))
    }
}

impl Refusal {
    /// What an operator could do to raise the device to this rung.
    pub fn advice(&self) -> &'static str {
        advice(self.rung, self.why)
    }
}

impl Refused {
    /// Whether it stays so until someone acts.
    pub fn lasts(self) -> bool {
        match self {
            Self::AccountingOff | Self::MigOn | Self::NotReported => true,
            Self::Nvml(why) => matches!(
                why,
                Absent::NotSupported | Absent::NoPermission | Absent::NoFunction | Absent::VersionMismatch
            ),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvml(why) => why.fmt(f),
            Self::AccountingOff => f.write_str("accounting_off"),
            Self::MigOn => f.write_str("mig_on"),
            Self::NotReported => f.write_str("not_reported"),
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeviceSm => "GPU SM-active time",
            Self::InstanceSm => "instance SM-active time",
            Self::ProcessSm => "process SM-active time",
            Self::DeviceMemory => "GPU memory",
            Self::InstanceMemory => "instance memory",
            Self::ProcessMemory => "process memory",
            Self::Energy => "GPU energy",
        })
    }
}
