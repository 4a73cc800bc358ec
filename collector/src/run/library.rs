//! The lane of the library itself: loading, counting and opening devices, and events.

use gpuledger_nvml::{Absent, DeviceEvent, Driver, Gpu, Identity, LoadError, Nvml, Reading, Versions};
use std::path::PathBuf;
use std::time::Duration;

/// So many events are taken with one order; what is left comes with the next.
const EVENTS_AT_ONCE: usize = 64;

/// What the library's lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Load the library, anew if it is loaded, and open its devices.
    Load,
    /// Open its devices again.
    Open,
    /// Take the events that came since the last order.
    Events,
}

/// What came of it.
pub(super) enum Report {
    /// The library is loaded.
    Loaded(Option<Versions>, Reading<Vec<Opened>>),
    /// It is not.
    NotLoaded(LoadError),
    /// Its devices.
    Opened(Reading<Vec<Opened>>),
    /// Events, oldest first, and why there may be more.
    Events(Vec<DeviceEvent>, Option<Absent>),
}

/// A place in the list of devices.
pub(super) struct Opened {
    /// Its index.
    pub(super) index: u32,
    /// The device, if it can be opened and tells its name.
    pub(super) device: Reading<(Identity, Box<dyn Gpu>)>,
}

/// The work of the lane.
pub(super) struct Library {
    path: Option<PathBuf>,
    nvml: Option<Nvml>,
}

impl Library {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, nvml: None }
    }

    pub(super) fn carry_out(&mut self, order: Order) -> Report {
        match (order, &self.nvml) {
            (Order::Load, _) => self.load(),
            (Order::Open, Some(nvml)) => Report::Opened(open(nvml)),
            (Order::Open, None) => Report::Opened(Err(Absent::Uninitialized)),
            (Order::Events, Some(nvml)) => events(nvml),
            (Order::Events, None) => Report::Events(Vec::new(), None),
        }
    }

    /// NVML counts initialisations: unless the old one is given up, a new one shows the old driver.
    fn load(&mut self) -> Report {
        if let Some(Err(why)) = self.nvml.take().map(|nvml| nvml.shutdown()) {
            tracing::debug!(%why, "the old library did not shut down in order");
        }
        match Nvml::load(self.path.as_deref()) {
            Ok(nvml) => {
                let report = Report::Loaded(nvml.versions().ok(), open(&nvml));
                self.nvml = Some(nvml);
                report
            }
            Err(why) => Report::NotLoaded(why),
        }
    }
}

fn open(driver: &dyn Driver) -> Reading<Vec<Opened>> {
    let count = driver.gpu_count()?;
    Ok((0..count).map(|index| Opened { index, device: open_one(driver, index) }).collect())
}

fn open_one(driver: &dyn Driver, index: u32) -> Reading<(Identity, Box<dyn Gpu>)> {
    let gpu = driver.gpu(index)?;
    Ok((gpu.identity()?, gpu))
}

fn events(driver: &dyn Driver) -> Report {
    let mut events = Vec::new();
    while events.len() < EVENTS_AT_ONCE {
        match driver.next_event(Duration::ZERO) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return Report::Events(events, None),
            Err(why) => return Report::Events(events, Some(why)),
        }
    }
    Report::Events(events, None)
}
