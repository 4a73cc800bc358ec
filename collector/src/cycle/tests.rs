//! The sampler against a GPU whose truth is known: what is measured, what is not, and that nothing is made up.

mod identity;
mod ladder;
mod mig;
mod sharing;
mod time;
mod totals;
mod whole;
pub(crate) mod world;

use super::{CycleReport, Sampler, SamplerSettings};
use crate::window::Part;
use gpuledger_wire::bodies::{ProcessReading, UnitReading};
use std::collections::BTreeMap;
use std::sync::Arc;
use world::{FakeGpu, S, Script, World};

/// A sampler on a scripted GPU.
struct Rig {
    world: World,
    gpu: FakeGpu,
    sampler: Sampler,
    parts: Vec<Part>,
}

impl Rig {
    fn new(script: Script) -> Self {
        Self::with(script, SamplerSettings::default())
    }

    fn with(script: Script, settings: SamplerSettings) -> Self {
        let world = World::new(script);
        let geometry = Arc::new(gpuledger_wire::geometry::geometry());
        Self { gpu: world.gpu(), world, sampler: Sampler::new(settings, geometry), parts: Vec::new() }
    }

    /// One cycle at this time of the script.
    fn at(&mut self, t: u64) -> CycleReport {
        self.world.go_to(t);
        let report = self.sampler.cycle(&mut self.gpu, &self.world, &self.world);
        self.parts.extend(report.parts.iter().cloned());
        report
    }

    /// A cycle each second, from and to in seconds, both included.
    fn run(&mut self, from: u64, to: u64) -> CycleReport {
        self.run_at(from, to, 0)
    }

    /// The same, each `phase` microseconds later.
    fn run_at(&mut self, from: u64, to: u64, phase: u64) -> CycleReport {
        let mut last = self.at(from * S + phase);
        for second in from + 1..=to {
            last = self.at(second * S + phase);
        }
        last
    }

    fn flush(&mut self) -> &[Part] {
        self.parts.extend(self.sampler.flush());
        for part in &self.parts {
            for covered in
                part.units.iter().map(|u| u.covered_us).chain(part.processes.iter().map(|p| p.covered_us))
            {
                assert!(covered.get() <= part.window.micros(), "{part:?}");
            }
        }
        &self.parts
    }

    /// The row of the whole GPU in the window that begins at this second.
    fn device(&self, second: u64) -> &UnitReading {
        let part = self.part(second);
        part.units.iter().find(|unit| unit.placement.is_none()).unwrap()
    }

    fn part(&self, second: u64) -> &Part {
        let start = world::utc(second * S);
        self.parts.iter().find(|part| part.window.start() == start).unwrap()
    }

    fn process(&self, second: u64, pid: i64) -> &ProcessReading {
        self.part(second).processes.iter().find(|process| process.pid.get() == pid).unwrap()
    }

    /// All windows added up.
    fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for part in &self.parts {
            for unit in &part.units {
                let start = unit.placement.map(|placement| placement.start.get());
                let of = sum.units.entry(start).or_default();
                of.add(
                    unit.sm_active_us.map(|n| n.get()),
                    unit.memory_byte_us.map(|n| n.get()),
                    unit.covered_us.get(),
                );
                sum.energy_mj += unit.energy_mj.map_or(0, |n| n.get());
            }
            for process in &part.processes {
                let of = sum
                    .processes
                    .entry((process.pid.get(), process.started_at.get().as_micros()))
                    .or_default();
                of.add(
                    process.sm_active_us.map(|n| n.get()),
                    process.memory_byte_us.map(|n| n.get()),
                    process.covered_us.get(),
                );
            }
        }
        sum
    }

    fn of_pid(&self, pid: i64) -> Figures {
        let sum = self.sum();
        let mut all = sum.processes.iter().filter(|((of, _), _)| *of == pid).map(|(_, figures)| *figures);
        let first = all.next().unwrap_or_default();
        assert!(all.next().is_none(), "several processes have number {pid}");
        first
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    sm_us: i64,
    byte_us: i128,
    covered_us: i64,
}

impl Figures {
    fn add(&mut self, sm_us: Option<i64>, byte_us: Option<i128>, covered_us: i64) {
        self.sm_us += sm_us.unwrap_or(0);
        self.byte_us += byte_us.unwrap_or(0);
        self.covered_us += covered_us;
    }
}

#[derive(Debug, Default)]
struct Sum {
    units: BTreeMap<Option<u8>, Figures>,
    processes: BTreeMap<(i64, i64), Figures>,
    energy_mj: i64,
}

fn label(
    quality: &BTreeMap<gpuledger_wire::text::Name, gpuledger_wire::text::Name>,
    reading: &str,
) -> String {
    quality
        .iter()
        .find(|(key, _)| key.as_str() == reading)
        .map_or_else(String::new, |(_, label)| label.to_string())
}
