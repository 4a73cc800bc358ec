//! The utilisation rings and the gauge.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, function, get};
use crate::code::check;
use crate::list::grow;
use crate::share::from_whole_percent;
use crate::value;
use crate::values::{Ppm, UtilizationRow, UtilizationSample};
use nvml_wrapper_sys::bindings as sys;
use std::ffi::c_uint;

type Device = Handle<sys::nvmlDevice_st>;

/// NVML says it needs room for 100 rows whether there are any or not, so this is never too little.
const ROWS: c_uint = 128;
/// What a ring may grow by between the question for its length and the reading.
const HEADROOM: c_uint = 16;

const NO_ROW: sys::nvmlProcessUtilizationSample_t = sys::nvmlProcessUtilizationSample_t {
    pid: 0,
    timeStamp: 0,
    smUtil: 0,
    memUtil: 0,
    encUtil: 0,
    decUtil: 0,
};

/// Rows of the process ring later than `since_us`. Nobody was busy: NVML has nothing to find, and that is an empty list.
pub(crate) fn of_processes(
    table: &sys::NvmlLib,
    device: Device,
    since_us: u64,
) -> Reading<Vec<UtilizationRow>> {
    let call = function(&table.nvmlDeviceGetProcessUtilization)?;
    let rows = grow(NO_ROW, ROWS, |count, rows| {
        // SAFETY: function and handle are NVML's (see `calls`); `grow` says how many rows there is room for, and NVML writes no more.
        unsafe { call(device.raw(), rows, count, since_us) }
    });
    let rows = none_is_empty(rows)?;
    Ok(rows
        .into_iter()
        .map(|row| UtilizationRow { pid: row.pid, timestamp_us: row.timeStamp, sm_percent: row.smUtil })
        .collect())
}

/// Samples of the device's ring later than `since_us`, oldest first.
pub(crate) fn samples(
    table: &sys::NvmlLib,
    device: Device,
    since_us: u64,
) -> Reading<Vec<UtilizationSample>> {
    let (kind, raw) = none_is_empty(ring(table, device, since_us))?;
    let mut samples = raw
        .into_iter()
        .filter(|sample| sample.timeStamp > since_us)
        .map(|sample| {
            let percent = value::number(kind, sample.sampleValue)?;
            let percent = u32::try_from(percent).map_err(|_| Absent::Implausible)?;
            Ok(UtilizationSample { timestamp_us: sample.timeStamp, percent })
        })
        .collect::<Reading<Vec<_>>>()?;
    samples.sort_by_key(|sample| sample.timestamp_us);
    Ok(samples)
}

/// The gauge.
pub(crate) fn gauge(table: &sys::NvmlLib, device: Device) -> Reading<Ppm> {
    let rates =
        get(&table.nvmlDeviceGetUtilizationRates, device, sys::nvmlUtilization_t { gpu: 0, memory: 0 })?;
    from_whole_percent(rates.gpu)
}

/// This ring does not say when the room is too small, so its length is asked for first.
fn ring(
    table: &sys::NvmlLib,
    device: Device,
    since_us: u64,
) -> Reading<(sys::nvmlValueType_t, Vec<sys::nvmlSample_t>)> {
    let call = function(&table.nvmlDeviceGetSamples)?;
    let which = sys::nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES;
    let (mut kind, mut length) = (0, 0);
    let nowhere = std::ptr::null_mut();
    // SAFETY: function and handle are NVML's (see `calls`); without a place for samples it writes their type and number only.
    let code = unsafe { call(device.raw(), which, since_us, &raw mut kind, &raw mut length, nowhere) };
    check(code)?;
    let empty = sys::nvmlSample_t { timeStamp: 0, sampleValue: value::nothing() };
    let rows = grow(empty, length.saturating_add(HEADROOM), |count, rows| {
        // SAFETY: as above; `grow` says how many rows there is room for, and NVML writes no more.
        unsafe { call(device.raw(), which, since_us, &raw mut kind, count, rows) }
    })?;
    Ok((kind, rows))
}

fn none_is_empty<T: Default>(reading: Reading<T>) -> Reading<T> {
    match reading {
        Err(Absent::NotFound) => Ok(T::default()),
        reading => reading,
    }
}
