//! How busy GPUs and processes are, from the driver's rings. Nothing of it is supported with MIG on.

use super::argument::{InOut, Out, Rows, Words};
use super::call::Call;
use super::code::Code;
use super::handle::{DeviceHandle, count};
use super::layout::{ProcessUtilization, ProcessUtilizationLong, ProcessesUtilization, Sample, Utilization};
use crate::world::RING_ENTRIES;
use std::ffi::{c_uint, c_ulonglong};
use std::fmt::{self, Write};

/// What the size call of process utilisation says, whether the GPU is busy or idle.
const SIZE: c_uint = 100;
/// Period of the driver's sampler in microseconds.
const PERIOD_US: c_uint = 166_666;
/// Value types of samples.
const UNSIGNED_INT: c_uint = 1;

export! {
    fn nvmlDeviceGetUtilizationRates(call, device: DeviceHandle, rates: Out<'_, Utilization>) {
        let gpu = call.uncut_gpu(device)?.gpu;
        let percent = call.world().utilization_percent(gpu, call.t_us);
        rates.put(Utilization { gpu: percent, memory: memory_share(percent) })
    }

    fn nvmlDeviceGetEncoderUtilization(call, device: DeviceHandle, percent: Out<'_, c_uint>, period_us: Out<'_, c_uint>) {
        call.uncut_gpu(device)?;
        percent.put(0)?;
        period_us.put(PERIOD_US)
    }

    fn nvmlDeviceGetDecoderUtilization(call, device: DeviceHandle, percent: Out<'_, c_uint>, period_us: Out<'_, c_uint>) {
        call.uncut_gpu(device)?;
        percent.put(0)?;
        period_us.put(PERIOD_US)
    }

    fn nvmlDeviceGetSamples(
        call, device: DeviceHandle, of: c_uint, last_seen_us: c_ulonglong, value_type: Out<'_, c_uint>,
        number: InOut<'_, c_uint>, rows: Rows<Sample>
    ) {
        let found = samples(call, device, of, last_seen_us)?;
        value_type.put(UNSIGNED_INT)?;
        let number = number.get()?;
        if rows.is_null() {
            *number = c_uint::try_from(RING_ENTRIES).map_err(|_| Code::UNKNOWN)?;
            return Ok(());
        }
        if found.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        let room = std::mem::replace(number, count(found.len()));
        rows.put(room, &found)
    }

    fn nvmlDeviceGetProcessUtilization(
        call, device: DeviceHandle, rows: Rows<ProcessUtilization>, number: InOut<'_, c_uint>, last_seen_us: c_ulonglong
    ) {
        let gpu = call.uncut_gpu(device)?.gpu;
        let number = number.get()?;
        if rows.is_null() || *number == 0 {
            *number = SIZE;
            return Err(Code::INSUFFICIENT_SIZE);
        }
        let found: Vec<ProcessUtilization> = process_rows(call, gpu, last_seen_us)
            .into_iter()
            .map(|(pid, timestamp_us, sm)| ProcessUtilization {
                pid,
                timestamp_us,
                sm,
                memory: memory_share(sm),
                encoder: 0,
                decoder: 0,
            })
            .collect();
        answer(number, rows, &found)
    }

    fn nvmlDeviceGetProcessesUtilizationInfo(call, device: DeviceHandle, list: InOut<'_, ProcessesUtilization>) {
        let gpu = call.uncut_gpu(device)?.gpu;
        let list = list.get()?;
        if list.version != ProcessesUtilization::VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let rows = Rows::at(list.rows);
        if rows.is_null() || list.count == 0 {
            list.count = SIZE;
            return Err(Code::INSUFFICIENT_SIZE);
        }
        let found: Vec<ProcessUtilizationLong> = process_rows(call, gpu, list.last_seen_us)
            .into_iter()
            .map(|(pid, timestamp_us, sm)| ProcessUtilizationLong {
                timestamp_us,
                pid,
                sm,
                memory: memory_share(sm),
                encoder: 0,
                decoder: 0,
                jpeg: 0,
                ofa: 0,
            })
            .collect();
        answer(&mut list.count, rows, &found)
    }
}

fn answer<T: super::layout::Plain>(number: &mut c_uint, rows: Rows<T>, found: &[T]) -> Result<(), Code> {
    if found.is_empty() {
        return Err(Code::NOT_FOUND);
    }
    let room = std::mem::replace(number, count(found.len()));
    if count(found.len()) > room {
        *number = SIZE.max(count(found.len()));
        return Err(Code::INSUFFICIENT_SIZE);
    }
    rows.put(room, found)
}

/// (PID, timestamp, per cent) of each process, and the rows that cannot be true.
fn process_rows(call: &Call, gpu: usize, last_seen_us: u64) -> Vec<(u32, u64, u32)> {
    let world = call.world();
    let true_rows = world.process_utilization(gpu, call.t_us, last_seen_us).into_iter().filter_map(|row| {
        let pid = world.visible_pid(world.process(row.process))?;
        Some((pid, row.stamp_us, row.sm_percent))
    });
    let now_us = world.stamp_us(call.t_us);
    let garbage = world.garbage_rows(gpu, call.t_us).iter().map(|row| {
        let stamp_us = row.timestamp.and_then(|stamp| u64::try_from(stamp.0).ok()).unwrap_or(now_us);
        (row.pid, stamp_us, row.sm)
    });
    true_rows.chain(garbage).collect()
}

fn samples(call: &Call, device: DeviceHandle, of: c_uint, last_seen_us: u64) -> Result<Vec<Sample>, Code> {
    let world = call.world();
    let gpu = match of {
        1 | 2 => call.uncut_gpu(device)?.gpu,
        0 | 5 | 6 => call.gpu(device)?.gpu,
        3 | 4 | 7..=9 => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_ARGUMENT),
    };
    let ring = world.utilization_samples(gpu, call.t_us, last_seen_us);
    // A GPU at rest has no samples of its use, while those of power and clocks go on.
    if matches!(of, 1 | 2) && ring.iter().all(|sample| sample.percent == 0) {
        return Ok(Vec::new());
    }
    let (sm_mhz, memory_mhz) = world.clocks_mhz(gpu, call.t_us);
    let row = |sample: &crate::world::UtilizationSample| {
        let value = match of {
            0 => world.power_mw(gpu, call.t_us),
            1 => sample.percent,
            2 => memory_share(sample.percent),
            5 => sm_mhz,
            _ => memory_mhz,
        };
        Sample { timestamp_us: sample.stamp_us, value: value.into() }
    };
    Ok(ring.iter().map(row).collect())
}

/// The memory is read and written in half of the time in which kernels run: any number would do.
fn memory_share(percent: u32) -> u32 {
    percent / 2
}

impl Words for ProcessesUtilization {
    fn words(&self, to: &mut String) -> fmt::Result {
        let (low, high) = (self.last_seen_us & 0xffff_ffff, self.last_seen_us >> 32);
        write!(to, "{:x},{:x},{low:x},{high:x},", self.version, self.count)?;
        to.write_str(if self.rows.is_null() { "0,0" } else { "@" })
    }
}
