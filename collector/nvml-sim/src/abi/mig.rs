//! MIG mode and MIG devices.

use super::argument::Out;
use super::code::Code;
use super::handle::{DeviceHandle, Handle};
use super::layout::Attributes;
use std::ffi::c_uint;

export! {
    fn nvmlDeviceGetMigMode(call, device: DeviceHandle, current: Out<'_, c_uint>, pending: Out<'_, c_uint>) {
        let mig = call.gpu(device)?.state.mig.ok_or(Code::NOT_SUPPORTED)?;
        current.put(mig.is_on.into())?;
        pending.put(mig.is_on_pending.into())
    }

    fn nvmlDeviceGetMaxMigDeviceCount(call, device: DeviceHandle, number: Out<'_, c_uint>) {
        let target = call.gpu(device)?;
        let geometry = target.model().mig.filter(|_| target.state.is_mig_on());
        number.put(geometry.map_or(0, |geometry| geometry.compute_slices))
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(call, device: DeviceHandle, index: c_uint, mig_device: Out<'_, usize>) {
        let target = call.gpu(device)?;
        let geometry = target.model().mig.ok_or(Code::NOT_SUPPORTED)?;
        if index >= geometry.compute_slices {
            return Err(Code::INVALID_ARGUMENT);
        }
        let place = target.state.mig_devices.iter().find(|place| place.index == index).ok_or(Code::NOT_FOUND)?;
        let Handle::Gpu(gpu) = Handle::read(device.0)? else { return Err(Code::INVALID_ARGUMENT) };
        let index = u16::try_from(place.index).map_err(|_| Code::UNKNOWN)?;
        mig_device.put(Handle::Mig { gpu, index }.number())
    }

    fn nvmlDeviceIsMigDeviceHandle(call, device: DeviceHandle, is_mig: Out<'_, c_uint>) {
        is_mig.put(call.target(device)?.instance().is_some().into())
    }

    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(call, mig_device: DeviceHandle, device: Out<'_, usize>) {
        call.target(mig_device)?;
        match Handle::read(mig_device.0)? {
            Handle::Mig { gpu, .. } => device.put(Handle::Gpu(gpu).number()),
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }

    fn nvmlDeviceGetGpuInstanceId(call, device: DeviceHandle, id: Out<'_, c_uint>) {
        id.put(call.target(device)?.mig_device()?.0.id)
    }

    fn nvmlDeviceGetComputeInstanceId(call, device: DeviceHandle, id: Out<'_, c_uint>) {
        id.put(call.target(device)?.mig_device()?.1.id)
    }

    fn nvmlDeviceGetAttributes_v2(call, device: DeviceHandle, attributes: Out<'_, Attributes>) {
        let (instance, compute) = call.target(device)?.mig_device()?;
        let profile = instance.profile;
        attributes.put(Attributes {
            multiprocessors: compute.multiprocessors,
            copy_engines: profile.copy_engines,
            decoders: profile.decoders,
            encoders: 0,
            jpeg_engines: profile.jpegs,
            ofa_engines: profile.optical_flow,
            gpu_instance_slices: profile.compute_slices,
            compute_instance_slices: compute.slices,
            memory_size_mb: profile.memory_mib,
        })
    }
}
