//! Taking one sample: three cycles of each GPU, one period apart.

use crate::clock::{Clock, Stamp};
use crate::cycle::{CycleReport, Sampler, SamplerSettings};
use crate::driver::{DriverError, Listed, Opened, list};
use crate::lanes::together;
use crate::process::{BootError, Processes, Procfs};
use crate::settings::Settings;
use crate::topology::inventory;
use crate::window::{ClosedWindow, NodeWindows};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::time::MINUTE_US;
use gpuledger_nvml::{Absent, Driver, Gpu};
use gpuledger_wire::bodies::{InventoryGpu, NodeInventory};
use gpuledger_wire::geometry::geometry;
use gpuledger_wire::text::{Name, TextError};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Periods that a sample takes. After one, all readings are there but that of the driver's ring of an idle device: there the last second is still
/// on its way.
const PERIODS: u64 = 2;
/// How often it is tried. A GPU that hangs, or takes long, holds a cycle for as long as a call may take; then the others are looked at so late
/// that nothing of the time between can be told, and all are measured anew.
const ATTEMPTS: u32 = 3;

/// Why no sample could be taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// Nothing can be asked of any GPU.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no procfs.
    #[error(transparent)]
    Procfs(#[from] BootError),
    /// The node's name cannot travel.
    #[error("node: {0}")]
    Node(#[from] TextError),
    /// The clock was set while it was taken.
    #[error("UTC was set meanwhile: try again")]
    ClockSet,
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// What was measured, from the first cycle to the last.
    pub window: ClosedWindow,
    /// Of what.
    pub inventory: NodeInventory,
    /// GPUs that could not be read, by index.
    pub unreadable: Vec<(u32, Absent)>,
}

impl Sampled {
    /// Whether a GPU hangs. Its thread is left behind, and a further sample would leave another.
    pub fn hangs(&self) -> bool {
        self.unreadable.iter().any(|(_, why)| *why == Absent::TimedOut)
    }
}

/// Something of several GPUs, by index.
type ByIndex<T> = Vec<(u32, T)>;

/// One GPU that is sampled.
struct Lane {
    name: Name,
    gpu: Box<dyn Gpu>,
    sampler: Sampler,
}

/// The GPUs of a sample.
struct Round {
    node: Name,
    every: SamplerSettings,
    models: Arc<Geometry>,
    processes: Arc<Procfs>,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    windows: NodeWindows,
    lanes: ByIndex<Lane>,
    /// Those that were left behind.
    late: Vec<Name>,
    inventory: Vec<InventoryGpu>,
    unreadable: ByIndex<Absent>,
}

/// All cycles, or those up to one that was held.
struct Attempt {
    /// What was wrong in the last one.
    troubles: ByIndex<Absent>,
    is_held: bool,
}

/// Measures for two sample periods.
///
/// # Errors
/// Nothing could be measured at all. A GPU that cannot be read, or hangs, is no error: the sample names it.
pub fn take(
    driver: &Arc<dyn Driver>,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Sampled, TakeError> {
    let node = Name::new(&settings.node)?;
    let deadline = settings.call_deadline();
    let Listed { devices, .. } = list(driver, deadline)?;
    let processes = Arc::new(Procfs::open(&settings.proc_root, None)?);
    let boot_id = processes.boot_id().clone();
    // A window of a minute, and everything looked at in each cycle.
    let period_us = settings.period_us();
    let every = SamplerSettings { period_us, slow_period_us: period_us, window_us: MINUTE_US };
    let models = Arc::new(geometry());
    let (lanes, unreadable) = lanes(devices, every, &models);
    let windows = NodeWindows::new(node.clone(), boot_id.clone(), every.frame(), 0, clock.now().real);
    let mut round = Round {
        node: node.clone(),
        every,
        models,
        processes,
        clock: Arc::clone(clock),
        deadline,
        windows,
        lanes,
        late: Vec::new(),
        inventory: Vec::new(),
        unreadable,
    };
    let troubles = round.measure()?;
    round.unreadable.extend(troubles);
    round.unreadable.sort_by_key(|(index, _)| *index);
    let Round { clock, mut windows, lanes, inventory: entries, unreadable, .. } = round;
    for (_, mut lane) in lanes {
        let parts = lane.sampler.flush();
        if !parts.is_empty() {
            windows.add(&lane.name, clock.now().real, parts);
        }
    }
    // Two where a GPU that hangs carried it past a minute: the first has the most of it.
    let window = windows.flush(clock.now().real).into_iter().next().ok_or(TakeError::ClockSet)?;
    Ok(Sampled { window, inventory: inventory(node, boot_id, entries), unreadable })
}

/// The devices that can be sampled, and those that cannot.
fn lanes(
    devices: Vec<Opened>,
    every: SamplerSettings,
    models: &Arc<Geometry>,
) -> (ByIndex<Lane>, ByIndex<Absent>) {
    let (mut lanes, mut unreadable) = (Vec::new(), Vec::new());
    for Opened { index, device } in devices {
        let named = device.and_then(|(identity, gpu)| {
            Ok((Name::new(&identity.uuid).map_err(|_| Absent::Implausible)?, gpu))
        });
        match named {
            Ok((name, gpu)) => {
                let sampler = Sampler::new(every, Arc::clone(models));
                lanes.push((index, Lane { name, gpu, sampler }));
            }
            Err(why) => unreadable.push((index, why)),
        }
    }
    (lanes, unreadable)
}

impl Round {
    /// All cycles, until one attempt goes through without being held. Gives what was wrong in the last cycle.
    fn measure(&mut self) -> Result<ByIndex<Absent>, DriverError> {
        let mut attempt = self.attempt()?;
        for _ in 1..ATTEMPTS {
            if !attempt.is_held {
                break;
            }
            attempt = self.attempt()?;
        }
        Ok(attempt.troubles)
    }

    /// Cycles one period apart. What holds the last one comes too late to hold anything up.
    fn attempt(&mut self) -> Result<Attempt, DriverError> {
        let period_us = self.every.period_us;
        let began = wait_for_room(&*self.clock, period_us);
        self.begin(began);
        for cycle in 1..=PERIODS {
            let troubles = self.cycle()?;
            let due_us = began.monotonic_us.saturating_add(period_us.saturating_mul(cycle));
            if self.clock.now().monotonic_us > due_us {
                return Ok(Attempt { troubles, is_held: true });
            }
            self.clock.sleep_until(due_us);
        }
        Ok(Attempt { troubles: self.cycle()?, is_held: false })
    }

    /// Nothing of an earlier attempt counts.
    fn begin(&mut self, began: Stamp) {
        let boot_id = self.processes.boot_id().clone();
        self.windows = NodeWindows::new(self.node.clone(), boot_id, self.every.frame(), 0, began.real);
        self.late.iter().for_each(|name| self.windows.expect(name.clone()));
        for (_, lane) in &mut self.lanes {
            lane.sampler = Sampler::new(self.every, Arc::clone(&self.models));
        }
    }

    /// One cycle of each GPU, all at the same time. One that hangs is left behind with its thread. Gives the others that did not answer: one reading
    /// that fails is told where it would stand.
    fn cycle(&mut self) -> Result<ByIndex<Absent>, DriverError> {
        let lanes = std::mem::take(&mut self.lanes);
        let names: Vec<Name> = lanes.iter().map(|(_, lane)| lane.name.clone()).collect();
        let mut troubles = Vec::new();
        self.inventory.clear();
        for ((index, answer), name) in self.ask(lanes)?.into_iter().zip(names) {
            let Some((lane, report)) = answer else {
                self.windows.expect(name.clone());
                self.late.push(name);
                self.unreadable.push((index, Absent::TimedOut));
                continue;
            };
            if report.gpu.is_some() {
                self.windows.add(&name, report.told_to, report.parts);
            }
            self.inventory.extend(report.inventory);
            troubles.extend(report.trouble.map(|why| (index, why)));
            self.lanes.push((index, lane));
        }
        Ok(troubles)
    }

    fn ask(&self, lanes: ByIndex<Lane>) -> io::Result<ByIndex<Option<(Lane, CycleReport)>>> {
        let work = |(index, mut lane): (u32, Lane)| {
            let (processes, clock) = (Arc::clone(&self.processes), Arc::clone(&self.clock));
            let cycle = move || {
                let report = lane.sampler.cycle(&mut *lane.gpu, &*processes, &*clock);
                (lane, report)
            };
            (index, cycle)
        };
        together(lanes.into_iter().map(work), self.deadline)
    }
}

/// Windows are cut at UTC minutes: waits until the sample fits before the next.
fn wait_for_room(clock: &dyn Clock, period_us: u64) -> Stamp {
    let now = clock.now();
    let needed_us = i64::try_from(period_us.saturating_mul(PERIODS + 1)).unwrap_or(i64::MAX);
    let left_us = now.real.floor(MINUTE_US).plus(MINUTE_US).since(now.real);
    if left_us < needed_us {
        clock.sleep_until(now.monotonic_us.saturating_add(u64::try_from(left_us).unwrap_or_default()));
        return clock.now();
    }
    now
}
