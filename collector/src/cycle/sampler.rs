//! The sampler of one GPU.

use super::device::Device;
use super::report::CycleReport;
use crate::clock::Clock;
use crate::process::Processes;
use crate::window::{Frame, Part};
use gpuledger_domain::geometry::Geometry;
use gpuledger_nvml::{Absent, Gpu, Reading};
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

impl Sampler {
    /// A sampler that has seen nothing yet. `geometry` is the table of models, one for all lanes.
    pub fn new(settings: SamplerSettings, geometry: Arc<Geometry>) -> Self {
        Self { settings, geometry, device: None }
    }

    /// The driver reported that MIG instances came or went. None: it did not say which.
    pub fn mig_changed(&mut self, gpu_instance: Option<u32>) {
        if let Some(device) = &mut self.device {
            device.mig_changed(gpu_instance);
        }
    }

    /// The driver or its library was loaded anew, and the next cycle gets a new handle: every source begins again.
    pub fn reloaded(&mut self) {
        if let Some(device) = &mut self.device {
            device.reloaded();
        }
    }

    /// One look at the device. The handle must be that of the same GPU each time.
    pub fn cycle(&mut self, gpu: &mut dyn Gpu, processes: &dyn Processes, clock: &dyn Clock) -> CycleReport {
        let began = clock.now();
        match self.device(gpu, clock) {
            Ok(device) => device.cycle(gpu, processes, clock, began),
            Err(why) => CycleReport::nameless(began, why),
        }
    }

    /// All windows that are open: the lane ends.
    pub fn flush(&mut self) -> Vec<Part> {
        self.device.as_mut().map(Device::flush).unwrap_or_default()
    }

    /// The device, named once: its name is that of all its readings.
    fn device(&mut self, gpu: &dyn Gpu, clock: &dyn Clock) -> Reading<&mut Device> {
        if self.device.is_none() {
            let identity = gpu.identity()?;
            let device = Device::new(identity, self.settings, Arc::clone(&self.geometry), clock.now());
            self.device = Some(device.ok_or(Absent::Implausible)?);
        }
        self.device.as_mut().ok_or(Absent::NotYet)
    }
}
