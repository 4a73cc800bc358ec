//! Accounting. A scenario's timeline switches it; a client may only ask for what is already so.

use super::argument::{InOut, Out, Rows, Words};
use super::call::Call;
use super::code::Code;
use super::handle::{DeviceHandle, count};
use super::layout::{AccountingCounters, AccountingStats};
use crate::world::AccountingFigures;
use std::ffi::c_uint;
use std::fmt::{self, Write};

/// How many processes are kept, as data-centre boards say.
const BUFFER: c_uint = 4000;

export! {
    fn nvmlDeviceGetAccountingMode(call, device: DeviceHandle, mode: Out<'_, c_uint>) {
        mode.put(call.gpu(device)?.state.accounting_since_us.is_some().into())
    }

    fn nvmlDeviceSetAccountingMode(call, device: DeviceHandle, mode: c_uint) {
        let target = call.uncut_gpu(device)?;
        call.needs_root()?;
        let is_on = target.state.accounting_since_us.is_some();
        if mode == c_uint::from(is_on) { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }

    fn nvmlDeviceClearAccountingPids(call, device: DeviceHandle) {
        call.uncut_gpu(device)?;
        call.needs_root()?;
        Err(Code::NOT_SUPPORTED)
    }

    fn nvmlDeviceGetAccountingBufferSize(call, device: DeviceHandle, size: Out<'_, c_uint>) {
        call.gpu(device)?;
        size.put(BUFFER)
    }

    fn nvmlDeviceGetAccountingPids(call, device: DeviceHandle, number: InOut<'_, c_uint>, pids: Rows<c_uint>) {
        let found: Vec<c_uint> = all(call, device)?.iter().map(|figures| figures.pid).collect();
        let number = number.get()?;
        let room = if pids.is_null() { 0 } else { *number };
        *number = count(found.len());
        pids.put(room, &found)
    }

    fn nvmlDeviceGetAccountingStats(call, device: DeviceHandle, pid: c_uint, stats: Out<'_, AccountingStats>) {
        let figures = of_process(call, device, pid)?;
        stats.put(AccountingStats {
            gpu_percent: figures.gpu_percent(),
            memory_percent: figures.memory_percent(),
            memory_bytes_max: figures.memory_bytes_max,
            time_ms: figures.time_ms,
            start_us: figures.start_stamp_us,
            is_running: figures.is_running.into(),
            reserved: [0; 5],
        })
    }

    fn nvmlDeviceGetAccountingStats_v2(call, device: DeviceHandle, stats: InOut<'_, AccountingCounters>) {
        let stats = stats.get()?;
        let figures = of_process(call, device, stats.pid)?;
        *stats = AccountingCounters {
            pid: figures.pid,
            is_running: figures.is_running.into(),
            gpu_percent: figures.gpu_percent(),
            memory_percent: figures.memory_percent(),
            memory_bytes_max: figures.memory_bytes_max,
            samples: c_uint::try_from(figures.samples).unwrap_or(c_uint::MAX),
            gpu_percent_hundredths: figures.gpu_percent_hundredths,
            memory_percent_hundredths: figures.memory_percent_hundredths,
            time_ms: figures.time_ms,
            start_us: figures.start_stamp_us,
        };
        Ok(())
    }
}

fn all(call: &Call, device: DeviceHandle) -> Result<Vec<AccountingFigures>, Code> {
    let gpu = call.gpu(device)?.gpu;
    call.world().accounting(gpu, call.t_us).ok_or(Code::NOT_SUPPORTED)
}

fn of_process(call: &Call, device: DeviceHandle, pid: u32) -> Result<AccountingFigures, Code> {
    all(call, device)?.into_iter().find(|figures| figures.pid == pid).ok_or(Code::NOT_FOUND)
}

impl Words for AccountingCounters {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{:x}", self.pid)
    }
}
