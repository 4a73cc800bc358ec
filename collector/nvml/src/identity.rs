//! Which device it is.

use crate::absent::Reading;
use crate::calls::{Handle, get, get_pair, string, text};
use crate::values::Identity;
use nvml_wrapper_sys::bindings as sys;
use std::ffi::c_int;

pub(crate) fn read(table: &sys::NvmlLib, device: Handle<sys::nvmlDevice_st>) -> Reading<Identity> {
    Ok(Identity {
        uuid: uuid(table, device)?,
        index: get(&table.nvmlDeviceGetIndex, device, 0)?,
        name: text(&table.nvmlDeviceGetName, device)?,
        pci_bus_id: string(&get(&table.nvmlDeviceGetPciInfo_v3, device, NO_PCI)?.busId),
        minor: get(&table.nvmlDeviceGetMinorNumber, device, 0).ok(),
        compute_capability: get_pair(&table.nvmlDeviceGetCudaComputeCapability, device, 0)
            .ok()
            .and_then(capability),
    })
}

/// `GPU-…`, or `MIG-…` of a MIG device.
pub(crate) fn uuid(table: &sys::NvmlLib, device: Handle<sys::nvmlDevice_st>) -> Reading<String> {
    text(&table.nvmlDeviceGetUUID, device)
}

fn capability((major, minor): (c_int, c_int)) -> Option<(u32, u32)> {
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?))
}

const NO_PCI: sys::nvmlPciInfo_t = sys::nvmlPciInfo_t {
    busIdLegacy: [0; 16],
    domain: 0,
    bus: 0,
    device: 0,
    pciDeviceId: 0,
    pciSubSystemId: 0,
    busId: [0; 32],
};
