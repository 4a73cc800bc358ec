//! The state of a GPU.

use crate::code::ReturnCode;
use crate::scenario::ComputeMode;

/// The state of a GPU from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuState {
    /// From when.
    pub from_us: u64,
    /// Whether it answers.
    pub presence: Presence,
    /// Access is revoked: every call answers `UNKNOWN`.
    pub is_revoked: bool,
    /// Its MIG mode; none where the model cannot do MIG.
    pub mig: Option<MigState>,
    /// Live GPU instances by index, in order of their ids.
    pub gpu_instances: Vec<usize>,
    /// Live MIG devices in order of their places, which may have holes.
    pub mig_devices: Vec<MigDevice>,
    /// Contexts that hold memory, those left behind by dead processes included, in order of opening.
    pub contexts: Vec<ContextState>,
    /// Since when accounting is on and was not cleared.
    pub accounting_since_us: Option<u64>,
    /// Persistence mode.
    pub has_persistence: bool,
    /// Who may open contexts.
    pub compute_mode: ComputeMode,
    /// What the driver wants done: 0 nothing, 1 reset, 2 reboot, 3 drain.
    pub recovery_action: u32,
    /// Uncorrectable memory errors since the driver was loaded.
    pub uncorrectable_errors: u64,
    /// The same over its life.
    pub uncorrectable_errors_ever: u64,
}

/// Whether a GPU answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Present,
    /// It fell off the bus.
    Lost,
    /// It wants a reset.
    ResetRequired,
}

/// A MIG mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigState {
    /// Now.
    pub is_on: bool,
    /// After the next reset.
    pub is_on_pending: bool,
}

/// A place in the list of MIG devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigDevice {
    /// The place.
    pub index: u32,
    /// The compute instance, by index.
    pub compute_instance: usize,
}

/// A context at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextState {
    /// Which, by index.
    pub context: usize,
    /// Memory it uses.
    pub memory_bytes: u64,
    /// NVML does not know it.
    pub is_memory_unknown: bool,
}

impl GpuState {
    /// What every call to this GPU answers, where it answers at all.
    pub fn refusal(&self) -> Option<ReturnCode> {
        match self.presence {
            Presence::Lost => Some(ReturnCode::GPU_IS_LOST),
            Presence::ResetRequired => Some(ReturnCode::RESET_REQUIRED),
            Presence::Present if self.is_revoked => Some(ReturnCode::UNKNOWN),
            Presence::Present => None,
        }
    }

    /// Whether MIG is on now.
    pub fn is_mig_on(&self) -> bool {
        self.mig.is_some_and(|mig| mig.is_on)
    }
}
