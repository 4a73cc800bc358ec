//! What one cycle saw, as plain data.

use crate::clock::Stamp;
use crate::integrate::{Discard, Seen};
use crate::ladder::{Ladder, Rung, Want, Why};
use crate::window::{ProcessKey, UnitKey};
use gpuledger_nvml::{
    Absent, AccountingCounters, GpmMean, Memory, Placement, Ppm, Reading, UtilizationRow, UtilizationSample,
};
use std::collections::BTreeMap;

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

impl Observation {
    /// The error of each reading that was tried; of one that was not due, the error it had `before`.
    pub(super) fn errors(&self, ladder: &Ladder, before: &BTreeMap<Want, Absent>) -> BTreeMap<Want, Absent> {
        let kept = |want: Want| before.get(&want).copied();
        let gpm = |mean: &Reading<Option<GpmMean>>| mean.err();
        let memory = |read: &Timed<Reading<Memory>>| read.value.err();
        [
            (Want::DeviceSm, self.device_sm_error(ladder)),
            (Want::InstanceSm, of_instances(&self.gpm, gpm)),
            (Want::ProcessSm, self.process_sm_error(ladder, kept(Want::ProcessSm))),
            (Want::DeviceMemory, of_device(&self.memory, memory)),
            (Want::InstanceMemory, of_instances(&self.memory, memory)),
            (Want::ProcessMemory, self.list_error()),
            (Want::Energy, self.energy.map_or(kept(Want::Energy), |read| read.value.err())),
        ]
        .into_iter()
        .filter_map(|(want, why)| Some((want, why?)))
        .collect()
    }

    fn device_sm_error(&self, ladder: &Ladder) -> Option<Absent> {
        match ladder.rung(Want::DeviceSm) {
            Rung::Gpm => of_device(&self.gpm, |mean| mean.err()),
            Rung::DeviceSamples => self.samples.as_ref()?.value.as_ref().err().copied(),
            Rung::Gauge => self.gauge?.value.err(),
            _ => None,
        }
    }

    /// That accounting does not know a process yet is no error of accounting.
    fn process_sm_error(&self, ladder: &Ladder, before: Option<Absent>) -> Option<Absent> {
        match ladder.rung(Want::ProcessSm) {
            Rung::ProcessSamples => self.rows.as_ref()?.value.as_ref().err().copied(),
            Rung::Accounting => match &self.accounted {
                Some(read) if !read.value.is_empty() => {
                    let errors = read.value.iter().filter_map(|accounted| accounted.counters.err());
                    errors.into_iter().find(|why| *why != Absent::NotFound)
                }
                Some(_) | None => before,
            },
            _ => None,
        }
    }

    fn list_error(&self) -> Option<Absent> {
        match self.processes.value {
            Err(Why::Nvml(why)) => Some(why),
            Ok(_) | Err(_) => None,
        }
    }
}

fn of_device<T>(readings: &[(UnitKey, T)], error: impl Fn(&T) -> Option<Absent>) -> Option<Absent> {
    readings.iter().filter(|(unit, _)| *unit == UnitKey::Device).find_map(|(_, reading)| error(reading))
}

/// An instance that is not found has ended; that is no error of the reading.
fn of_instances<T>(readings: &[(UnitKey, T)], error: impl Fn(&T) -> Option<Absent>) -> Option<Absent> {
    let instances = readings.iter().filter(|(unit, _)| *unit != UnitKey::Device);
    instances.filter_map(|(_, reading)| error(reading)).find(|why| *why != Absent::NotFound)
}
