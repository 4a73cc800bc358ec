//! What would raise a device to a better rung. The collector does none of it: it changes nothing on a node.

use super::rung::{Refused, Rung};
use gpuledger_nvml::Absent;

/// What an operator could do, as a short sentence.
pub(super) fn advice(rung: Rung, why: Refused) -> &'static str {
    match (rung, why) {
        (_, Refused::MigOn) => "only with MIG off: NVML has no such reading of instances",
        (_, Refused::AccountingOff) => {
            "turn accounting on as root: nvidia-smi -am 1, and persistence mode, else it is lost with the driver"
        }
        (_, Refused::NotReported) => {
            "the driver lists processes without it: on GPUs that share the memory of the host, and in containers"
        }
        (_, Refused::Nvml(why)) => by_error(rung, why),
    }
}

fn by_error(rung: Rung, why: Absent) -> &'static str {
    match why {
        Absent::NotSupported => by_hardware(rung),
        Absent::NoFunction | Absent::VersionMismatch => by_driver(rung),
        Absent::NoPermission => by_privilege(rung),
        Absent::Lost | Absent::ResetRequired => "the GPU must be reset, or the node rebooted",
        Absent::DriverNotLoaded => "load the kernel driver",
        Absent::DriverMismatch => "the driver was upgraded in place: reload its modules or reboot",
        Absent::Unknown => {
            "access to the device was taken away or the driver failed: restart the collector, look at dmesg"
        }
        Absent::TimedOut => "the driver does not answer: look at dmesg",
        Absent::NotFound | Absent::Uninitialized | Absent::Implausible | Absent::NotYet | Absent::Code(_) => {
            "nothing to do: it is tried again"
        }
    }
}

fn by_hardware(rung: Rung) -> &'static str {
    match rung {
        Rung::Gpm => {
            "this GPU, or its mode, has no such counters: GPUs for data centres have, from the Hopper generation on"
        }
        Rung::Accounting => "this GPU or its mode has no accounting",
        Rung::EnergyCounter => "needs a GPU of the Volta generation or newer",
        Rung::MemoryRead => "the GPU shares the memory of its host",
        Rung::ProcessSamples
        | Rung::DeviceSamples
        | Rung::Gauge
        | Rung::AllocationOnly
        | Rung::Derived
        | Rung::Nothing => "this GPU or its mode has no such reading",
    }
}

fn by_driver(rung: Rung) -> &'static str {
    match rung {
        Rung::Accounting => "needs a driver of release 610 or newer",
        Rung::Gpm => "needs a driver of release 520 or newer",
        _ => "needs a newer driver",
    }
}

fn by_privilege(rung: Rung) -> &'static str {
    match rung {
        Rung::Gpm => "allow profiling to all users (NVreg_RestrictProfilingToAdminUsers=0), or run as root",
        Rung::MemoryRead => {
            "with MIG on the whole GPU is read by root, or with NVIDIA_MIG_MONITOR_DEVICES=all"
        }
        _ => "run as root",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_what_is_missing() {
        let old = advice(Rung::Accounting, Refused::Nvml(Absent::NoFunction));
        assert!(old.contains("610"), "{old}");
        let off = advice(Rung::Accounting, Refused::AccountingOff);
        assert!(off.contains("nvidia-smi -am 1"), "{off}");
        let ampere = advice(Rung::Gpm, Refused::Nvml(Absent::NotSupported));
        assert!(ampere.contains("Hopper"), "{ampere}");
    }
}
