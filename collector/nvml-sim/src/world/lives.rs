//! What lives for a while. Lives are half-open `[from, until)` in microseconds since the start; `u64::MAX` is no end.

use super::track::{Amount, Track};
use crate::code::ReturnCode;
use crate::model::Profile;
use crate::scenario::{ContextKind, Driver, Leaves};
use std::collections::BTreeMap;

/// A clock tick of `/proc/PID/stat` in microseconds: 100 a second.
pub const TICK_US: u64 = 10_000;

/// A GPU instance from creation to destruction.
#[derive(Debug)]
pub struct GpuInstance {
    /// On which GPU.
    pub gpu: usize,
    /// Its id, reused later.
    pub id: u32,
    /// Its profile.
    pub profile: &'static Profile,
    /// First memory slice.
    pub start: u32,
    /// How many lived on this GPU before it.
    pub generation: u32,
    /// Created.
    pub from_us: u64,
    /// Destroyed.
    pub until_us: u64,
    /// How busy it is, in parts per million of its multiprocessors.
    pub busy: Track,
    /// Memory in use.
    pub memory: Amount,
}

/// A compute instance from creation to destruction; with its GPU instance it is a MIG device.
#[derive(Debug)]
pub struct ComputeInstance {
    /// Its GPU instance, by index.
    pub gpu_instance: usize,
    /// Its id within it, reused later.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// First compute slice within its GPU instance.
    pub start: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// UUID of the MIG device; it may come back.
    pub uuid: String,
    /// Place in NVML's list of MIG devices.
    pub index: u32,
    /// Created.
    pub from_us: u64,
    /// Destroyed.
    pub until_us: u64,
}

/// A process from its first sight to its end.
#[derive(Debug)]
pub struct Process {
    /// Number in the init namespace.
    pub pid: u32,
    /// Number in its container.
    pub ns_pid: Option<u32>,
    /// Its user.
    pub uid: u32,
    /// Name of the program.
    pub comm: String,
    /// Lines of its cgroup file.
    pub cgroup: String,
    /// Its environment.
    pub environ: BTreeMap<String, String>,
    /// `/proc` has no entry for it.
    pub has_no_proc: bool,
    /// Start time in ticks since boot, as field 22 of its stat file.
    pub start_ticks: u64,
    /// First on the timeline.
    pub from_us: u64,
    /// Ended.
    pub until_us: u64,
    /// What it leaves behind.
    pub leaves: Leaves,
    /// That is gone.
    pub reaped_us: u64,
}

/// State letter of a process in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Sleeping, as a process mostly is: `S`.
    Alive,
    /// Dead and not waited for: `Z`.
    Zombie,
    /// In a call that cannot be broken off: `D`.
    Stuck,
}

impl Process {
    /// Its entry in `/proc` at an instant; none where there is no entry.
    pub fn state(&self, t_us: u64) -> Option<ProcessState> {
        if self.has_no_proc || t_us < self.from_us || t_us >= self.reaped_us {
            return None;
        }
        match self.leaves {
            _ if t_us < self.until_us => Some(ProcessState::Alive),
            Leaves::Zombie => Some(ProcessState::Zombie),
            Leaves::Stuck => Some(ProcessState::Stuck),
            Leaves::Nothing | Leaves::Rows => None,
        }
    }

    /// When it began, in Unix microseconds, as exactly as `/proc` tells it.
    pub fn started_us(&self, boot_us: i64) -> i64 {
        boot_us.saturating_add(i64::try_from(self.start_ticks * TICK_US).unwrap_or(i64::MAX))
    }
}

/// A context: a process on a GPU or on a MIG device.
#[derive(Debug)]
pub struct Context {
    /// Whose, by index.
    pub process: usize,
    /// On which GPU.
    pub gpu: usize,
    /// In which GPU instance, by index.
    pub gpu_instance: Option<usize>,
    /// In which compute instance, by index.
    pub compute_instance: Option<usize>,
    /// What sort.
    pub kind: ContextKind,
    /// No list names it.
    pub is_hidden: bool,
    /// Opened.
    pub from_us: u64,
    /// Closed: it is busy no more, and accounting counts it as ended.
    pub until_us: u64,
    /// Its row and its memory are gone: later than closed where its process left them behind.
    pub gone_us: u64,
    /// How busy it keeps its unit, in parts per million, after what there was room for.
    pub busy: Track,
    /// Memory it uses.
    pub memory: Amount,
}

/// A driver from its load to its unload.
#[derive(Debug)]
pub struct DriverLife {
    /// How many were loaded before it.
    pub epoch: u32,
    /// The driver.
    pub driver: Driver,
    /// Loaded; 0 for the one of the start.
    pub from_us: u64,
    /// Unloaded.
    pub until_us: u64,
}

/// Something NVML reports by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// When.
    pub t_us: u64,
    /// On which GPU.
    pub gpu: usize,
    /// What.
    pub kind: EventKind,
    /// Id of the GPU instance it names.
    pub gpu_instance: Option<u32>,
    /// Id of the compute instance it names.
    pub compute_instance: Option<u32>,
}

/// What NVML reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A critical error, event type 0x8, with its number as data.
    Xid(u64),
    /// An uncorrectable memory error, 0x2.
    DoubleBit,
    /// MIG instances came or went, 0x100.
    MigChange,
}

/// A failure or a delay to come.
#[derive(Debug)]
pub struct Injection {
    /// From this instant.
    pub from_us: u64,
    /// Until this one.
    pub until_us: u64,
    /// Which functions: a C name; `*` at its end stands for any ending.
    pub call: String,
    /// On which GPU.
    pub gpu: Option<usize>,
    /// On which GPU instance, by its id.
    pub gpu_instance: Option<u32>,
    /// From which matching call on, counted from 1.
    pub nth: u64,
    /// How many of them.
    pub times: u64,
    /// What happens to them.
    pub effect: InjectionEffect,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionEffect {
    /// It answers this.
    Returns(ReturnCode),
    /// It takes that many microseconds before the answer is made.
    Delay(u64),
}
