//! MIG: the mode of a device, and its live instances.

mod name;
mod places;
mod profiles;

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, get, get_pair, handle, text};
use crate::identity;
use crate::values::{MigInstance, MigMode, Placement};
use name::Name;
use nvml_wrapper_sys::bindings as sys;
pub(crate) use profiles::Profiles;
use std::ffi::c_uint;

type Device = Handle<sys::nvmlDevice_st>;

/// A MIG device's handle, good until its compute instance goes; then NVML may use it for another one, so it is asked for anew each cycle.
#[derive(Clone, Copy)]
pub(crate) struct MigHandle {
    pub(crate) index: u32,
    pub(crate) device: Device,
    pub(crate) gpu_instance: u32,
    pub(crate) compute_instance: u32,
}

pub(crate) fn mode(table: &sys::NvmlLib, device: Device) -> Reading<MigMode> {
    let is_on = |mode: c_uint| mode == sys::NVML_DEVICE_MIG_ENABLE;
    match get_pair(&table.nvmlDeviceGetMigMode, device, 0) {
        Ok((now, pending)) if is_on(now) => Ok(MigMode::On { turns_off: !is_on(pending) }),
        Ok((_, pending)) => Ok(MigMode::Off { turns_on: is_on(pending) }),
        Err(Absent::NotSupported | Absent::NoFunction) => Ok(MigMode::Unsupported),
        Err(absent) => Err(absent),
    }
}

/// The live MIG devices in order of (GPU instance, compute instance). NVML counts places, not devices, and leaves holes among them.
pub(crate) fn handles(table: &sys::NvmlLib, parent: Device) -> Reading<Vec<MigHandle>> {
    let places = match get(&table.nvmlDeviceGetMaxMigDeviceCount, parent, 0) {
        Ok(places) => places,
        Err(Absent::NotSupported | Absent::NoFunction) => 0,
        Err(absent) => return Err(absent),
    };
    let mut found = Vec::new();
    for index in 0..places {
        found.extend(unless_gone(one_handle(table, parent, index))?);
    }
    found.sort_by_key(|mig| (mig.gpu_instance, mig.compute_instance));
    Ok(found)
}

/// Reads what there is to know of live MIG devices. One that went meanwhile is left out.
pub(crate) fn instances(
    table: &sys::NvmlLib,
    parent: Device,
    handles: &[MigHandle],
    profiles: &Profiles,
) -> Reading<Vec<MigInstance>> {
    let read = handles.iter().map(|mig| instance(table, parent, mig, profiles));
    let mut instances: Vec<MigInstance> = read.filter_map(Reading::transpose).collect::<Reading<_>>()?;
    places::exclude(&mut instances, profiles);
    Ok(instances)
}

/// None: it went meanwhile.
fn instance(
    table: &sys::NvmlLib,
    parent: Device,
    mig: &MigHandle,
    profiles: &Profiles,
) -> Reading<Option<MigInstance>> {
    let Some(uuid) = unless_gone(identity::uuid(table, mig.device))? else { return Ok(None) };
    let attributes = get(&table.nvmlDeviceGetAttributes_v2, mig.device, NO_ATTRIBUTES);
    let info = instance_info(table, parent, mig.gpu_instance);
    let named = info.and_then(|info| profiles.name_of(info.profileId).ok_or(Absent::NotFound));
    let spoken = if named.is_err() || attributes.is_err() {
        text(&table.nvmlDeviceGetName, mig.device)
            .and_then(|text| Name::parse(&text).ok_or(Absent::Implausible))
    } else {
        Err(Absent::NotYet)
    };
    let profile =
        named.or_else(|absent| spoken.as_ref().map(|name| name.profile.clone()).map_err(|_| absent));
    Ok(Some(MigInstance {
        index: mig.index,
        uuid,
        gpu_instance: mig.gpu_instance,
        compute_instance: mig.compute_instance,
        compute_profile: compute_profile(&profile, attributes, spoken.ok()),
        placement: info.map(|info| placement(info.placement)),
        profile,
        compute_slices: attributes.map(|it| it.gpuInstanceSliceCount),
        multiprocessors: attributes.map(|it| it.multiprocessorCount),
        memory_bytes: attributes.and_then(|it| it.memorySizeMB.checked_mul(MIB).ok_or(Absent::Implausible)),
    }))
}

/// The handle of a GPU instance's first MIG device, seen again: a handle may have been given to another one since.
pub(crate) fn still_of(table: &sys::NvmlLib, mig: &MigHandle) -> bool {
    get(&table.nvmlDeviceGetGpuInstanceId, mig.device, 0) == Ok(mig.gpu_instance)
}

fn one_handle(table: &sys::NvmlLib, parent: Device, index: u32) -> Reading<MigHandle> {
    let device = handle(&table.nvmlDeviceGetMigDeviceHandleByIndex, parent, index)?;
    let gpu_instance = get(&table.nvmlDeviceGetGpuInstanceId, device, 0)?;
    let compute_instance = get(&table.nvmlDeviceGetComputeInstanceId, device, 0)?;
    Ok(MigHandle { index, device, gpu_instance, compute_instance })
}

/// A place without a device, or a handle whose device has gone, which NVML calls an invalid argument (2).
pub(crate) fn unless_gone<T>(reading: Reading<T>) -> Reading<Option<T>> {
    match reading {
        Ok(value) => Ok(Some(value)),
        Err(Absent::NotFound | Absent::Code(sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)) => Ok(None),
        Err(absent) => Err(absent),
    }
}

/// Profile and placement. Needs privilege.
fn instance_info(table: &sys::NvmlLib, parent: Device, id: u32) -> Reading<sys::nvmlGpuInstanceInfo_t> {
    let instance = handle(&table.nvmlDeviceGetGpuInstanceById, parent, id)?;
    let start = sys::nvmlGpuInstanceInfo_t {
        device: std::ptr::null_mut(),
        id: 0,
        profileId: 0,
        placement: sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 },
    };
    let info = get(&table.nvmlGpuInstanceGetInfo, instance, start)?;
    if info.id == id { Ok(info) } else { Err(Absent::NotFound) }
}

fn placement(raw: sys::nvmlGpuInstancePlacement_t) -> Placement {
    Placement { start: raw.start, size: raw.size }
}

/// The compute instance's own profile, where it is less than its GPU instance.
fn compute_profile(
    profile: &Reading<String>,
    attributes: Reading<sys::nvmlDeviceAttributes_t>,
    spoken: Option<Name>,
) -> Option<String> {
    let Ok(it) = attributes else { return spoken.and_then(|name| name.compute_profile) };
    let profile = profile.as_ref().ok()?;
    (it.computeInstanceSliceCount < it.gpuInstanceSliceCount)
        .then(|| format!("{}c.{profile}", it.computeInstanceSliceCount))
}

const MIB: u64 = 1 << 20;

const NO_ATTRIBUTES: sys::nvmlDeviceAttributes_t = sys::nvmlDeviceAttributes_t {
    multiprocessorCount: 0,
    sharedCopyEngineCount: 0,
    sharedDecoderCount: 0,
    sharedEncoderCount: 0,
    sharedJpegCount: 0,
    sharedOfaCount: 0,
    gpuInstanceSliceCount: 0,
    computeInstanceSliceCount: 0,
    memorySizeMB: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(gpu: u32, compute: u32) -> Reading<sys::nvmlDeviceAttributes_t> {
        Ok(sys::nvmlDeviceAttributes_t {
            gpuInstanceSliceCount: gpu,
            computeInstanceSliceCount: compute,
            ..NO_ATTRIBUTES
        })
    }

    #[test]
    fn a_compute_instance_that_is_all_of_its_gpu_instance_has_no_profile_of_its_own() {
        let profile = Ok("3g.40gb".to_owned());
        assert_eq!(compute_profile(&profile, slices(3, 3), None), None);
        assert_eq!(compute_profile(&profile, slices(3, 1), None), Some("1c.3g.40gb".to_owned()));
    }

    #[test]
    fn without_attributes_the_name_says_what_the_compute_instance_is() {
        let name = Name::parse("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb");
        let profile = Ok("3g.40gb".to_owned());
        assert_eq!(compute_profile(&profile, Err(Absent::NotSupported), name), Some("1c.3g.40gb".to_owned()));
    }

    #[test]
    fn only_a_device_that_went_is_left_out() {
        assert_eq!(unless_gone(Ok(1)), Ok(Some(1)));
        assert_eq!(unless_gone::<u32>(Err(Absent::NotFound)), Ok(None));
        assert_eq!(unless_gone::<u32>(Err(Absent::Code(2))), Ok(None));
        assert_eq!(unless_gone::<u32>(Err(Absent::NoPermission)), Err(Absent::NoPermission));
        assert_eq!(unless_gone::<u32>(Err(Absent::Lost)), Err(Absent::Lost));
    }
}
