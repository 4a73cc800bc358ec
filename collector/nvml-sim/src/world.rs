//! A scenario worked out: the state of each GPU at each instant, who lives when, and exact integrals of what is busy and held.
//!
//! A world never changes. `t_us` is always microseconds since the scenario's start by the monotonic clock. Everything that lives is named by its index
//! in one of the lists here; states list what is alive.

mod accounting;
mod build;
mod energy;
mod lives;
mod memory;
mod rings;
mod state;
mod track;

pub use accounting::{AccountingFigures, SAMPLE_US as ACCOUNTING_SAMPLE_US};
pub use lives::{
    ComputeInstance, Context, DeviceEvent, DriverLife, EventKind, GpuInstance, Injection, InjectionEffect,
    Process, ProcessState, TICK_US,
};
pub use memory::MemoryFigures;
pub use rings::{ProcessSample, RING_ENTRIES, UtilizationSample};
pub use state::{ContextState, GpuState, MigDevice, MigState, Presence};
pub use track::{Amount, CELLS, Track};

use crate::code::ReturnCode;
use crate::model::Model;
use crate::scenario::{Fault, GarbageRow, GpuSpec, Namespace, Scenario, Timestamps};
use std::path::Path;

/// A scenario worked out.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    gpus: Vec<Gpu>,
    gpu_instances: Vec<GpuInstance>,
    compute_instances: Vec<ComputeInstance>,
    processes: Vec<Process>,
    contexts: Vec<Context>,
    drivers: Vec<DriverLife>,
    events: Vec<DeviceEvent>,
    jumps: Vec<(u64, i64)>,
    injections: Vec<Injection>,
    echoes: Vec<Period<u32>>,
    garbage: Vec<Period<Vec<GarbageRow>>>,
    process_changes: Vec<u64>,
}

#[derive(Debug)]
struct Gpu {
    model: &'static Model,
    states: Vec<GpuState>,
    busy: Track,
    memory: Amount,
    energy: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Period<T> {
    gpu: usize,
    from_us: u64,
    until_us: u64,
    value: T,
}

impl World {
    /// Works a scenario out.
    ///
    /// # Errors
    /// A step names what is not there, or asks for what cannot be; the fault has the step's line and no file name.
    pub fn new(scenario: Scenario) -> Result<Self, Fault> {
        build::build(scenario)
    }

    /// Reads a scenario from a file and works it out.
    ///
    /// # Errors
    /// As [`crate::scenario::read_file`] and [`World::new`].
    pub fn load(path: &Path) -> Result<Self, Fault> {
        let scenario = crate::scenario::read_file(path)?;
        Self::new(scenario).map_err(|fault| Fault { file: path.display().to_string(), ..fault })
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Number of GPUs.
    pub fn gpu_count(&self) -> usize {
        self.gpus.len()
    }

    /// What the scenario says of a GPU.
    pub fn spec(&self, gpu: usize) -> &GpuSpec {
        &self.scenario.gpus[gpu]
    }

    /// Its model.
    pub fn model(&self, gpu: usize) -> &'static Model {
        self.gpus[gpu].model
    }

    /// NVML's name of it.
    pub fn name(&self, gpu: usize) -> &str {
        self.spec(gpu).name.as_deref().unwrap_or(self.model(gpu).name)
    }

    /// Number of its device file.
    pub fn minor(&self, gpu: usize) -> u32 {
        self.spec(gpu).minor.unwrap_or_else(|| u32::try_from(gpu).unwrap_or(u32::MAX))
    }

    /// Its PCI address, `00000000:3B:00.0`.
    pub fn pci(&self, gpu: usize) -> String {
        self.spec(gpu).pci.clone().unwrap_or_else(|| format!("00000000:{:02X}:00.0", 0x10 + gpu))
    }

    /// The state of a GPU at an instant.
    pub fn state(&self, gpu: usize, t_us: u64) -> &GpuState {
        let states = &self.gpus[gpu].states;
        let next = states.partition_point(|state| state.from_us <= t_us);
        &states[next.saturating_sub(1)]
    }

    /// All states of a GPU in order; each holds until the next begins.
    pub fn states(&self, gpu: usize) -> &[GpuState] {
        &self.gpus[gpu].states
    }

    /// A GPU instance by its index.
    pub fn gpu_instance(&self, index: usize) -> &GpuInstance {
        &self.gpu_instances[index]
    }

    /// All GPU instances that ever live.
    pub fn gpu_instances(&self) -> &[GpuInstance] {
        &self.gpu_instances
    }

    /// A compute instance by its index.
    pub fn compute_instance(&self, index: usize) -> &ComputeInstance {
        &self.compute_instances[index]
    }

    /// All compute instances that ever live.
    pub fn compute_instances(&self) -> &[ComputeInstance] {
        &self.compute_instances
    }

    /// A context by its index.
    pub fn context(&self, index: usize) -> &Context {
        &self.contexts[index]
    }

    /// All contexts that ever live.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// A process by its index.
    pub fn process(&self, index: usize) -> &Process {
        &self.processes[index]
    }

    /// All processes that ever live.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// How busy a GPU is, in parts per million of its multiprocessors.
    pub fn device_busy(&self, gpu: usize) -> &Track {
        &self.gpus[gpu].busy
    }

    /// Memory in use on a GPU.
    pub fn device_memory(&self, gpu: usize) -> &Amount {
        &self.gpus[gpu].memory
    }

    /// The driver loaded at an instant; none while there is none.
    pub fn driver(&self, t_us: u64) -> Option<&DriverLife> {
        self.drivers.iter().rev().find(|life| life.from_us <= t_us).filter(|life| t_us < life.until_us)
    }

    /// Times in which no driver is loaded.
    pub fn driver_gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.drivers.windows(2).map(|pair| (pair[0].until_us, pair[1].from_us)).filter(|(from, to)| from < to)
    }

    /// Events after an instant and up to another one, oldest first.
    pub fn events(&self, after_us: u64, until_us: u64) -> &[DeviceEvent] {
        let first = self.events.partition_point(|event| event.t_us <= after_us);
        let last = self.events.partition_point(|event| event.t_us <= until_us);
        &self.events[first..last.max(first)]
    }

    /// Failures and delays to come.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// The number under which performance metrics of a GPU come back, where it is a wrong one.
    pub fn wrong_echo(&self, gpu: usize, t_us: u64) -> Option<u32> {
        at(&self.echoes, gpu, t_us).copied()
    }

    /// Rows of process utilisation that cannot be true.
    pub fn garbage_rows(&self, gpu: usize, t_us: u64) -> &[GarbageRow] {
        at(&self.garbage, gpu, t_us).map_or(&[], |rows| rows)
    }

    /// What a function answers always, whatever the time: it is missing, or this GPU has no such reading.
    pub fn standing_refusal(&self, call: &str, gpu: Option<usize>) -> Option<ReturnCode> {
        if self.scenario.missing_functions.iter().any(|name| name == call) {
            return Some(ReturnCode::FUNCTION_NOT_FOUND);
        }
        self.scenario.gpus.get(gpu?)?.unreadable.get(call).copied()
    }

    /// The PID by which the caller of the library sees a process; none where it drops out of the lists.
    pub fn visible_pid(&self, process: &Process) -> Option<u32> {
        match (self.scenario.namespace, self.scenario.open_kernel_modules) {
            (Namespace::Container, true) => process.ns_pid,
            _ => Some(process.pid),
        }
    }

    /// Whether the real-time clock ever jumps.
    pub fn has_clock_jumps(&self) -> bool {
        !self.jumps.is_empty()
    }

    /// Sum of the jumps of the real-time clock up to an instant, in microseconds.
    pub fn clock_offset_us(&self, t_us: u64) -> i64 {
        self.jumps.iter().take_while(|(at, _)| *at <= t_us).map(|(_, by)| by).sum()
    }

    /// Unix time in microseconds, jumps of the clock included.
    pub fn realtime_us(&self, t_us: u64) -> i64 {
        self.steady_us(t_us).saturating_add(self.clock_offset_us(t_us))
    }

    /// Unix time in microseconds by a clock that never jumps: the start plus the time since.
    pub fn steady_us(&self, t_us: u64) -> i64 {
        self.scenario.start.0.saturating_add(i64::try_from(t_us).unwrap_or(i64::MAX))
    }

    /// An instant by the clock of the driver's timestamps.
    pub fn stamp_us(&self, t_us: u64) -> u64 {
        let domain = self.driver(t_us).map_or(Timestamps::Realtime, |life| life.driver.timestamps);
        match domain {
            Timestamps::Realtime => u64::try_from(self.realtime_us(t_us)).unwrap_or(0),
            Timestamps::Boottime => self.since_boot_us(t_us),
        }
    }

    /// Microseconds since boot.
    pub fn since_boot_us(&self, t_us: u64) -> u64 {
        self.scenario.uptime.0.saturating_add(t_us)
    }

    /// The instant of boot in Unix microseconds; a whole second.
    pub fn boot_us(&self) -> i64 {
        self.scenario.start.0.saturating_sub(i64::try_from(self.scenario.uptime.0).unwrap_or(i64::MAX))
    }

    /// Number of changes of the set of processes up to an instant: what `/proc` shows changes with it.
    pub fn process_generation(&self, t_us: u64) -> usize {
        self.process_changes.partition_point(|at| *at <= t_us)
    }

    /// The last instant at which the timeline changes anything.
    pub fn last_change_us(&self) -> u64 {
        self.scenario.timeline.last().map_or(0, |step| step.at.0)
    }
}

fn at<T>(periods: &[Period<T>], gpu: usize, t_us: u64) -> Option<&T> {
    let is_now = |period: &&Period<T>| period.gpu == gpu && period.from_us <= t_us && t_us < period.until_us;
    periods.iter().rev().find(is_now).map(|period| &period.value)
}

#[cfg(test)]
mod tests;
