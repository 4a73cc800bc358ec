//! GPU instances and compute instances, their profiles and places. Most of it wants privilege.

use super::argument::{GpuInstanceId, InOut, Out, Rows, Versioned};
use super::call::Call;
use super::code::Code;
use super::handle::{DeviceHandle, Handle, InstanceHandle, count, short};
use super::layout::{
    ComputeInstanceInfo, ComputeInstanceProfile, ComputeInstanceProfileV2, ComputeInstanceProfileV3,
    GpuInstanceInfo, GpuInstanceProfile, GpuInstanceProfileV2, GpuInstanceProfileV3, Placement, text,
};
use super::target::Target;
use crate::model::{Geometry, Profile};
use crate::world::{ComputeInstance, GpuInstance};
use std::ffi::c_uint;
use std::ptr;

export! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(call, device: DeviceHandle, number: c_uint, info: Out<'_, GpuInstanceProfile>) {
        info.put(profile_info(profile_by_number(call, device, number)?))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoV(call, device: DeviceHandle, number: c_uint, info: Versioned) {
        let profile = profile_by_number(call, device, number)?;
        put_profile(info, profile)
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        call, device: DeviceHandle, profile: c_uint, placements: Rows<Placement>, number: InOut<'_, c_uint>
    ) {
        let profile = profile_by_id(geometry(&call.gpu(device)?)?, profile)?;
        let rows: Vec<Placement> =
            profile.starts.iter().map(|start| Placement { start: *start, size: profile.memory_slices }).collect();
        let number = number.get()?;
        if placements.is_null() {
            *number = count(rows.len());
            return Ok(());
        }
        let room = std::mem::replace(number, count(rows.len()));
        placements.put(room, &rows)
    }

    fn nvmlDeviceGetGpuInstanceRemainingCapacity(call, device: DeviceHandle, profile: c_uint, number: Out<'_, c_uint>) {
        let target = call.gpu(device)?;
        let profile = profile_by_id(geometry(&target)?, profile)?;
        number.put(remaining(call, &target, profile))
    }

    fn nvmlDeviceGetGpuInstances(
        call, device: DeviceHandle, profile: c_uint, instances: Rows<usize>, number: Out<'_, c_uint>
    ) {
        let target = call.gpu(device)?;
        call.needs_root()?;
        let profile = profile_by_id(geometry(&target)?, profile)?;
        let live = target.state.gpu_instances.iter().map(|index| call.world().gpu_instance(*index));
        let handles: Vec<usize> = live
            .filter(|instance| ptr::eq(instance.profile, profile))
            .map(|instance| instance_handle(target.gpu, instance.id).map(Handle::number))
            .collect::<Result<_, _>>()?;
        number.put(count(handles.len()))?;
        instances.put(profile.max_instances, &handles)
    }

    fn nvmlDeviceGetGpuInstanceById(call, device: DeviceHandle, id: GpuInstanceId, instance: Out<'_, usize>) {
        let target = call.gpu(device)?;
        call.needs_root()?;
        geometry(&target)?;
        target.gpu_instance(id.0).ok_or(Code::NOT_FOUND)?;
        instance.put(instance_handle(target.gpu, id.0)?.number())
    }

    fn nvmlGpuInstanceGetInfo(call, instance: InstanceHandle, info: Out<'_, GpuInstanceInfo>) {
        call.needs_root()?;
        let (target, _, instance) = gpu_instance(call, instance)?;
        let gpu = u8::try_from(target.gpu).map_err(|_| Code::UNKNOWN)?;
        info.put(GpuInstanceInfo {
            device: Handle::Gpu(gpu).number(),
            id: instance.id,
            profile_id: instance.profile.id,
            placement: Placement { start: instance.start, size: instance.profile.memory_slices },
        })
    }

    fn nvmlGpuInstanceGetComputeInstances(
        call, instance: InstanceHandle, profile: c_uint, computes: Rows<usize>, number: Out<'_, c_uint>
    ) {
        call.needs_root()?;
        let (target, index, instance) = gpu_instance(call, instance)?;
        let handles: Vec<usize> = target
            .compute_instances(index)
            .filter(|compute| compute_profile(compute.slices) == profile)
            .map(|compute| compute_handle(target.gpu, instance, compute).map(Handle::number))
            .collect::<Result<_, _>>()?;
        number.put(count(handles.len()))?;
        computes.put(instance.profile.compute_slices, &handles)
    }

    fn nvmlGpuInstanceGetComputeInstanceById(call, instance: InstanceHandle, id: c_uint, compute: Out<'_, usize>) {
        call.needs_root()?;
        let (target, index, instance) = gpu_instance(call, instance)?;
        let found = target.compute_instances(index).find(|compute| compute.id == id).ok_or(Code::NOT_FOUND)?;
        compute.put(compute_handle(target.gpu, instance, found)?.number())
    }

    fn nvmlComputeInstanceGetInfo_v2(call, compute: InstanceHandle, info: Out<'_, ComputeInstanceInfo>) {
        call.needs_root()?;
        let Handle::ComputeInstance { gpu, gpu_instance, id } = Handle::read(compute.0)? else {
            return Err(Code::INVALID_ARGUMENT);
        };
        let target = call.target_of(Handle::Gpu(gpu))?;
        let (index, _) = target.gpu_instance(gpu_instance.into()).ok_or(Code::INVALID_ARGUMENT)?;
        let mut live = target.compute_instances(index);
        let compute = live.find(|compute| compute.id == u32::from(id)).ok_or(Code::INVALID_ARGUMENT)?;
        info.put(ComputeInstanceInfo {
            device: Handle::Gpu(gpu).number(),
            gpu_instance: Handle::GpuInstance { gpu, id: gpu_instance }.number(),
            id: compute.id,
            profile_id: compute_profile(compute.slices),
            placement: Placement { start: compute.start, size: compute.slices },
        })
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        call, instance: InstanceHandle, number: c_uint, _engines: c_uint, info: Out<'_, ComputeInstanceProfile>
    ) {
        let (_, _, instance) = gpu_instance(call, instance)?;
        info.put(compute_profile_info(instance.profile, number)?.0)
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        call, instance: InstanceHandle, number: c_uint, _engines: c_uint, info: Versioned
    ) {
        let (_, _, instance) = gpu_instance(call, instance)?;
        let (body, name) = compute_profile_info(instance.profile, number)?;
        match info.version()? {
            version @ ComputeInstanceProfileV2::VERSION => {
                info.put(ComputeInstanceProfileV2 { version, body, name: text(&name) });
            }
            version @ ComputeInstanceProfileV3::VERSION => {
                info.put(ComputeInstanceProfileV3 { version, body, name: text(&name), capabilities: 0 });
            }
            _ => return Err(Code::ARGUMENT_VERSION_MISMATCH),
        }
        Ok(())
    }
}

/// The geometry of a GPU with MIG on.
fn geometry(target: &Target<'_>) -> Result<&'static Geometry, Code> {
    target.model().mig.filter(|_| target.state.is_mig_on()).ok_or(Code::NOT_SUPPORTED)
}

fn profile_by_number(call: &Call, device: DeviceHandle, number: c_uint) -> Result<&'static Profile, Code> {
    /// One more than the last number that a header knows.
    const END: c_uint = 17;
    let geometry = geometry(&call.gpu(device)?)?;
    let found = geometry.profiles.iter().find(|profile| profile.number == number);
    found.ok_or(if number < END { Code::NOT_SUPPORTED } else { Code::INVALID_ARGUMENT })
}

fn profile_by_id(geometry: &'static Geometry, id: c_uint) -> Result<&'static Profile, Code> {
    geometry.profiles.iter().find(|profile| profile.id == id).ok_or(Code::NOT_SUPPORTED)
}

fn profile_info(profile: &Profile) -> GpuInstanceProfile {
    GpuInstanceProfile {
        id: profile.id,
        is_p2p_supported: 0,
        slices: profile.compute_slices,
        instances: profile.max_instances,
        multiprocessors: profile.multiprocessors,
        copy_engines: profile.copy_engines,
        decoders: profile.decoders,
        encoders: 0,
        jpeg_engines: profile.jpegs,
        ofa_engines: profile.optical_flow,
        memory_size_mb: profile.memory_mib,
    }
}

fn put_profile(info: Versioned, profile: &Profile) -> Result<(), Code> {
    let body = profile_info(profile);
    // The name that NVML gives: `MIG 3g.40gb`.
    let name = text(&format!("MIG {}", profile.name));
    match info.version()? {
        version @ GpuInstanceProfileV2::VERSION => info.put(GpuInstanceProfileV2 {
            version,
            id: body.id,
            is_p2p_supported: body.is_p2p_supported,
            slices: body.slices,
            instances: body.instances,
            multiprocessors: body.multiprocessors,
            copy_engines: body.copy_engines,
            decoders: body.decoders,
            encoders: body.encoders,
            jpeg_engines: body.jpeg_engines,
            ofa_engines: body.ofa_engines,
            memory_size_mb: body.memory_size_mb,
            name,
        }),
        version @ GpuInstanceProfileV3::VERSION => info.put(GpuInstanceProfileV3 {
            version,
            id: body.id,
            slices: body.slices,
            instances: body.instances,
            multiprocessors: body.multiprocessors,
            copy_engines: body.copy_engines,
            decoders: body.decoders,
            encoders: body.encoders,
            jpeg_engines: body.jpeg_engines,
            ofa_engines: body.ofa_engines,
            memory_size_mb: body.memory_size_mb,
            name,
            capabilities: 0,
        }),
        _ => return Err(Code::ARGUMENT_VERSION_MISMATCH),
    }
    Ok(())
}

/// How many more instances of a profile fit beside the live ones.
fn remaining(call: &Call, target: &Target<'_>, profile: &Profile) -> c_uint {
    let mut taken: Vec<(u32, u32)> = target
        .state
        .gpu_instances
        .iter()
        .map(|index| call.world().gpu_instance(*index))
        .map(|instance| (instance.start, instance.start + instance.profile.memory_slices))
        .collect();
    let mut fit = 0;
    for start in profile.starts {
        let wanted = (*start, start + profile.memory_slices);
        if taken.iter().all(|(from, to)| wanted.1 <= *from || *to <= wanted.0) {
            taken.push(wanted);
            fit += 1;
        }
    }
    fit.min(profile.max_instances)
}

fn instance_handle(gpu: usize, id: u32) -> Result<Handle, Code> {
    Ok(Handle::GpuInstance { gpu: u8::try_from(gpu).map_err(|_| Code::UNKNOWN)?, id: short(id)? })
}

fn compute_handle(gpu: usize, instance: &GpuInstance, compute: &ComputeInstance) -> Result<Handle, Code> {
    Ok(Handle::ComputeInstance {
        gpu: u8::try_from(gpu).map_err(|_| Code::UNKNOWN)?,
        gpu_instance: short(instance.id)?,
        id: short(compute.id)?,
    })
}

/// The live GPU instance of a handle, with its GPU and its index.
fn gpu_instance(call: &Call, handle: InstanceHandle) -> Result<(Target<'_>, usize, &GpuInstance), Code> {
    let Handle::GpuInstance { gpu, id } = Handle::read(handle.0)? else { return Err(Code::INVALID_ARGUMENT) };
    let target = call.target_of(Handle::Gpu(gpu))?;
    let (index, instance) = target.gpu_instance(id.into()).ok_or(Code::INVALID_ARGUMENT)?;
    Ok((target, index, instance))
}

/// Compute slices of each profile of compute instances, by its number, which is also its id.
const COMPUTE_SLICES: [u32; 7] = [1, 2, 3, 4, 7, 8, 6];

fn compute_profile(slices: u32) -> c_uint {
    COMPUTE_SLICES.iter().position(|of| *of == slices).map_or(c_uint::MAX, count)
}

fn compute_profile_info(profile: &Profile, number: c_uint) -> Result<(ComputeInstanceProfile, String), Code> {
    let place = usize::try_from(number).map_err(|_| Code::INVALID_ARGUMENT)?;
    let slices = *COMPUTE_SLICES.get(place).ok_or(Code::INVALID_ARGUMENT)?;
    if slices > profile.compute_slices {
        return Err(Code::NOT_SUPPORTED);
    }
    let is_whole = slices == profile.compute_slices;
    let body = ComputeInstanceProfile {
        id: number,
        slices,
        instances: profile.compute_slices / slices,
        multiprocessors: profile.multiprocessors_of(slices),
        engines: [profile.copy_engines, profile.decoders, 0, profile.jpegs, profile.optical_flow],
    };
    let name =
        if is_whole { format!("MIG {}", profile.name) } else { format!("MIG {slices}c.{}", profile.name) };
    Ok((body, name))
}
