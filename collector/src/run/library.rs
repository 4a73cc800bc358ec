//! The lane of the library itself: loading, counting and opening devices, and events.

use crate::driver::{OPEN_DEADLINE, Opened, Opening};
use gpuledger_nvml::{Absent, DeviceEvent, Driver, LoadError, Nvml, Reading, Versions};
use std::path::PathBuf;
use std::sync::Arc;
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

/// The work of the lane.
pub(super) struct Library {
    path: Option<PathBuf>,
    /// How long devices may take to be opened again. The lane does nothing else meanwhile.
    deadline: Duration,
    nvml: Option<Arc<Nvml>>,
    opening: Opening,
}

impl Library {
    pub(super) fn new(path: Option<PathBuf>, deadline: Duration) -> Self {
        Self { path, deadline, nvml: None, opening: Opening::default() }
    }

    pub(super) fn carry_out(&mut self, order: Order) -> Report {
        match (order, self.nvml.clone()) {
            (Order::Load, _) => self.load(),
            (Order::Open, Some(nvml)) => Report::Opened(self.open(nvml, self.deadline)),
            (Order::Open, None) => Report::Opened(Err(Absent::Uninitialized)),
            (Order::Events, Some(nvml)) => events(&*nvml),
            (Order::Events, None) => Report::Events(Vec::new(), None),
        }
    }

    /// NVML counts initialisations: unless the old one is given up, a new one shows the old driver.
    fn load(&mut self) -> Report {
        if let Some(Err(why)) = self.nvml.take().map(|nvml| nvml.shutdown()) {
            tracing::debug!(%why, "the old library did not shut down in order");
        }
        // What still hangs there would come back with a handle of the old library.
        self.opening = Opening::default();
        match Nvml::load(self.path.as_deref()) {
            Ok(nvml) => {
                let nvml = Arc::new(nvml);
                self.nvml = Some(Arc::clone(&nvml));
                Report::Loaded(nvml.versions().ok(), self.open(nvml, OPEN_DEADLINE))
            }
            Err(why) => Report::NotLoaded(why),
        }
    }

    fn open(&mut self, nvml: Arc<Nvml>, deadline: Duration) -> Reading<Vec<Opened>> {
        let count = nvml.gpu_count()?;
        let driver: Arc<dyn Driver> = nvml;
        Ok(self.opening.all(&driver, count, deadline))
    }
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
