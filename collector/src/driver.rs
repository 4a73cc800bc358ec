//! The driver, for those who must go on when it hangs: each call is made in a thread that can be left behind.

mod opening;

pub(crate) use opening::{OPEN_DEADLINE, Opened, Opening};

use crate::lanes::within;
use gpuledger_nvml::{Absent, Driver, LoadError, Nvml, Versions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the library may take to load: a driver without persistence initialises every device first.
pub(crate) const LOAD_DEADLINE: Duration = Duration::from_secs(60);

/// Why nothing can be asked of any GPU.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The library cannot be loaded, or does not initialise.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It does not come back.
    #[error("NVML hangs: it has not {what} after {waited:?}; dmesg may show what the driver waits for")]
    Hangs {
        /// What it was asked for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// It does not even count its GPUs.
    #[error("NVML does not list its GPUs: {0}")]
    List(Absent),
    /// There is no thread for a call.
    #[error("start a thread for a call to NVML: {0}")]
    Thread(#[from] io::Error),
}

/// Loads and initialises the library: the file, or what the loader finds.
///
/// # Errors
/// There is none, it does not initialise, or it takes longer than a minute.
pub fn load(library: Option<PathBuf>) -> Result<Arc<dyn Driver>, DriverError> {
    let loaded = within(LOAD_DEADLINE, move || Nvml::load(library.as_deref()))?;
    Ok(Arc::new(loaded.ok_or(DriverError::Hangs { what: "initialised", waited: LOAD_DEADLINE })??))
}

/// What a driver has.
pub(crate) struct Listed {
    /// None: it does not say.
    pub(crate) versions: Option<Versions>,
    /// Its devices, by index.
    pub(crate) devices: Vec<Opened>,
}

/// Asks what the driver has, and opens its devices.
///
/// # Errors
/// The devices are not even counted within the deadline. One that cannot be opened is no error: it stands in the list.
pub(crate) fn list(driver: &Arc<dyn Driver>, deadline: Duration) -> Result<Listed, DriverError> {
    let asked = Arc::clone(driver);
    let counted = within(deadline, move || (asked.versions().ok(), asked.gpu_count()))?;
    let (versions, count) =
        counted.ok_or(DriverError::Hangs { what: "counted its GPUs", waited: deadline })?;
    let count = count.map_err(DriverError::List)?;
    Ok(Listed { versions, devices: Opening::default().all(driver, count, OPEN_DEADLINE) })
}
