//! Why NVML could not be loaded, in words for who runs the node.

use crate::absent::Absent;

/// NVML could not be loaded or initialised.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such library, or the loader refuses it.
    #[error(
        "cannot load {library}: {source}; install the NVIDIA driver (its package with libnvidia-ml.so.1), in a container let the NVIDIA runtime \
         mount it (NVIDIA_DRIVER_CAPABILITIES=utility), or name the file"
    )]
    Library {
        /// File or name that was tried.
        library: String,
        /// What the loader says.
        source: libloading::Error,
    },
    /// A library, and not NVML.
    #[error(
        "{library} has neither nvmlInit_v2 nor nvmlInitWithFlags, so it is not NVML; name the driver's libnvidia-ml.so.1"
    )]
    NotNvml {
        /// File or name that was tried.
        library: String,
    },
    /// It answers that it cannot begin.
    #[error("{library} does not initialise: {absent}; {}", advice(*absent))]
    Initialisation {
        /// File or name that was tried.
        library: String,
        /// What it says.
        absent: Absent,
    },
}

impl LoadError {
    /// What NVML said, where it got so far.
    pub fn absent(&self) -> Option<Absent> {
        match self {
            Self::Library { .. } | Self::NotNvml { .. } => None,
            Self::Initialisation { absent, .. } => Some(*absent),
        }
    }
}

fn advice(absent: Absent) -> &'static str {
    match absent {
        Absent::DriverNotLoaded => {
            "the kernel driver is not loaded: `modprobe nvidia`, and `dmesg` says why where that fails; a node without GPUs needs no collector"
        }
        Absent::DriverMismatch => {
            "the library and the loaded kernel driver are of different versions, as after an upgrade: reload the kernel modules or reboot, and \
             in a container start it anew"
        }
        Absent::NoPermission => {
            "this user may not open /dev/nvidiactl: look at the mode of /dev/nvidia*, and in a container at its device rules"
        }
        Absent::Unknown => {
            "access to the devices may have been taken away, as a reload of systemd does to containers: start the container anew"
        }
        Absent::NotSupported
        | Absent::NotFound
        | Absent::Lost
        | Absent::ResetRequired
        | Absent::Uninitialized
        | Absent::NoFunction
        | Absent::VersionMismatch
        | Absent::TimedOut
        | Absent::Implausible
        | Absent::NotYet
        | Absent::Code(_) => "`nvidia-smi` and `dmesg` may say more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(absent: Absent) -> String {
        LoadError::Initialisation { library: "libnvidia-ml.so.1".into(), absent }.to_string()
    }

    #[test]
    fn the_error_says_what_to_do() {
        assert!(said(Absent::DriverNotLoaded).contains("modprobe nvidia"));
        assert!(said(Absent::DriverMismatch).contains("reboot"));
        assert!(said(Absent::NoPermission).contains("/dev/nvidiactl"));
        assert!(said(Absent::Code(17)).starts_with("libnvidia-ml.so.1 does not initialise: code_17; "));
    }
}
