//! Measured time: telemetry rolled up to minutes per unit and process owner. Evidence and display; a basis only where a pool says so.

mod amounts;
mod join;
pub mod label;
mod owner;
mod telling;
#[cfg(test)]
pub(crate) mod testing;

pub use amounts::Amounts;
pub use join::{Holders, Reading};
pub(crate) use telling::note_telling;

use crate::fact::Placement;
use crate::ids::{GpuId, NodeId};
use crate::time::Instant;
use std::collections::BTreeMap;

/// Whose readings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The unit itself, whoever used it.
    Unit,
    /// Processes of a Slurm job.
    Job(String),
    /// Processes of a pod.
    Pod(String),
    /// Processes of a container that belongs to no known pod.
    Container(String),
    /// A process by boot, number and start, which belongs to none of these.
    Process(String),
}

/// What one owner used of one unit in one UTC hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// Which node measured.
    pub node: NodeId,
    /// Of which GPU.
    pub gpu: GpuId,
    /// Of which unit; none: the whole GPU.
    pub placement: Option<Placement>,
    /// Whose.
    pub owner: Owner,
    /// Begin of the UTC hour.
    pub hour: Instant,
    /// Minutes with readings, by minute of the hour, 0 to 59.
    pub minutes: BTreeMap<u8, Minute>,
    /// Greatest memory use seen in the hour, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Reading, label, covered microseconds of the hour (M-8).
    pub quality: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Readings of a minute. Absent values were not measured, which is not zero (M-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// Time with an active SM, weighted, in microseconds.
    pub sm_active_us: Option<u64>,
    /// Bytes times microseconds.
    pub memory_byte_us: Option<u128>,
    /// Millijoules.
    pub energy_mj: Option<u64>,
    /// Time the readings cover, in microseconds, at most a minute for one collector.
    pub covered_us: u64,
}
