//! Taking one sample: three cycles of each GPU, one period apart.

use crate::clock::{Clock, Stamp};
use crate::cycle::{Sampler, SamplerSettings};
use crate::process::{BootError, Processes, Procfs};
use crate::settings::Settings;
use crate::topology::inventory;
use crate::window::{ClosedWindow, NodeWindows};
use gpuledger_domain::time::MINUTE_US;
use gpuledger_nvml::{Absent, Driver, Gpu};
use gpuledger_wire::bodies::NodeInventory;
use gpuledger_wire::geometry::geometry;
use gpuledger_wire::text::{Name, TextError};
use std::sync::Arc;

/// Periods that a sample takes. After one, all readings are there but that of the driver's ring of an idle device: there the last second is still
/// on its way.
const PERIODS: u64 = 2;

/// Why no sample could be taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// NVML does not even count its GPUs.
    #[error("NVML does not list its GPUs: {0}")]
    Nvml(Absent),
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

/// One GPU that is sampled.
struct Lane {
    gpu: Box<dyn Gpu>,
    sampler: Sampler,
}

/// Measures for two sample periods.
///
/// # Errors
/// Nothing could be measured at all. A GPU that cannot be read is no error: the sample names it.
pub fn take(driver: &dyn Driver, settings: &Settings, clock: &dyn Clock) -> Result<Sampled, TakeError> {
    let node = Name::new(&settings.node)?;
    let processes = Procfs::open(&settings.proc_root, None)?;
    // A window of a minute, and everything looked at in both cycles.
    let period_us = settings.period_us();
    let every = SamplerSettings { period_us, slow_period_us: period_us, window_us: MINUTE_US };
    let (mut lanes, mut unreadable) = (Vec::new(), Vec::new());
    let models = Arc::new(geometry());
    for index in 0..driver.gpu_count().map_err(TakeError::Nvml)? {
        match driver.gpu(index) {
            Ok(gpu) => lanes.push((index, Lane { gpu, sampler: Sampler::new(every, Arc::clone(&models)) })),
            Err(why) => unreadable.push((index, why)),
        }
    }
    let began = wait_for_room(clock, period_us);
    let boot_id = processes.boot_id().clone();
    let mut windows = NodeWindows::new(node.clone(), boot_id.clone(), every.frame(), 0, began.real);
    for cycle in 1..=PERIODS {
        for (_, lane) in &mut lanes {
            // It tells nothing yet: the window is open until the end.
            lane.sampler.cycle(&mut *lane.gpu, &processes, clock);
        }
        clock.sleep_until(began.monotonic_us.saturating_add(period_us.saturating_mul(cycle)));
    }
    let mut entries = Vec::new();
    for (index, lane) in &mut lanes {
        let report = lane.sampler.cycle(&mut *lane.gpu, &processes, clock);
        unreadable.extend(report.trouble.map(|why| (*index, why)));
        entries.extend(report.inventory);
        if let Some(gpu) = &report.gpu {
            windows.add(gpu, report.told_to, report.parts);
            windows.add(gpu, report.told_to, lane.sampler.flush());
        }
    }
    let window = windows.flush(clock.now().real).into_iter().next().ok_or(TakeError::ClockSet)?;
    unreadable.sort_by_key(|(index, _)| *index);
    Ok(Sampled { window, inventory: inventory(node, boot_id, entries), unreadable })
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
