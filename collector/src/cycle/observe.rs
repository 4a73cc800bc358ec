//! The calls of one cycle, in their order.

use super::observation::{Accounted, Live, Observation, RowsReply, Timed};
use super::report::{Gauges, LiveProcess};
use crate::clock::{Clock, Stamp, Ticks};
use crate::integrate::{Discard, Integrator, Seen};
use crate::ladder::{Ladder, Rung, Want, Why};
use crate::process::{Owner, ProcessId, Processes};
use crate::topology::{Tracker, is_same_layout};
use crate::window::{ProcessKey, UnitKey};
use gpuledger_nvml::{Absent, GpmMean, Gpu, Memory, MigInstance, Placement, ProcessRow, Reading, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whom and what a cycle asks.
pub(super) struct Cycle<'a> {
    pub(super) gpu: &'a mut dyn Gpu,
    pub(super) processes: &'a dyn Processes,
    pub(super) clock: &'a dyn Clock,
    pub(super) ladder: &'a Ladder,
    pub(super) tracker: &'a mut Tracker,
    pub(super) integrator: &'a mut Integrator,
    /// Whether energy, accounting and gauges are due.
    pub(super) is_slow: bool,
}

/// What a cycle saw, and what is only shown.
pub(super) struct Sight {
    pub(super) observation: Observation,
    pub(super) live: Vec<LiveProcess>,
    pub(super) gauges: Option<Gauges>,
}

/// A reading of each unit.
type ByUnit<T> = Vec<(UnitKey, T)>;
/// The list of processes, once it is believed.
type List = Timed<Result<Vec<Seen>, Why>>;

/// Rows of processes whose identity held still.
struct Confirmed {
    processes: List,
    live: Vec<LiveProcess>,
    discarded: Vec<Discard>,
}

/// Readings of units that stood from the beginning of the cycle to its end.
struct Stood<M, G> {
    instances: Vec<Live>,
    memory: ByUnit<M>,
    gpm: ByUnit<G>,
}

/// Rows of processes that the kernel knew when they were read.
struct Listed {
    at_us: u64,
    rows: Vec<(ProcessRow, UnitKey, ProcessId)>,
    discarded: Vec<Discard>,
}

impl Cycle<'_> {
    /// Looks once. `layout`: the MIG devices before anything else was read; none with MIG off.
    pub(super) fn observe(mut self, began: Stamp, layout: Option<Reading<Vec<MigInstance>>>) -> Sight {
        let listed = self.list(layout.as_ref());
        let samples = self.wants_samples().then(|| {
            let since_us = self.integrator.samples_since_us();
            self.timed(|cycle| cycle.gpu.utilization_samples(since_us))
        });
        if let Some(Timed { value: Ok(samples), .. }) = &samples {
            let now = self.clock.now();
            self.integrator.learn_time(samples.iter().map(|sample| sample.timestamp_us), now);
        }
        let rows = (self.ladder.rung(Want::ProcessSm) == Rung::ProcessSamples).then(|| self.rows());
        let units = self.units(!matches!(layout, Some(Err(_))));
        let memory = self.memory(&units);
        let gpm = self.gpm(&units);
        let gauge = (self.ladder.rung(Want::DeviceSm) == Rung::Gauge)
            .then(|| self.timed(|cycle| cycle.gpu.utilization_gauge()));
        let gauges = self.is_slow.then(|| self.gauges());
        let energy =
            gauges.map(|gauges| Timed { at_us: self.clock.now().monotonic_us, value: gauges.energy_mj });
        let accounted = self.accounted(listed.as_ref().ok());
        let counters = accounted.iter().flat_map(|read| &read.value).filter_map(|one| one.counters.ok());
        let now = self.clock.now();
        self.integrator.learn_time(counters.map(|counters| counters.start_us), now);
        let Confirmed { processes, live, mut discarded } = self.confirm(listed);
        let torn = self.is_torn(layout);
        let Stood { instances, memory, gpm } = self.keep_what_stood(&units, memory, gpm);
        let processes = untorn(processes, torn, &mut discarded);
        let observation = Observation {
            began,
            ended: self.clock.now(),
            failed: None,
            torn,
            instances,
            processes,
            memory,
            gpm,
            samples,
            rows,
            gauge,
            accounted,
            energy,
            discarded,
        };
        Sight { observation, live: if torn { Vec::new() } else { live }, gauges }
    }

    fn timed<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Timed<T> {
        let value = read(self);
        Timed { at_us: self.clock.now().monotonic_us, value }
    }

    /// The device's own samples end the time that the samples of processes speak of; so they are read just before those.
    fn wants_samples(&self) -> bool {
        self.ladder.rung(Want::DeviceSm) == Rung::DeviceSamples
            || self.ladder.rung(Want::ProcessSm) == Rung::ProcessSamples
    }

    /// Process rows, then who the kernel says they are.
    fn list(&mut self, layout: Option<&Reading<Vec<MigInstance>>>) -> Result<Listed, Timed<Absent>> {
        let rows = self.timed(|cycle| match layout {
            Some(Err(why)) => Err(*why),
            Some(Ok(_)) | None => cycle.gpu.processes(),
        });
        let at_us = rows.at_us;
        let rows = rows.value.map_err(|value| Timed { at_us, value })?;
        let mut listed = Listed { at_us, rows: Vec::new(), discarded: Vec::new() };
        for row in rows {
            match (self.unit_of(row), self.processes.identity(row.pid)) {
                (None, _) => listed.discarded.push(Discard::NoInstance),
                (_, None) => listed.discarded.push(Discard::Vanished),
                (Some(unit), Some(process)) => listed.rows.push((row, unit, process)),
            }
        }
        Ok(listed)
    }

    fn unit_of(&self, row: ProcessRow) -> Option<UnitKey> {
        if !self.ladder.mig {
            return Some(UnitKey::Device);
        }
        let instance = self.tracker.instance(row.gpu_instance?)?;
        Some(UnitKey::Instance { id: instance.id, generation: instance.generation })
    }

    /// The reply to a question asked by a guess at the driver's clock is thrown away once the clock is known.
    fn rows(&mut self) -> Timed<Reading<RowsReply>> {
        let mut reply = self.ask_rows();
        if let Ok(RowsReply { rows }) = &reply.value {
            let now = self.clock.now();
            if self.integrator.learn_time(rows.iter().map(|row| row.timestamp_us), now) {
                reply = self.ask_rows();
            }
        }
        reply
    }

    fn ask_rows(&mut self) -> Timed<Reading<RowsReply>> {
        let since_us = self.integrator.rows_since_us(self.clock.now().monotonic_us);
        self.timed(|cycle| cycle.gpu.process_utilization(since_us).map(|rows| RowsReply { rows }))
    }

    /// The device, and its instances if the layout was read: what was seen before may be gone.
    fn units(&self, is_layout_read: bool) -> Vec<(UnitKey, Scope)> {
        let are_there = self.ladder.mig && is_layout_read;
        let instances = self.tracker.instances().filter(|_| are_there).map(|instance| {
            let unit = UnitKey::Instance { id: instance.id, generation: instance.generation };
            (unit, Scope::GpuInstance(instance.id))
        });
        std::iter::once((UnitKey::Device, Scope::Device)).chain(instances).collect()
    }

    fn memory(&mut self, units: &[(UnitKey, Scope)]) -> ByUnit<Timed<Reading<Memory>>> {
        let mut memory = Vec::with_capacity(units.len());
        for (unit, scope) in units {
            let read = self.timed(|cycle| cycle.gpu.memory(*scope));
            self.doubt(*scope, read.value.err());
            memory.push((*unit, read));
        }
        memory
    }

    fn gpm(&mut self, units: &[(UnitKey, Scope)]) -> ByUnit<Reading<Option<GpmMean>>> {
        let mut means = Vec::new();
        for (unit, scope) in units {
            let (want, generation) = match unit {
                UnitKey::Device => (Want::DeviceSm, 0),
                UnitKey::Instance { generation, .. } => (Want::InstanceSm, *generation),
            };
            if self.ladder.rung(want) == Rung::Gpm {
                let mean = self.gpu.gpm_mean(*scope, generation, &Ticks(self.clock));
                self.doubt(*scope, mean.err());
                means.push((*unit, mean));
            }
        }
        means
    }

    /// An instance that a call does not find may be another one when it is seen again.
    fn doubt(&mut self, scope: Scope, error: Option<Absent>) {
        if let (Scope::GpuInstance(id), Some(Absent::NotFound)) = (scope, error) {
            self.tracker.doubt(Some(id));
        }
    }

    fn gauges(&mut self) -> Gauges {
        Gauges {
            utilization: self.gpu.utilization_gauge(),
            power_mw: self.gpu.power_mw(),
            temperature_c: self.gpu.temperature_c(),
            clocks_mhz: self.gpu.clocks_mhz(),
            uncorrectable_errors: self.gpu.uncorrectable_errors(),
            recovery_action: self.gpu.recovery_action(),
            energy_mj: self.gpu.energy_mj(),
        }
    }

    /// Accounting of all processes when it is due, and at once of those that have left the list.
    fn accounted(&mut self, listed: Option<&Listed>) -> Option<Timed<Vec<Accounted>>> {
        if self.ladder.rung(Want::ProcessSm) != Rung::Accounting {
            return None;
        }
        let there: BTreeSet<ProcessKey> = listed?
            .rows
            .iter()
            .map(|(_, unit, process)| ProcessKey { unit: *unit, process: *process })
            .collect();
        let gone: Vec<ProcessKey> = self
            .integrator
            .roster()
            .live()
            .map(|(key, _)| *key)
            .filter(|key| !there.contains(key) && !there.iter().any(|other| is_reuse(other, key)))
            .collect();
        let gone = gone.into_iter().map(|key| (key, true));
        let due = there.into_iter().filter(|_| self.is_slow).map(|key| (key, false));
        let asked: Vec<(ProcessKey, bool)> = gone.chain(due).collect();
        Some(self.timed(|cycle| {
            asked.into_iter().map(|(process, is_over)| cycle.account(process, is_over)).collect()
        }))
    }

    fn account(&mut self, process: ProcessKey, is_over: bool) -> Accounted {
        let pid = process.process.pid;
        let counters = self.gpu.accounting_counters(pid);
        let is_over = is_over || counters.is_ok_and(|counters| !counters.is_running);
        let stats = is_over.then(|| self.gpu.accounting_stats(pid)).and_then(Result::ok);
        let life_us =
            stats.filter(|stats| !stats.is_running).map(|stats| stats.time_ms.saturating_mul(1_000));
        Accounted { process, counters, life_us }
    }

    /// Looks at start times again: a number that went to another process meanwhile is a row of nobody.
    fn confirm(&self, listed: Result<Listed, Timed<Absent>>) -> Confirmed {
        let listed = match listed {
            Ok(listed) => listed,
            Err(Timed { at_us, value }) => {
                let processes = Timed { at_us, value: Err(Why::Nvml(value)) };
                return Confirmed { processes, live: Vec::new(), discarded: Vec::new() };
            }
        };
        let (mut discarded, mut live) = (listed.discarded, Vec::new());
        let mut seen: BTreeMap<ProcessKey, Seen> = BTreeMap::new();
        for (row, unit, process) in listed.rows {
            match self.processes.identity(row.pid) {
                Some(still) if still == process => {}
                Some(_) => {
                    discarded.push(Discard::ReusedPid);
                    continue;
                }
                None => {
                    discarded.push(Discard::Vanished);
                    continue;
                }
            }
            let owner = self.owner(ProcessKey { unit, process });
            live.push(LiveProcess {
                process,
                owner: Arc::clone(&owner),
                kind: row.kind,
                gpu_instance: row.gpu_instance,
                compute_instance: row.compute_instance,
                memory_bytes: row.memory_bytes,
            });
            merge(&mut seen, ProcessKey { unit, process }, row, owner);
        }
        let processes = Timed { at_us: listed.at_us, value: Ok(seen.into_values().collect()) };
        Confirmed { processes, live, discarded }
    }

    /// Owners change seldom: asked when a process is new, and then with the slow readings.
    fn owner(&self, key: ProcessKey) -> Arc<Owner> {
        match self.integrator.roster().get(&key) {
            Some(entry) if !self.is_slow => Arc::clone(&entry.owner),
            Some(_) | None => Arc::new(self.processes.owner(key.process)),
        }
    }

    /// Reads the layout again. One that cannot be read twice was not seen to hold still.
    fn is_torn(&mut self, before: Option<Reading<Vec<MigInstance>>>) -> bool {
        let Some(Ok(before)) = before else { return false };
        match self.gpu.instances() {
            Ok(after) if is_same_layout(&before, &after) => false,
            Ok(after) => {
                self.tracker.update(&after);
                true
            }
            Err(_) => true,
        }
    }

    /// Readings of units that still stand under the same generation.
    fn keep_what_stood<M, G>(
        &self,
        units: &[(UnitKey, Scope)],
        mut memory: ByUnit<M>,
        mut gpm: ByUnit<G>,
    ) -> Stood<M, G> {
        let live = |unit: UnitKey| self.standing(unit).map(|placement| Live { unit, placement });
        let instances: Vec<Live> = units.iter().filter_map(|(unit, _)| live(*unit)).collect();
        let stood = |unit| unit == UnitKey::Device || instances.iter().any(|live| live.unit == unit);
        memory.retain(|(unit, _)| stood(*unit));
        gpm.retain(|(unit, _)| stood(*unit));
        Stood { instances, memory, gpm }
    }

    fn standing(&self, unit: UnitKey) -> Option<Reading<Placement>> {
        let UnitKey::Instance { id, generation } = unit else { return None };
        let instance = self.tracker.instance(id).filter(|instance| instance.generation == generation)?;
        Some(instance.placement())
    }
}

/// What a list says is void if the layout changed meanwhile.
fn untorn(processes: List, torn: bool, discarded: &mut Vec<Discard>) -> List {
    match processes.value {
        Ok(seen) if torn => {
            discarded.extend(seen.iter().map(|_| Discard::Torn));
            Timed { at_us: processes.at_us, value: Err(Why::Torn) }
        }
        value => Timed { at_us: processes.at_us, value },
    }
}

fn is_reuse(one: &ProcessKey, other: &ProcessKey) -> bool {
    one.process.pid == other.process.pid
}

/// A process with contexts in several compute instances of one GPU instance is one process there; its memory adds up.
fn merge(seen: &mut BTreeMap<ProcessKey, Seen>, key: ProcessKey, row: ProcessRow, owner: Arc<Owner>) {
    let one = Seen { key, kind: row.kind, memory_bytes: row.memory_bytes, owner };
    seen.entry(key)
        .and_modify(|known| {
            let both = known.memory_bytes.zip(row.memory_bytes);
            known.memory_bytes = both.map(|(a, b)| a.saturating_add(b));
            known.kind = known.kind.min(row.kind);
        })
        .or_insert(one);
}

impl Sight {
    /// A device that does not answer: nothing more is asked of it in this cycle.
    pub(super) fn failed(began: Stamp, ended: Stamp, why: Absent) -> Self {
        let processes = Timed { at_us: ended.monotonic_us, value: Err(Why::Nvml(why)) };
        let observation = Observation {
            began,
            ended,
            failed: Some(why),
            torn: false,
            instances: Vec::new(),
            processes,
            memory: Vec::new(),
            gpm: Vec::new(),
            samples: None,
            rows: None,
            gauge: None,
            accounted: None,
            energy: None,
            discarded: Vec::new(),
        };
        Self { observation, live: Vec::new(), gauges: Some(Gauges::absent(why)) }
    }
}
