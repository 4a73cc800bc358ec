//! Readings of the whole board: energy, power, temperature, clocks, errors, and what the driver wants done.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, function, get, get_by};
use crate::code::check;
use crate::value;
use nvml_wrapper_sys::bindings as sys;

type Device = Handle<sys::nvmlDevice_st>;

pub(crate) fn energy_mj(table: &sys::NvmlLib, device: Device) -> Reading<u64> {
    get(&table.nvmlDeviceGetTotalEnergyConsumption, device, 0)
}

pub(crate) fn power_mw(table: &sys::NvmlLib, device: Device) -> Reading<u32> {
    get(&table.nvmlDeviceGetPowerUsage, device, 0)
}

pub(crate) fn temperature_c(table: &sys::NvmlLib, device: Device) -> Reading<u32> {
    get_by(&table.nvmlDeviceGetTemperature, device, sys::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU, 0)
}

/// Multiprocessors, memory.
pub(crate) fn clocks_mhz(table: &sys::NvmlLib, device: Device) -> Reading<(u32, u32)> {
    let clock = |which| get_by(&table.nvmlDeviceGetClockInfo, device, which, 0);
    Ok((clock(sys::nvmlClockType_enum_NVML_CLOCK_SM)?, clock(sys::nvmlClockType_enum_NVML_CLOCK_MEM)?))
}

/// Since the driver was loaded.
pub(crate) fn uncorrectable_errors(table: &sys::NvmlLib, device: Device) -> Reading<u64> {
    let call = function(&table.nvmlDeviceGetTotalEccErrors)?;
    let kind = sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
    let mut errors = 0;
    // SAFETY: function and handle are NVML's (see `calls`); it writes one number, which `errors` has room for.
    let code =
        unsafe { call(device.raw(), kind, sys::nvmlEccCounterType_enum_NVML_VOLATILE_ECC, &raw mut errors) };
    check(code).map(|()| errors)
}

/// Field 230.
pub(crate) fn recovery_action(table: &sys::NvmlLib, device: Device) -> Reading<u32> {
    let number = field(table, device, sys::field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)?;
    u32::try_from(number).map_err(|_| Absent::Implausible)
}

/// One field at a time: a field the driver does not know has its own return code.
fn field(table: &sys::NvmlLib, device: Device, id: u32) -> Reading<u64> {
    let call = function(&table.nvmlDeviceGetFieldValues)?;
    let mut asked = sys::nvmlFieldValue_t {
        fieldId: id,
        scopeId: 0,
        timestamp: 0,
        latencyUsec: 0,
        valueType: 0,
        nvmlReturn: 0,
        value: value::nothing(),
    };
    // SAFETY: function and handle are NVML's (see `calls`); it reads and writes the one record it is told of.
    let code = unsafe { call(device.raw(), 1, &raw mut asked) };
    check(code)?;
    check(asked.nvmlReturn)?;
    if asked.fieldId == id { value::number(asked.valueType, asked.value) } else { Err(Absent::Implausible) }
}
