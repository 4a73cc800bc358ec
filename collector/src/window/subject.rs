//! What a reading is about.

use crate::process::ProcessId;
use std::fmt;

/// A unit of one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitKey {
    /// The whole GPU.
    Device,
    /// A GPU instance. Its compute instances share its memory and its counters.
    Instance {
        /// NVML's id.
        id: u32,
        /// Ours.
        generation: u64,
    },
}

/// A process on a unit. One that has contexts in two GPU instances is told once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// Where.
    pub unit: UnitKey,
    /// Which.
    pub process: ProcessId,
}

/// A unit or a process on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// All of a unit.
    Unit(UnitKey),
    /// One process on it.
    Process(ProcessKey),
}

/// What is integrated over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// SM-active time. Amounts are in parts per million of a microsecond, so that a share of an interval is exact.
    Sm,
    /// Memory in use. Amounts are bytes times microseconds.
    Memory,
    /// Energy. Amounts are millijoules.
    Energy,
}

impl Measure {
    /// How many of an amount make one of what a window tells.
    pub(crate) const fn divisor(self) -> u128 {
        match self {
            Self::Sm => 1_000_000,
            Self::Memory | Self::Energy => 1,
        }
    }
}

impl fmt::Display for Measure {
    /// The member of a window's rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sm => "sm_active_us",
            Self::Memory => "memory_byte_us",
            Self::Energy => "energy_mj",
        })
    }
}

/// A half-open piece of the monotonic clock, in microseconds since boot; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    from_us: u64,
    to_us: u64,
}

impl Span {
    /// `[from, to)`, or none where nothing lies between.
    pub fn new(from_us: u64, to_us: u64) -> Option<Self> {
        (from_us < to_us).then_some(Self { from_us, to_us })
    }

    /// First microsecond.
    pub const fn from_us(self) -> u64 {
        self.from_us
    }

    /// First microsecond after it.
    pub const fn to_us(self) -> u64 {
        self.to_us
    }

    /// Its length, above zero.
    pub const fn length_us(self) -> u64 {
        self.to_us - self.from_us
    }

    /// The part from an instant on.
    pub fn after(self, from_us: u64) -> Option<Self> {
        Self::new(self.from_us.max(from_us), self.to_us)
    }
}
