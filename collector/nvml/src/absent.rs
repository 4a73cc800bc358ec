//! Why a reading is absent.

use std::fmt;

/// A value, or the reason why there is none. Never a zero that stands for "could not read".
pub type Reading<T> = Result<T, Absent>;

/// Why a reading could not be taken. The text form is what stands in `unavailable(…)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Absent {
    /// The device or its mode has no such reading (return code 3).
    NotSupported,
    /// Needs more privilege (4).
    NoPermission,
    /// No such thing now (6): a hole in the MIG indices, an ended process.
    NotFound,
    /// The device fell off the bus (15): nothing comes back before a reset or a reboot.
    Lost,
    /// The device wants a reset (16).
    ResetRequired,
    /// No kernel driver (9).
    DriverNotLoaded,
    /// The library and the kernel driver are of different versions (18): the process must start anew.
    DriverMismatch,
    /// NVML was shut down, or never initialised (1).
    Uninitialized,
    /// 999, which is also the face of a revoked device cgroup: access was lost.
    Unknown,
    /// The library has no such function: an older driver.
    NoFunction,
    /// The library knows the function and not this version of its structure (25).
    VersionMismatch,
    /// It did not answer in time.
    TimedOut,
    /// It answered, and the answer cannot be true.
    Implausible,
    /// Nothing was measured yet: a mean needs two readings.
    NotYet,
    /// Another return code.
    Code(u32),
}

impl Absent {
    /// The device is gone until someone acts: other calls to it will not do better.
    pub fn is_device_gone(self) -> bool {
        matches!(self, Self::Lost | Self::ResetRequired)
    }

    /// The whole library must be initialised anew.
    pub fn needs_new_library(self) -> bool {
        matches!(self, Self::DriverNotLoaded | Self::DriverMismatch | Self::Uninitialized)
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::NotSupported => "not_supported",
            Self::NoPermission => "no_permission",
            Self::NotFound => "not_found",
            Self::Lost => "lost",
            Self::ResetRequired => "reset_required",
            Self::DriverNotLoaded => "driver_not_loaded",
            Self::DriverMismatch => "driver_mismatch",
            Self::Uninitialized => "uninitialized",
            Self::Unknown => "unknown",
            Self::NoFunction => "no_function",
            Self::VersionMismatch => "version_mismatch",
            Self::TimedOut => "timed_out",
            Self::Implausible => "implausible",
            Self::NotYet => "not_yet",
            Self::Code(code) => return write!(f, "code_{code}"),
        };
        f.write_str(word)
    }
}
