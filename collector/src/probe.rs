//! `probe`: what can be measured on this node, by which call, why not better, and what would raise it. It only reads.

mod gpu;
mod privileges;
mod table;

pub(crate) use gpu::want_word;
pub use gpu::{GpuReport, Instance, ReadingReport, Refused};
pub use privileges::{Held, Privilege};
pub use table::table;

use crate::driver::{DriverError, Listed, Opened, list};
use crate::lanes::together;
use crate::process::Standing;
use crate::settings::Settings;
use gpuledger_nvml::{Absent, Driver};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What can be measured on this node. Its JSON is stable: members are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Which node.
    pub node: String,
    /// Kernel driver, `550.54.15`.
    pub driver: Option<String>,
    /// NVML, `12.550.54.15`.
    pub nvml: Option<String>,
    /// CUDA of the driver in thousands and tens: 12040 is 12.4.
    pub cuda: Option<i32>,
    /// What hinders attribution, in words; none where processes can be told apart and owned.
    pub attribution: Option<String>,
    /// Each GPU that NVML lists.
    pub gpus: Vec<GpuReport>,
    /// Privileges, whether they are held, and what each buys.
    pub privileges: Vec<Privilege>,
}

impl Report {
    /// Whether every GPU could be read.
    pub fn is_complete(&self) -> bool {
        self.gpus.iter().all(|gpu| gpu.unreadable.is_none())
    }
}

/// Looks at everything once. A GPU that hangs is one that cannot be read, and the others are read all the same.
///
/// # Errors
/// NVML does not even count its GPUs.
pub fn probe(driver: &Arc<dyn Driver>, settings: &Settings) -> Result<Report, DriverError> {
    look(driver, settings, Path::new("/proc/self/status"))
}

/// `own`: the status of our own process, which is not below another procfs.
fn look(driver: &Arc<dyn Driver>, settings: &Settings, own: &Path) -> Result<Report, DriverError> {
    let deadline = settings.call_deadline();
    let Listed { versions, devices } = list(driver, deadline)?;
    let gpus = gpus(devices, deadline)?;
    let standing = Standing::read(&settings.proc_root);
    let hindrance = standing.to_string();
    Ok(Report {
        node: settings.node.clone(),
        driver: versions.as_ref().map(|versions| versions.driver.clone()),
        nvml: versions.as_ref().map(|versions| versions.nvml.clone()),
        cuda: versions.as_ref().map(|versions| versions.cuda),
        attribution: (!hindrance.is_empty()).then_some(hindrance),
        privileges: privileges::privileges(standing, own, &settings.pod_resources_socket, &gpus),
        gpus,
    })
}

/// Reads all devices at the same time.
fn gpus(devices: Vec<Opened>, deadline: Duration) -> Result<Vec<GpuReport>, DriverError> {
    let work = |Opened { index, device }| {
        let read = move || match device {
            Ok((identity, gpu)) => GpuReport::read(index, identity, gpu),
            Err(why) => GpuReport::unreadable(index, why),
        };
        (index, read)
    };
    let reports = together(devices.into_iter().map(work), deadline)?;
    let late = |index| GpuReport::unreadable(index, Absent::TimedOut);
    Ok(reports.into_iter().map(|(index, report)| report.unwrap_or_else(|| late(index))).collect())
}

#[cfg(test)]
mod tests;
