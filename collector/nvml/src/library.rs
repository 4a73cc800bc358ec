//! The loaded library: its table of functions, and whether it still may be called.

use crate::absent::{Absent, Reading};
use crate::accounting::GetStatsV2;
use crate::calls::{Slot, function, system_text};
use crate::code::check;
use crate::driver_version::DriverVersion;
use crate::load_error::LoadError;
use nvml_wrapper_sys::bindings as sys;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Initialised at [`Library::load`], shut down at [`Library::end`] or when the last user lets go.
pub(crate) struct Library {
    table: sys::NvmlLib,
    accounting_v2: Slot<GetStatsV2>,
    driver: Option<DriverVersion>,
    ended: AtomicBool,
}

impl Library {
    pub(crate) fn load(path: &Path) -> Result<Self, LoadError> {
        let refused = |source| LoadError::Library { library: path.display().to_string(), source };
        // SAFETY: what the loader runs is the start-up code of the driver's own library, or of the file the operator named instead.
        let library = unsafe { libloading::Library::new(path) }.map_err(refused)?;
        // SAFETY: names and signatures are those of one header; the function is newer than the header the table was made from.
        let accounting_v2 = unsafe { library.get(b"nvmlDeviceGetAccountingStats_v2\0") }.map(|found| *found);
        // SAFETY: names and signatures are those of one header, which NVML keeps over its versions. Nothing is called.
        let table = unsafe { sys::NvmlLib::from_library(library) }.map_err(refused)?;
        initialise(&table, path)?;
        let driver =
            system_text(&table.nvmlSystemGetDriverVersion).ok().and_then(|text| DriverVersion::parse(&text));
        Ok(Self { table, accounting_v2, driver, ended: AtomicBool::new(false) })
    }

    /// The functions; none after the end, so that a handle from before it never reaches the library again, not even when that was
    /// initialised anew in between.
    pub(crate) fn table(&self) -> Reading<&sys::NvmlLib> {
        if self.ended.load(Ordering::Acquire) { Err(Absent::Uninitialized) } else { Ok(&self.table) }
    }

    pub(crate) fn accounting_v2(&self) -> Reading<&Slot<GetStatsV2>> {
        self.table().map(|_| &self.accounting_v2)
    }

    pub(crate) fn driver(&self) -> Option<DriverVersion> {
        self.driver
    }

    /// Shuts down, once.
    pub(crate) fn end(&self) -> Reading<()> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let call = function(&self.table.nvmlShutdown)?;
        // SAFETY: initialised by `load`, and `ended` lets this be reached once. Calls of other threads that began before are NVML's to finish.
        check(unsafe { call() })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Nobody is left to tell.
        self.end().ok();
    }
}

fn initialise(table: &sys::NvmlLib, path: &Path) -> Result<(), LoadError> {
    let library = || path.display().to_string();
    let code = match (&table.nvmlInit_v2, &table.nvmlInitWithFlags) {
        // SAFETY: takes nothing, may be called at any time, counts its calls.
        (Ok(call), _) => unsafe { call() },
        // SAFETY: as above; no flag is set.
        (Err(_), Ok(call)) => unsafe { call(0) },
        (Err(_), Err(_)) => return Err(LoadError::NotNvml { library: library() }),
    };
    check(code).map_err(|absent| LoadError::Initialisation { library: library(), absent })
}
