//! Which devices there are and what they are.

use super::argument::{GpuIndex, Out, Rows, Text};
use super::code::Code;
use super::handle::{DeviceHandle, Handle, count};
use super::layout::{PciInfo, text};
use super::target::profile_name;
use crate::scenario::ComputeMode;
use std::ffi::{c_char, c_int, c_uint};

export! {
    fn nvmlDeviceGetCount_v2(call, number: Out<'_, c_uint>) {
        number.put(count(call.world().gpu_count()))
    }

    fn nvmlDeviceGetHandleByIndex_v2(call, index: GpuIndex, device: Out<'_, usize>) {
        let handle = Handle::Gpu(u8::try_from(index.0).map_err(|_| Code::INVALID_ARGUMENT)?);
        call.target_of(handle)?;
        device.put(handle.number())
    }

    fn nvmlDeviceGetHandleByUUID(call, uuid: Text, device: Out<'_, usize>) {
        let wanted = uuid.get()?;
        let handle = handles(call).find(|handle| uuid_of(call, *handle).is_ok_and(|uuid| uuid == wanted));
        device.put(handle.ok_or(Code::NOT_FOUND)?.number())
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(call, id: Text, device: Out<'_, usize>) {
        let wanted = address(id.get()?).ok_or(Code::INVALID_ARGUMENT)?;
        let found = (0..call.world().gpu_count()).find(|gpu| address(&call.world().pci(*gpu)) == Some(wanted));
        let gpu = u8::try_from(found.ok_or(Code::NOT_FOUND)?).map_err(|_| Code::NOT_FOUND)?;
        call.target_of(Handle::Gpu(gpu))?;
        device.put(Handle::Gpu(gpu).number())
    }

    fn nvmlDeviceGetIndex(call, device: DeviceHandle, index: Out<'_, c_uint>) {
        let target = call.target(device)?;
        index.put(target.instance().map_or(count(target.gpu), |(_, compute)| compute.index))
    }

    fn nvmlDeviceGetName(call, device: DeviceHandle, name: Rows<c_char>, length: c_uint) {
        let target = call.target(device)?;
        let gpu = call.world().name(target.gpu);
        match target.instance() {
            None => name.put_text(length, gpu),
            Some((instance, compute)) => {
                name.put_text(length, &format!("{gpu} MIG {}", profile_name(instance, compute)))
            }
        }
    }

    fn nvmlDeviceGetUUID(call, device: DeviceHandle, uuid: Rows<c_char>, length: c_uint) {
        uuid.put_text(length, &uuid_of(call, Handle::read(device.0)?)?)
    }

    fn nvmlDeviceGetSerial(call, device: DeviceHandle, serial: Rows<c_char>, length: c_uint) {
        let target = call.gpu(device)?;
        let known = call.world().spec(target.gpu).serial.as_deref();
        serial.put_text(length, known.ok_or(Code::NOT_SUPPORTED)?)
    }

    fn nvmlDeviceGetMinorNumber(call, device: DeviceHandle, minor: Out<'_, c_uint>) {
        minor.put(call.world().minor(call.gpu(device)?.gpu))
    }

    fn nvmlDeviceGetPciInfo_v3(call, device: DeviceHandle, pci: Out<'_, PciInfo>) {
        let target = call.target(device)?;
        let id = call.world().pci(target.gpu);
        let (domain, bus, device) = address(&id).ok_or(Code::UNKNOWN)?;
        pci.put(PciInfo {
            bus_id_legacy: text(&format!("{domain:04X}:{bus:02X}:{device:02X}.0")),
            domain,
            bus,
            device,
            pci_device_id: target.model().pci_device_id,
            pci_sub_system_id: target.model().pci_device_id,
            bus_id: text(&format!("{domain:08X}:{bus:02X}:{device:02X}.0")),
        })
    }

    fn nvmlDeviceGetArchitecture(call, device: DeviceHandle, architecture: Out<'_, c_uint>) {
        architecture.put(call.target(device)?.model().architecture())
    }

    fn nvmlDeviceGetCudaComputeCapability(call, device: DeviceHandle, major: Out<'_, c_int>, minor: Out<'_, c_int>) {
        let (capability, small) = call.target(device)?.model().compute_capability;
        major.put(c_int::try_from(capability).map_err(|_| Code::UNKNOWN)?)?;
        minor.put(c_int::try_from(small).map_err(|_| Code::UNKNOWN)?)
    }

    fn nvmlDeviceGetBrand(call, device: DeviceHandle, brand: Out<'_, c_uint>) {
        const TESLA: c_uint = 2;
        const NVIDIA: c_uint = 14;
        let is_tesla = call.target(device)?.model().name.starts_with("Tesla");
        brand.put(if is_tesla { TESLA } else { NVIDIA })
    }

    fn nvmlDeviceGetPersistenceMode(call, device: DeviceHandle, mode: Out<'_, c_uint>) {
        mode.put(call.gpu(device)?.state.has_persistence.into())
    }

    fn nvmlDeviceGetComputeMode(call, device: DeviceHandle, mode: Out<'_, c_uint>) {
        let target = call.target(device)?;
        if target.state.is_mig_on() && target.instance().is_none() {
            return Err(Code::NOT_SUPPORTED);
        }
        mode.put(match target.state.compute_mode {
            ComputeMode::Default => 0,
            ComputeMode::Prohibited => 2,
            ComputeMode::ExclusiveProcess => 3,
        })
    }

    fn nvmlDeviceGetVirtualizationMode(call, device: DeviceHandle, mode: Out<'_, c_uint>) {
        call.gpu(device)?;
        mode.put(0)
    }

    fn nvmlDeviceGetDisplayActive(call, device: DeviceHandle, active: Out<'_, c_uint>) {
        call.gpu(device)?;
        active.put(0)
    }

    fn nvmlDeviceGetDisplayMode(call, device: DeviceHandle, mode: Out<'_, c_uint>) {
        call.gpu(device)?;
        mode.put(0)
    }

    fn nvmlDeviceGetDriverModel(call, device: DeviceHandle, _current: Out<'_, c_uint>, _pending: Out<'_, c_uint>) {
        call.target(device)?;
        Err(Code::NOT_SUPPORTED)
    }

    fn nvmlDeviceGetDriverModel_v2(call, device: DeviceHandle, _current: Out<'_, c_uint>, _pending: Out<'_, c_uint>) {
        call.target(device)?;
        Err(Code::NOT_SUPPORTED)
    }
}

/// All devices, MIG devices after their GPU.
fn handles(call: &super::call::Call) -> impl Iterator<Item = Handle> {
    let world = call.world();
    let gpus = (0..world.gpu_count()).filter_map(|gpu| u8::try_from(gpu).ok());
    gpus.flat_map(move |gpu| {
        let devices = world.state(gpu.into(), call.t_us).mig_devices.iter();
        let places = devices.filter_map(move |device| u16::try_from(device.index).ok());
        std::iter::once(Handle::Gpu(gpu)).chain(places.map(move |index| Handle::Mig { gpu, index }))
    })
}

/// Before driver 470 the UUID of a MIG device was made of its GPU's and its ids.
fn uuid_of(call: &super::call::Call, handle: Handle) -> Result<String, Code> {
    let target = call.target_of(handle)?;
    let gpu = &call.world().spec(target.gpu).uuid;
    Ok(match target.instance() {
        None => gpu.clone(),
        Some((instance, compute)) if call.release < (470, 0) => {
            format!("MIG-{gpu}/{}/{}", instance.id, compute.id)
        }
        Some((_, compute)) => compute.uuid.clone(),
    })
}

/// Domain, bus and device of a PCI address; the domain may be left out.
fn address(id: &str) -> Option<(c_uint, c_uint, c_uint)> {
    let (id, _function) = id.split_once('.').unwrap_or((id, "0"));
    let mut parts = id.rsplit(':').map(|part| c_uint::from_str_radix(part, 16));
    let (device, bus, domain) =
        (parts.next()?.ok()?, parts.next()?.ok()?, parts.next().unwrap_or(Ok(0)).ok()?);
    Some((domain, bus, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_in_any_of_its_forms() {
        for id in ["00000000:3B:00.0", "0000:3b:00.0", "3B:00.0", "3b:0"] {
            assert_eq!(address(id), Some((0, 0x3b, 0)), "{id}");
        }
        assert_eq!(address("00000001:C1:00.0"), Some((1, 0xc1, 0)));
        assert_eq!(address("odd"), None);
    }
}
