//! The library as a [`Driver`].

use crate::absent::{Absent, Reading};
use crate::api::{Driver, Gpu};
use crate::calls::{system, system_handle, system_text};
use crate::device::Device;
use crate::events::EventSet;
use crate::library::Library;
use crate::load_error::LoadError;
use crate::values::{DeviceEvent, Versions};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name the loader knows the driver's library by.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// An initialised NVML.
///
/// It may be used by several threads: NVML allows simultaneous calls, and its handles belong to no thread. A device is used by one thread at a
/// time. A call may hang in the driver; no other call waits for it.
///
/// It is shut down by [`Nvml::shutdown`], or when it and its last device are dropped. NVML counts initialisations of a process, so one that
/// was not shut down keeps a fresh [`Nvml::load`] from beginning anew after a reload of the driver.
pub struct Nvml {
    events: Mutex<Option<EventSet>>,
    library: Arc<Library>,
}

impl Nvml {
    /// Loads and initialises NVML: the file, or what the loader finds as `libnvidia-ml.so.1`.
    ///
    /// # Errors
    /// No such library, or it does not initialise; the text says what to do.
    pub fn load(path: Option<&Path>) -> Result<Self, LoadError> {
        let library = Library::load(path.unwrap_or_else(|| Path::new(LIBRARY)))?;
        Ok(Self { events: Mutex::new(None), library: Arc::new(library) })
    }

    /// Shuts NVML down. After it, this and all its devices answer `uninitialized`, also when NVML was loaded anew elsewhere. A second call
    /// does nothing. It waits for a call of [`Driver::next_event`] to end, at most for its timeout; readings of devices should have ended.
    ///
    /// # Errors
    /// As NVML says; it counts as shut down all the same.
    pub fn shutdown(&self) -> Reading<()> {
        let mut events = self.events();
        *events = None;
        self.library.end()
    }

    fn events(&self) -> MutexGuard<'_, Option<EventSet>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Nvml {
    fn versions(&self) -> Reading<Versions> {
        let table = self.library.table()?;
        Ok(Versions {
            driver: system_text(&table.nvmlSystemGetDriverVersion)?,
            nvml: system_text(&table.nvmlSystemGetNVMLVersion)?,
            cuda: match system(&table.nvmlSystemGetCudaDriverVersion_v2, 0) {
                Err(Absent::NoFunction) => system(&table.nvmlSystemGetCudaDriverVersion, 0)?,
                version => version?,
            },
        })
    }

    fn gpu_count(&self) -> Reading<u32> {
        system(&self.library.table()?.nvmlDeviceGetCount_v2, 0)
    }

    fn gpu(&self, index: u32) -> Reading<Box<dyn Gpu>> {
        let handle = system_handle(&self.library.table()?.nvmlDeviceGetHandleByIndex_v2, index)?;
        Ok(Box::new(Device::new(Arc::clone(&self.library), handle)))
    }

    /// After an error the set of events is made anew at the next call, so that a device that was lost does not silence the others. Such a
    /// call returns at once: the caller pauses.
    fn next_event(&self, timeout: Duration) -> Reading<Option<DeviceEvent>> {
        let mut events = self.events();
        let set = match events.take() {
            Some(set) => set,
            None => EventSet::new(&self.library)?,
        };
        let event = events.insert(set).next(timeout);
        if event.is_err() {
            *events = None;
        }
        event
    }
}
