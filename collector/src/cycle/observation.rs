//! What one cycle saw, as plain data.

use crate::clock::Stamp;
use crate::integrate::{Discard, Seen};
use crate::ladder::Why;
use crate::window::{ProcessKey, UnitKey};
use gpuledger_nvml::{
    Absent, AccountingCounters, GpmMean, Memory, Placement, Ppm, Reading, UtilizationRow, UtilizationSample,
};

/// A value with the monotonic instant right after it was read. Whatever it says of was over by then: nothing is claimed of a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// Microseconds since boot.
    pub at_us: u64,
    /// What was read.
    pub value: T,
}

/// A GPU instance that stood from the beginning to the end of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Which.
    pub unit: UnitKey,
    /// Its memory slices.
    pub placement: Reading<Placement>,
}

/// A reply of the process utilisation ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsReply {
    /// Its rows, not yet believed.
    pub rows: Vec<UtilizationRow>,
}

/// Counters of one process by accounting.
#[derive(Clone, Copy, Debug)]
pub struct Accounted {
    /// Whose.
    pub process: ProcessKey,
    /// What they say.
    pub counters: Reading<AccountingCounters>,
    /// Length of its life in microseconds, once it is over.
    pub life_us: Option<u64>,
}

/// One cycle.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Before the first call.
    pub began: Stamp,
    /// After the last one.
    pub ended: Stamp,
    /// The device did not answer at all.
    pub failed: Option<Absent>,
    /// The layout changed meanwhile.
    pub torn: bool,
    /// GPU instances.
    pub instances: Vec<Live>,
    /// Processes whose identity was the same before and after the readings.
    pub processes: Timed<Result<Vec<Seen>, Why>>,
    /// Memory of units.
    pub memory: Vec<(UnitKey, Timed<Reading<Memory>>)>,
    /// Means by the hardware's counters.
    pub gpm: Vec<(UnitKey, Reading<Option<GpmMean>>)>,
    /// The device's samples, if they were wanted.
    pub samples: Option<Timed<Reading<Vec<UtilizationSample>>>>,
    /// The samples of processes, if they were wanted.
    pub rows: Option<Timed<Reading<RowsReply>>>,
    /// The gauge, if it was wanted.
    pub gauge: Option<Timed<Reading<Ppm>>>,
    /// Accounting, if it was wanted.
    pub accounted: Option<Timed<Vec<Accounted>>>,
    /// The energy counter, when it was due.
    pub energy: Option<Timed<Reading<u64>>>,
    /// Rows left out, one entry each.
    pub discarded: Vec<Discard>,
}
