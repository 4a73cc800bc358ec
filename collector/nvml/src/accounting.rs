//! Accounting: figures of a process over its life, kept by the driver.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, Slot, get, get_by};
use crate::list::list;
use crate::values::{AccountingCounters, AccountingStats};
use nvml_wrapper_sys::bindings as sys;
use std::ffi::c_uint;

type Device = Handle<sys::nvmlDevice_st>;

/// So many processes take one call. The driver keeps a few thousand at most.
const EXPECTED: c_uint = 64;

/// `nvmlDeviceGetAccountingStats_v2`, which came after the header of the bindings (release 610).
pub(crate) type GetStatsV2 = unsafe extern "C" fn(sys::nvmlDevice_t, *mut StatsV2) -> sys::nvmlReturn_t;

/// `nvmlAccountingStats_v2_t`. It says no version; the process goes in, the rest comes out.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct StatsV2 {
    pid: c_uint,
    is_running: c_uint,
    gpu_percent: c_uint,
    memory_percent: c_uint,
    memory_bytes_max: u64,
    samples: c_uint,
    gpu_percent_hundredths: u64,
    memory_percent_hundredths: u64,
    time_ms: u64,
    start_us: u64,
}

const NO_STATS: sys::nvmlAccountingStats_t = sys::nvmlAccountingStats_t {
    gpuUtilization: 0,
    memoryUtilization: 0,
    maxMemoryUsage: 0,
    time: 0,
    startTime: 0,
    isRunning: 0,
    reserved: [0; 5],
};

pub(crate) fn is_on(table: &sys::NvmlLib, device: Device) -> Reading<bool> {
    get(&table.nvmlDeviceGetAccountingMode, device, 0)
        .map(|mode| mode == sys::nvmlEnableState_enum_NVML_FEATURE_ENABLED)
}

pub(crate) fn pids(table: &sys::NvmlLib, device: Device) -> Reading<Vec<u32>> {
    list(&table.nvmlDeviceGetAccountingPids, device, 0, EXPECTED)
}

pub(crate) fn stats(table: &sys::NvmlLib, device: Device, pid: u32) -> Reading<AccountingStats> {
    let it = get_by(&table.nvmlDeviceGetAccountingStats, device, pid, NO_STATS)?;
    Ok(AccountingStats {
        gpu_percent: percent(it.gpuUtilization)?,
        memory_bytes_max: (it.maxMemoryUsage != u64::MAX).then_some(it.maxMemoryUsage),
        time_ms: it.time,
        start_us: it.startTime,
        is_running: it.isRunning != 0,
    })
}

pub(crate) fn counters(slot: &Slot<GetStatsV2>, device: Device, pid: u32) -> Reading<AccountingCounters> {
    let it = get(slot, device, StatsV2 { pid, ..StatsV2::default() })?;
    if it.pid != pid || it.gpu_percent_hundredths > u64::from(it.samples) * 10_000 {
        return Err(Absent::Implausible);
    }
    Ok(AccountingCounters {
        samples: u64::from(it.samples),
        gpu_percent_hundredths: it.gpu_percent_hundredths,
        start_us: it.start_us,
        is_running: it.is_running != 0,
    })
}

/// All ones: the driver does not know.
fn percent(value: c_uint) -> Reading<Option<u32>> {
    match value {
        c_uint::MAX => Ok(None),
        0..=100 => Ok(Some(value)),
        _ => Err(Absent::Implausible),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_may_be_unknown_and_not_absurd() {
        assert_eq!(percent(u32::MAX), Ok(None));
        assert_eq!(percent(0), Ok(Some(0)));
        assert_eq!(percent(101), Err(Absent::Implausible));
    }
}
