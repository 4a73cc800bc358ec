//! `probe`: what can be measured on this node, by which call, why not better, and what would raise it. It only reads.

mod gpu;
mod privileges;
mod table;

pub(crate) use gpu::want_word;
pub use gpu::{GpuReport, Instance, ReadingReport, Refused};
pub use privileges::{Held, Privilege};
pub use table::table;

use crate::process::Standing;
use crate::settings::Settings;
use gpuledger_nvml::{Absent, Driver};
use serde::Serialize;
use std::path::Path;

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

/// Looks at everything once.
///
/// # Errors
/// NVML does not even count its GPUs.
pub fn probe(driver: &dyn Driver, settings: &Settings) -> Result<Report, Absent> {
    look(driver, settings, Path::new("/proc/self/status"))
}

/// `own`: the status of our own process, which is not below another procfs.
fn look(driver: &dyn Driver, settings: &Settings, own: &Path) -> Result<Report, Absent> {
    let versions = driver.versions().ok();
    let gpus: Vec<GpuReport> = (0..driver.gpu_count()?).map(|index| GpuReport::of(driver, index)).collect();
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

#[cfg(test)]
mod tests;
