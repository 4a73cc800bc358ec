//! One row of a process list, and whether it can be true.

use crate::absent::{Absent, Reading};
use crate::values::{ProcessKind, ProcessRow};
use nvml_wrapper_sys::bindings as sys;

/// Linux has no higher one.
const PID_MAX: u32 = 4_194_304;
/// GPU instance ids seen go to 14, compute instances to 7; far above either a row was read in the wrong places.
const INSTANCE_MAX: u32 = 127;
/// 16 TiB: no board has as much.
const MEMORY_MAX: u64 = 1 << 44;

pub(super) const NO_ROW: sys::nvmlProcessInfo_t =
    sys::nvmlProcessInfo_t { pid: 0, usedGpuMemory: 0, gpuInstanceId: 0, computeInstanceId: 0 };
pub(super) const NO_ROW_V1: sys::nvmlProcessInfo_v1_t =
    sys::nvmlProcessInfo_v1_t { pid: 0, usedGpuMemory: 0 };

/// As NVML filled it in. All ones stand for nothing.
pub(super) struct Raw {
    pid: u32,
    memory: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

impl From<sys::nvmlProcessInfo_t> for Raw {
    fn from(row: sys::nvmlProcessInfo_t) -> Self {
        Self {
            pid: row.pid,
            memory: row.usedGpuMemory,
            gpu_instance: row.gpuInstanceId,
            compute_instance: row.computeInstanceId,
        }
    }
}

impl From<sys::nvmlProcessInfo_v1_t> for Raw {
    fn from(row: sys::nvmlProcessInfo_v1_t) -> Self {
        Self { pid: row.pid, memory: row.usedGpuMemory, gpu_instance: u32::MAX, compute_instance: u32::MAX }
    }
}

impl Raw {
    /// Some drivers fill in records of another length than they say (nvitop issues 79, 89, 226). Read at the wrong places a list has process 0,
    /// numbers no system has, or memory no board has; then none of it is believed.
    pub(super) fn believed(&self, kind: ProcessKind) -> Reading<ProcessRow> {
        if !(1..=PID_MAX).contains(&self.pid) {
            return Err(Absent::Implausible);
        }
        Ok(ProcessRow {
            pid: self.pid,
            memory_bytes: within(self.memory, u64::MAX, MEMORY_MAX)?,
            kind,
            gpu_instance: within(self.gpu_instance, u32::MAX, INSTANCE_MAX)?,
            compute_instance: within(self.compute_instance, u32::MAX, INSTANCE_MAX)?,
        })
    }
}

fn within<T: PartialOrd>(value: T, nothing: T, most: T) -> Reading<Option<T>> {
    if value == nothing {
        Ok(None)
    } else if value <= most {
        Ok(Some(value))
    } else {
        Err(Absent::Implausible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(pid: u32, memory: u64, gpu_instance: u32, compute_instance: u32) -> Raw {
        Raw { pid, memory, gpu_instance, compute_instance }
    }

    #[test]
    fn all_ones_stand_for_nothing() {
        let row = raw(7, u64::MAX, u32::MAX, u32::MAX).believed(ProcessKind::Compute).expect("a row");
        assert_eq!((row.memory_bytes, row.gpu_instance, row.compute_instance), (None, None, None));
        let row = raw(7, 0, 0, 0).believed(ProcessKind::Compute).expect("a row");
        assert_eq!((row.memory_bytes, row.gpu_instance, row.compute_instance), (Some(0), Some(0), Some(0)));
    }

    #[test]
    fn records_of_32_bytes_read_as_24_are_not_believed() {
        // The second row begins at the eight bytes that were added, which are zero, and its memory is the next process and padding.
        assert_eq!(raw(0, 4_712, 1_048_576, 0).believed(ProcessKind::Compute), Err(Absent::Implausible));
    }

    #[test]
    fn records_of_16_bytes_read_as_24_are_not_believed() {
        // The instances are the next process and its padding.
        assert_eq!(raw(4_711, 1 << 30, 4_712, 0).believed(ProcessKind::Compute), Err(Absent::Implausible));
    }

    #[test]
    fn numbers_no_system_has_are_not_believed() {
        assert_eq!(raw(PID_MAX + 1, 0, 0, 0).believed(ProcessKind::Graphics), Err(Absent::Implausible));
        assert_eq!(raw(7, MEMORY_MAX + 1, 0, 0).believed(ProcessKind::Graphics), Err(Absent::Implausible));
    }
}
