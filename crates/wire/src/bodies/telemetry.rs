//! `telemetry.window`: what a collector measured over one window.

use super::{Body, Placement, Problem, ordered};
use crate::number::{BigCount, Count};
use crate::text::Name;
use crate::time::Time;
use gpuledger_domain::time::{HOUR_US, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One window of one collector stream, identified by `(node, stream, sequence)` (I-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TelemetryWindow {
    /// Which node.
    pub node: Name,
    /// The node's boot.
    pub boot_id: Name,
    /// Random id of the collector's spool.
    pub stream: Name,
    /// Place in the stream, without holes.
    pub sequence: Count,
    /// First instant.
    pub start: Time,
    /// First instant after it; proof that the node lived then.
    pub end: Time,
    /// Readings of units.
    #[serde(default)]
    pub units: Vec<UnitReading>,
    /// Readings of processes.
    #[serde(default)]
    pub processes: Vec<ProcessReading>,
    /// Times in which nothing could be read.
    #[serde(default)]
    pub gaps: Vec<Gap>,
}

/// Readings of a GPU or of one MIG instance. What could not be taken is absent and `quality` says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitReading {
    /// Which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// SM-active time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_active_us: Option<Count>,
    /// Memory in use, in bytes times microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_byte_us: Option<BigCount>,
    /// Most memory in use at once, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<Count>,
    /// Energy in millijoules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<Count>,
    /// Microseconds of the window that the readings of SM-active time and memory cover at least; that of energy, where it stands alone.
    pub covered_us: Count,
    /// Reading to the microseconds of the window that it covers, where those are not `covered_us` (M-8).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coverage: BTreeMap<Name, Count>,
    /// Reading to its quality label: `interval_mean`, `driver_counter`, …, `unavailable(reason)` (M-8).
    #[serde(default)]
    pub quality: BTreeMap<Name, Name>,
}

impl UnitReading {
    /// Microseconds of the window that a reading covers, by its name in `quality`; a mean is the reading divided by this.
    pub fn covered_us_of(&self, reading: &str) -> Count {
        covered_us_of(&self.coverage, self.covered_us, reading)
    }
}

/// Readings of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReading {
    /// On which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Process number, which comes back; with `boot_id` and `started_at` it names one process.
    pub pid: Count,
    /// When the process began.
    pub started_at: Time,
    /// Container id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Name>,
    /// Kubernetes pod UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<Name>,
    /// Slurm job number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slurm_job: Option<Name>,
    /// SM-active time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_active_us: Option<Count>,
    /// Memory in use, in bytes times microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_byte_us: Option<BigCount>,
    /// Microseconds of the window that the readings cover at least.
    pub covered_us: Count,
    /// Reading to the microseconds of the window that it covers, where those are not `covered_us` (M-8).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coverage: BTreeMap<Name, Count>,
    /// Reading to its quality label.
    #[serde(default)]
    pub quality: BTreeMap<Name, Name>,
}

impl ProcessReading {
    /// Microseconds of the window that a reading covers, by its name in `quality`; a mean is the reading divided by this.
    pub fn covered_us_of(&self, reading: &str) -> Count {
        covered_us_of(&self.coverage, self.covered_us, reading)
    }
}

/// A time in which nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// First instant.
    pub start: Time,
    /// First instant after it.
    pub end: Time,
    /// Why.
    pub reason: Name,
}

impl Body for TelemetryWindow {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        ordered("", self.start, self.end)?;
        let length_us = self.end.get().since(self.start.get());
        if length_us > HOUR_US {
            return Err(Problem::new(
                "end",
                format_args!("is {length_us} us after start, expected at most an hour"),
            ));
        }
        if self.sequence.get() == i64::MAX {
            return Err(Problem::new(
                "sequence",
                "is 9223372036854775807, which leaves none for the next window",
            ));
        }
        for (index, unit) in self.units.iter().enumerate() {
            within(length_us, ("units", index), unit.covered_us, &unit.coverage)?;
        }
        for (index, process) in self.processes.iter().enumerate() {
            within(length_us, ("processes", index), process.covered_us, &process.coverage)?;
        }
        for (index, gap) in self.gaps.iter().enumerate() {
            ordered(&format!("gaps[{index}]."), gap.start, gap.end)?;
        }
        Ok(())
    }
}

fn covered_us_of(coverage: &BTreeMap<Name, Count>, covered_us: Count, reading: &str) -> Count {
    coverage.iter().find(|(name, _)| name.as_str() == reading).map_or(covered_us, |(_, own)| *own)
}

/// Nothing covers more than the window.
fn within(
    length_us: i64,
    (list, index): (&str, usize),
    covered_us: Count,
    coverage: &BTreeMap<Name, Count>,
) -> Result<(), Problem> {
    let all = std::iter::once(("covered_us".to_owned(), covered_us));
    let each = coverage.iter().map(|(reading, own)| (format!("coverage.{reading}"), *own));
    match all.chain(each).find(|(_, covered)| covered.get() > length_us) {
        None => Ok(()),
        Some((member, covered)) => Err(Problem::new(
            format!("{list}[{index}].{member}"),
            format_args!("is {}, the window has {length_us} us", covered.get()),
        )),
    }
}
