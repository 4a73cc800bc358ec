//! Looking things up in what was measured, by seconds of the timeline.

use crate::node::{Outing, Shown};
use crate::oracle::times;
use gpuledger_wire::bodies::{InventoryGpu, ProcessReading, State, TelemetryWindow, UnitReading};
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;

/// Memory slices: first, number.
pub(crate) type Slices = Option<(u32, u32)>;

impl Outing {
    /// The window in which a second lies.
    pub(crate) fn window(&self, second: u64) -> &TelemetryWindow {
        let at_us = second * 1_000_000;
        let found = self.output.windows().find(|window| {
            let times = times(&self.world, window.start.get(), window.end.get());
            times.pieces().iter().any(|(from, to)| *from <= at_us && at_us < *to)
        });
        found.unwrap_or_else(|| panic!("no window has second {second}\n{}", self.log))
    }

    /// The only row of a unit in the window of a second.
    pub(crate) fn unit(&self, second: u64, gpu: usize, slices: Slices) -> &UnitReading {
        let rows = self.unit_rows(second, gpu, slices);
        let [row] = rows.as_slice() else {
            panic!("{} rows of GPU {gpu} {slices:?} at second {second}", rows.len())
        };
        row
    }

    /// The rows of a unit in the window of a second.
    pub(crate) fn unit_rows(&self, second: u64, gpu: usize, slices: Slices) -> Vec<&UnitReading> {
        let is_it = |row: &&UnitReading| {
            let place = row.placement.map(|it| (u32::from(it.start.get()), u32::from(it.size.get())));
            row.gpu.as_str() == self.uuid(gpu) && place == slices
        };
        self.window(second).units.iter().filter(is_it).collect()
    }

    /// The rows of a process in the window of a second.
    pub(crate) fn processes(&self, second: u64, pid: i64) -> Vec<&ProcessReading> {
        self.window(second).processes.iter().filter(|row| row.pid.get() == pid).collect()
    }

    /// The only row of a process in the window of a second.
    pub(crate) fn process(&self, second: u64, pid: i64) -> &ProcessReading {
        let rows = self.processes(second, pid);
        let [row] = rows.as_slice() else { panic!("{} rows of PID {pid} at second {second}", rows.len()) };
        row
    }

    /// What was said of the whole GPU: second, state, cause.
    pub(crate) fn states(&self, gpu: usize) -> Vec<(u64, State, Option<String>)> {
        let of_gpu = self
            .output
            .states()
            .filter(|(_, state)| state.gpu.as_str() == self.uuid(gpu) && state.placement.is_none());
        of_gpu
            .map(|(at, state)| (self.second(at), state.state, state.cause.as_ref().map(ToString::to_string)))
            .collect()
    }

    /// The entry of a GPU in the last inventory up to a second.
    pub(crate) fn inventory(&self, second: u64, gpu: usize) -> &InventoryGpu {
        let until = self.output.inventories().take_while(|(at, _)| self.second(*at) <= second);
        let entries =
            until.filter_map(|(_, it)| it.gpus.iter().find(|it| it.uuid.as_str() == self.uuid(gpu)));
        entries.last().unwrap_or_else(|| panic!("no inventory up to second {second}"))
    }

    /// Placements of the instances of a GPU in that inventory.
    pub(crate) fn layout(&self, second: u64, gpu: usize) -> Vec<(u32, u32)> {
        let placements = self.inventory(second, gpu).instances.iter().filter_map(|it| it.placement);
        let mut places: Vec<(u32, u32)> =
            placements.map(|it| (u32::from(it.start.get()), u32::from(it.size.get()))).collect();
        places.sort_unstable();
        places
    }

    /// Jobs and pods with what they were placed on, as text: `73 GPU-…`, `73 GPU-… 1g.10gb 3:1`.
    pub(crate) fn placed(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (_, placed) in self.output.placements() {
            let runtime = placed.runtime.as_ref();
            let holder = runtime.and_then(|it| it.slurm_job.as_ref().or(it.pod_uid.as_ref())).unwrap();
            for unit in &placed.units {
                assert_eq!(unit.share, None, "nobody told how large the share is");
                let mig = unit.mig.as_ref().map(|mig| {
                    let place = mig.placement.map(|it| format!(" {}:{}", it.start.get(), it.size.get()));
                    format!(" {}{}", mig.profile.as_ref().map_or("", Name::as_str), place.unwrap_or_default())
                });
                found.push(format!("{holder} {}{}", unit.gpu, mig.unwrap_or_default()));
            }
        }
        found
    }

    /// Reasons of the gaps of a window.
    pub(crate) fn gaps(&self, second: u64) -> Vec<&str> {
        self.window(second).gaps.iter().map(|gap| gap.reason.as_str()).collect()
    }

    /// That one process of the collector did it, to the end.
    pub(crate) fn assert_undisturbed(&self) {
        assert_eq!(self.ended.iter().map(|end| end.code).collect::<Vec<_>>(), [0], "{}", self.log);
    }

    fn second(&self, at: gpuledger_domain::time::Instant) -> u64 {
        let times = times(&self.world, at, at.plus(1));
        times.pieces().first().map_or(0, |(from, _)| from / 1_000_000)
    }
}

impl Shown {
    /// The sum of a metric's samples whose labels hold all of these.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> Option<i64> {
        let samples = self.samples(name).filter(|sample| labels.iter().all(|label| sample.contains(label)));
        let values: Vec<i64> = samples.filter_map(|sample| sample.rsplit_once(' ')?.1.parse().ok()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// The lines of a metric.
    pub(crate) fn samples(&self, name: &str) -> impl Iterator<Item = &str> {
        self.metrics
            .lines()
            .filter(move |line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
    }
}

/// The label of a reading; empty where it has none.
pub(crate) fn label<'a>(quality: &'a BTreeMap<Name, Name>, reading: &str) -> &'a str {
    quality.get(&Name::new(reading).unwrap()).map_or("", Name::as_str)
}
