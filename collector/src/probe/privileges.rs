//! What each privilege would buy. The collector takes none by itself.

use super::gpu::GpuReport;
use crate::process::{Namespace, Standing};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Whether a privilege is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The system does not say.
    Unknown,
    /// There is nothing here that it would open.
    Needless,
}

/// A privilege.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Privilege {
    /// Its name.
    pub name: &'static str,
    /// Whether it is held.
    pub held: Held,
    /// What it buys.
    pub buys: &'static str,
    /// How to give it.
    pub how: &'static str,
}

/// Numbers of capabilities in the kernel (`linux/capability.h`).
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;

/// What is held by the process whose status this is.
pub(super) fn privileges(
    standing: Standing,
    own: &Path,
    kubelet: &Path,
    gpus: &[GpuReport],
) -> Vec<Privilege> {
    let capabilities = capabilities(own);
    let has = |bit: u32| match capabilities {
        Some(set) if set >> bit & 1 == 1 => Held::Yes,
        Some(_) => Held::No,
        None => Held::Unknown,
    };
    let mig = gpus.iter().any(|gpu| gpu.mig.starts_with("on"));
    vec![
        Privilege {
            name: "host PID namespace",
            held: in_init(standing.pid),
            buys: "processes are told apart and get their owners",
            how: "hostPID: true, or docker run --pid=host",
        },
        Privilege {
            name: "host cgroup namespace",
            held: in_init(standing.cgroup),
            buys: "containers, pods and Slurm jobs of processes are known",
            how: "a privileged pod, or docker run --cgroupns=host",
        },
        Privilege {
            name: "CAP_SYS_ADMIN",
            held: if mig { has(CAP_SYS_ADMIN) } else { Held::Needless },
            buys: "with MIG on: placements of instances, memory and processes of the whole GPU",
            how: "root, or AmbientCapabilities=CAP_SYS_ADMIN",
        },
        Privilege {
            name: "CAP_SYS_PTRACE",
            held: has(CAP_SYS_PTRACE),
            buys: "the Slurm job of processes that left their job's cgroup, as they declare it",
            how: "root, or AmbientCapabilities=CAP_SYS_PTRACE",
        },
        Privilege {
            name: "accounting mode",
            held: accounting(gpus),
            buys: "time of each process by the driver's counters, past its end (driver 610 and newer)",
            how: "as root: nvidia-smi -am 1, and persistence mode",
        },
        Privilege {
            name: "kubelet socket",
            held: socket(kubelet),
            buys: "which pod was given which device: the second, independent way to an owner",
            how: "root, and its folder mounted into the container",
        },
    ]
}

const fn in_init(namespace: Namespace) -> Held {
    match namespace {
        Namespace::Init => Held::Yes,
        Namespace::Other(_) => Held::No,
        Namespace::Untold => Held::Unknown,
    }
}

/// Effective capabilities.
fn capabilities(status: &Path) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Off where the ladder met it switched off on some GPU; needless where no GPU can have it on.
fn accounting(gpus: &[GpuReport]) -> Held {
    let processes =
        || gpus.iter().flat_map(|gpu| &gpu.readings).filter(|reading| reading.reading == "process_sm");
    if processes().flat_map(|reading| &reading.refused).any(|refused| refused.why == "accounting_off") {
        Held::No
    } else if processes().any(|reading| reading.rung == Some('B')) {
        Held::Yes
    } else {
        Held::Needless
    }
}

/// Whether it is there and may be written to, which connecting needs. Its folder may hide it.
fn socket(path: &Path) -> Held {
    match fs::metadata(path) {
        Ok(_) => std::os::unix::net::UnixStream::connect(path).map_or(Held::No, |_| Held::Yes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Held::Needless,
        Err(_) => Held::No,
    }
}
