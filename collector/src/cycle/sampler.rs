//! The sampler of one GPU: everything that lives from one cycle to the next.

use super::observation::{Observation, Timed};
use super::observe::{Cycle, Sight};
use super::report::{CycleReport, Gauges, LiveProcess, View};
use crate::clock::{Clock, Stamp};
use crate::integrate::{Discard, HELD_PERIODS, Integrator, Periods};
use crate::ladder::{Known, Ladder, Want, Why, probe};
use crate::process::Processes;
use crate::topology::{Slicing, Tracker, inventory_gpu, slicing};
use crate::window::{Frame, Part, UnitKey};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, Gpu, Identity, MigMode, Ppm, Reading};
use gpuledger_wire::bodies::InventoryGpu;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often, and in which windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerSettings {
    /// Microseconds between two looks at processes, memory and utilisation. At most 5 s, and above 0.1 s.
    pub period_us: u64,
    /// Microseconds between two looks at energy and accounting; they are also looked at with each window's first cycle.
    pub slow_period_us: u64,
    /// Microseconds of a window.
    pub window_us: i64,
}

impl Default for SamplerSettings {
    /// A second, ten seconds, ten seconds.
    fn default() -> Self {
        Self { period_us: 1_000_000, slow_period_us: 10_000_000, window_us: 10_000_000 }
    }
}

impl SamplerSettings {
    /// Where windows begin and end.
    pub fn frame(&self) -> Frame {
        Frame::new(self.window_us)
    }
}

/// Samples one GPU. Lives in the lane of that GPU.
#[derive(Debug)]
pub struct Sampler {
    settings: SamplerSettings,
    geometry: Arc<Geometry>,
    device: Option<Device>,
}

/// A device whose name is known.
#[derive(Debug)]
struct Device {
    identity: Identity,
    name: Name,
    mig: Reading<MigMode>,
    tracker: Tracker,
    ladder: Option<Arc<Ladder>>,
    must_probe: bool,
    /// Errors of the rungs it stands on, as of the last cycle.
    errors: BTreeMap<Want, Absent>,
    known: Known,
    integrator: Integrator,
    last: Option<Last>,
    gauges: Gauges,
    memory_bytes: Option<u64>,
    slicing: Option<Slicing>,
    inventory: Option<InventoryGpu>,
    is_reloaded: bool,
}

/// The cycle before.
#[derive(Clone, Copy, Debug)]
struct Last {
    began: Stamp,
    ended: Stamp,
}

impl Sampler {
    /// A sampler that has seen nothing yet. `geometry` is the table of models, one for all lanes.
    pub fn new(settings: SamplerSettings, geometry: Arc<Geometry>) -> Self {
        Self { settings, geometry, device: None }
    }

    /// The driver reported that MIG instances came or went. None: it did not say which.
    pub fn mig_changed(&mut self, gpu_instance: Option<u32>) {
        if let Some(device) = &mut self.device {
            device.tracker.doubt(gpu_instance);
        }
    }

    /// The driver or its library was loaded anew, and the next cycle gets a new handle: every source begins again.
    pub fn reloaded(&mut self) {
        if let Some(device) = &mut self.device {
            device.is_reloaded = true;
        }
    }

    /// One look at the device.
    pub fn cycle(&mut self, gpu: &mut dyn Gpu, processes: &dyn Processes, clock: &dyn Clock) -> CycleReport {
        let began = clock.now();
        match self.device(gpu, began) {
            Ok(device) => device.cycle(gpu, processes, clock, began),
            Err(why) => CycleReport {
                at: clock.now(),
                gpu: None,
                told_to: Instant::MIN,
                parts: Vec::new(),
                trouble: Some(why),
                view: None,
                inventory: None,
                inventory_changed: false,
                torn: false,
                discarded: Vec::new(),
            },
        }
    }

    /// All windows that are open: the lane ends.
    pub fn flush(&mut self) -> Vec<Part> {
        self.device.as_mut().map(|device| device.integrator.flush()).unwrap_or_default()
    }

    /// The device, named once: its name is that of all its readings.
    fn device(&mut self, gpu: &dyn Gpu, began: Stamp) -> Reading<&mut Device> {
        if self.device.is_none() {
            let identity = gpu.identity()?;
            self.device = Some(Device::new(identity, self.settings, began)?);
        }
        let device = self.device.as_mut().ok_or(Absent::NotYet)?;
        device.slices(&self.geometry);
        device.settings_are(self.settings);
        Ok(device)
    }
}
