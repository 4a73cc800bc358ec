//! Memory: what was seen is held until the next look, for two periods at most.

use super::Integrator;
use crate::cycle::Observation;
use crate::integrate::hold::Hold;
use crate::ladder::{Ladder, Quality, Want, Why};
use crate::window::{Measure, ProcessKey, Span, Subject, UnitKey};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::Memory;
use std::collections::BTreeSet;

impl Integrator {
    pub(super) fn take_memory(&mut self, at: Instant, seen: &Observation, ladder: &Ladder) {
        self.take_unit_memory(at, seen);
        match &seen.processes.value {
            Ok(processes) => {
                let at_us = seen.processes.at_us;
                let there: BTreeSet<ProcessKey> = processes.iter().map(|process| process.key).collect();
                self.hold_processes(at_us);
                self.process_memory.retain(|key, _| there.contains(key));
                for process in processes {
                    self.see_process(at, at_us, process.key, process.memory_bytes);
                }
            }
            Err(why) => {
                self.hold_processes(seen.ended.monotonic_us);
                let label = match ladder.absence(Want::ProcessMemory) {
                    label @ Quality::Unavailable(_) => label,
                    _ => Quality::Unavailable(*why),
                };
                for key in self.lately(seen.ended.monotonic_us) {
                    self.book.absent(at, Subject::Process(key), Measure::Memory, label);
                }
            }
        }
    }

    fn take_unit_memory(&mut self, at: Instant, seen: &Observation) {
        // Of an instance that is gone, or is another one now, nobody saw the end. Without a layout nobody knows.
        let knows_layout = !seen.torn && seen.processes.value.is_ok();
        self.unit_memory.retain(|unit, _| {
            *unit == UnitKey::Device || !knows_layout || seen.instances.iter().any(|live| live.unit == *unit)
        });
        let is_known = |unit: UnitKey| unit == UnitKey::Device || !seen.torn;
        for (unit, read) in seen.memory.iter().filter(|(unit, _)| is_known(*unit)) {
            if read.value.is_err_and(|why| why.is_device_gone() || why.needs_new_library()) {
                // Nobody saw when it went.
                self.unit_memory.remove(unit);
            }
            let told = self.unit_memory.get_mut(unit).and_then(|hold| hold.advance(read.at_us));
            self.tell_unit(*unit, told);
            match read.value {
                Ok(memory) => {
                    let cap_us = 2 * self.periods.sample_us;
                    let value = (memory.used, quality(memory));
                    self.unit_memory.insert(*unit, Hold::new(value, read.at_us, cap_us));
                }
                Err(why) => {
                    self.book.absent(at, Subject::Unit(*unit), Measure::Memory, Quality::from(why));
                }
            }
        }
    }

    fn tell_unit(&mut self, unit: UnitKey, told: Option<(Span, (u64, Quality))>) {
        if let Some((span, (bytes, quality))) = told {
            let amount = u128::from(bytes) * u128::from(span.length_us());
            self.add(Subject::Unit(unit), Measure::Memory, span, amount, quality);
        }
    }

    fn hold_processes(&mut self, now_us: u64) {
        let told: Vec<(ProcessKey, (Span, u64))> = self
            .process_memory
            .iter_mut()
            .filter_map(|(key, hold)| hold.advance(now_us).map(|told| (*key, told)))
            .collect();
        for (key, (span, bytes)) in told {
            let amount = u128::from(bytes) * u128::from(span.length_us());
            self.add(Subject::Process(key), Measure::Memory, span, amount, Quality::POINT);
        }
    }

    fn see_process(&mut self, at: Instant, at_us: u64, key: ProcessKey, memory_bytes: Option<u64>) {
        let cap_us = 2 * self.periods.sample_us;
        match memory_bytes {
            Some(bytes) => drop(self.process_memory.insert(key, Hold::new(bytes, at_us, cap_us))),
            None => {
                self.process_memory.remove(&key);
                let label = Quality::Unavailable(Why::NotReported);
                self.book.absent(at, Subject::Process(key), Measure::Memory, label);
            }
        }
    }
}

fn quality(memory: Memory) -> Quality {
    Quality::PointGauge { with_reserve: memory.reserved.is_none() }
}
