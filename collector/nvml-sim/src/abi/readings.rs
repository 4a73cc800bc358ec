//! Power, energy, temperature, clocks, memory errors: of whole GPUs, for no instance has its own.

use super::argument::{InOut, Out, Words};
use super::call::Call;
use super::code::Code;
use super::handle::DeviceHandle;
use super::layout::Temperature;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::fmt::{self, Write};

export! {
    fn nvmlDeviceGetTotalEnergyConsumption(call, device: DeviceHandle, energy_mj: Out<'_, c_ulonglong>) {
        let gpu = call.gpu(device)?.gpu;
        energy_mj.put(call.world().energy_mj(gpu, call.t_us))
    }

    fn nvmlDeviceGetPowerUsage(call, device: DeviceHandle, power_mw: Out<'_, c_uint>) {
        let gpu = call.gpu(device)?.gpu;
        power_mw.put(call.world().power_mw(gpu, call.t_us))
    }

    fn nvmlDeviceGetEnforcedPowerLimit(call, device: DeviceHandle, limit_mw: Out<'_, c_uint>) {
        limit_mw.put(call.gpu(device)?.model().limit_mw)
    }

    fn nvmlDeviceGetPowerManagementLimit(call, device: DeviceHandle, limit_mw: Out<'_, c_uint>) {
        limit_mw.put(call.gpu(device)?.model().limit_mw)
    }

    fn nvmlDeviceGetTemperature(call, device: DeviceHandle, sensor: c_uint, celsius: Out<'_, c_uint>) {
        let gpu = call.gpu(device)?.gpu;
        if sensor != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        celsius.put(call.world().temperature_c(gpu, call.t_us))
    }

    fn nvmlDeviceGetTemperatureV(call, device: DeviceHandle, temperature: InOut<'_, Temperature>) {
        let gpu = call.gpu(device)?.gpu;
        let temperature = temperature.get()?;
        if temperature.version != Temperature::VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        if temperature.sensor != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let celsius = call.world().temperature_c(gpu, call.t_us);
        temperature.celsius = c_int::try_from(celsius).map_err(|_| Code::UNKNOWN)?;
        Ok(())
    }

    fn nvmlDeviceGetFanSpeed(call, device: DeviceHandle, _percent: Out<'_, c_uint>) {
        // Boards of the catalogue are cooled by their server.
        call.gpu(device)?;
        Err(Code::NOT_SUPPORTED)
    }

    fn nvmlDeviceGetClockInfo(call, device: DeviceHandle, of: c_uint, mhz: Out<'_, c_uint>) {
        let gpu = call.gpu(device)?.gpu;
        mhz.put(clock(call.world().clocks_mhz(gpu, call.t_us), of)?)
    }

    fn nvmlDeviceGetMaxClockInfo(call, device: DeviceHandle, of: c_uint, mhz: Out<'_, c_uint>) {
        mhz.put(clock(call.gpu(device)?.model().clocks_mhz, of)?)
    }

    fn nvmlDeviceGetPerformanceState(call, device: DeviceHandle, state: Out<'_, c_uint>) {
        let gpu = call.gpu(device)?.gpu;
        let is_busy = call.world().device_busy(gpu).at(call.t_us) > 0;
        state.put(if is_busy { 0 } else { 8 })
    }

    fn nvmlDeviceGetPcieThroughput(call, device: DeviceHandle, counter: c_uint, kilobytes: Out<'_, c_uint>) {
        call.uncut_gpu(device)?;
        if counter > 1 { Err(Code::INVALID_ARGUMENT) } else { kilobytes.put(0) }
    }

    fn nvmlDeviceGetEccMode(call, device: DeviceHandle, current: Out<'_, c_uint>, pending: Out<'_, c_uint>) {
        let is_on = call.world().spec(call.gpu(device)?.gpu).ecc;
        current.put(is_on.into())?;
        pending.put(is_on.into())
    }

    fn nvmlDeviceGetTotalEccErrors(call, device: DeviceHandle, kind: c_uint, counter: c_uint, errors: Out<'_, c_ulonglong>) {
        errors.put(memory_errors(call, device, kind, counter)?)
    }

    fn nvmlDeviceGetMemoryErrorCounter(
        call, device: DeviceHandle, kind: c_uint, counter: c_uint, location: c_uint, errors: Out<'_, c_ulonglong>
    ) {
        const DRAM: c_uint = 2;
        let dram = memory_errors(call, device, kind, counter)?;
        match location {
            DRAM if call.target(device)?.instance().is_some() => Err(Code::NOT_SUPPORTED),
            DRAM => errors.put(dram),
            0..=7 => errors.put(0),
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }

    fn nvmlDeviceGetRemappedRows(
        call, device: DeviceHandle, correctable: Out<'_, c_uint>, uncorrectable: Out<'_, c_uint>, is_pending: Out<'_, c_uint>,
        has_failed: Out<'_, c_uint>
    ) {
        if call.gpu(device)?.model().compute_capability.0 < 8 {
            return Err(Code::NOT_SUPPORTED);
        }
        for out in [correctable, uncorrectable, is_pending, has_failed] {
            out.put(0)?;
        }
        Ok(())
    }
}

/// Graphics, multiprocessors and video go by one clock here.
fn clock((sm_mhz, memory_mhz): (u32, u32), of: c_uint) -> Result<c_uint, Code> {
    match of {
        0 | 1 | 3 => Ok(sm_mhz),
        2 => Ok(memory_mhz),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

/// Memory errors by kind (0 corrected, 1 uncorrected) and counter (0 since the driver was loaded, 1 ever). A MIG device knows only
/// uncorrected ones since then, and none of device memory.
fn memory_errors(call: &Call, device: DeviceHandle, kind: c_uint, counter: c_uint) -> Result<u64, Code> {
    let target = call.target(device)?;
    if !call.world().spec(target.gpu).ecc {
        return Err(Code::NOT_SUPPORTED);
    }
    let is_instance = target.instance().is_some();
    match (kind, counter) {
        (0 | 1, 0 | 1) if is_instance => {
            if (kind, counter) == (1, 0) {
                Ok(0)
            } else {
                Err(Code::NOT_SUPPORTED)
            }
        }
        (0, 0 | 1) => Ok(0),
        (1, 0) => Ok(target.state.uncorrectable_errors),
        (1, 1) => Ok(target.state.uncorrectable_errors_ever),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

impl Words for Temperature {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{:x},{:x}", self.version, self.sensor)
    }
}
