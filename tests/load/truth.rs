//! What must stand in the end, by the generator's own sums: one line a GPU and hour.

use crate::fleet::{Owner, Row, Window};
use crate::protobuf::memory_byte_us;
use gpuledger_domain::time::HOUR_US;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result, Write};

#[derive(Debug, Default)]
struct Sums {
    sm_active_us: Option<u128>,
    memory_byte_us: u128,
    covered_us: u128,
}

impl Sums {
    fn add(&mut self, row: &Row) {
        if let Some(sm) = row.sm_active_us {
            *self.sm_active_us.get_or_insert(0) += u128::from(sm);
        }
        self.memory_byte_us += memory_byte_us(row);
        self.covered_us += u128::from(row.covered_us);
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sm = self.sm_active_us.map(|sm| sm.to_string()).unwrap_or_default();
        write!(f, "{sm},{},{}", self.memory_byte_us, self.covered_us)
    }
}

#[derive(Debug, Default)]
struct GpuHour {
    units: Sums,
    processes: Sums,
    owners: BTreeSet<(u64, Owner)>,
}

/// Sums by GPU and hour.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    hours: BTreeMap<(u64, u64, i64), GpuHour>,
}

impl Truth {
    /// Counts a window, once.
    pub(crate) fn add(&mut self, window: &Window) {
        let hour = window.start.floor(HOUR_US).as_micros();
        for row in &window.units {
            self.hours.entry((window.node, row.gpu, hour)).or_default().units.add(row);
        }
        for row in &window.processes {
            let gpu = self.hours.entry((window.node, row.gpu, hour)).or_default();
            gpu.processes.add(row);
            gpu.owners.extend(row.owner.clone().map(|owner| (row.slice, owner)));
        }
    }

    /// Writes `gpu,hour_us,rows,unit sums,process sums`, each sum as SM-active time (empty: never read), memory and covered time.
    pub(crate) fn write(&self, gpu_of: impl Fn(u64, u64) -> String, out: &mut impl Write) -> Result<()> {
        let mut lines: Vec<String> = self
            .hours
            .iter()
            .map(|((node, gpu, hour), sums)| {
                format!(
                    "{},{hour},{},{},{}",
                    gpu_of(*node, *gpu),
                    sums.owners.len(),
                    sums.units,
                    sums.processes
                )
            })
            .collect();
        lines.sort();
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}
