//! The GPU instance profiles of a device, which do not change while its driver is loaded.

use super::{Placement, name, placement};
use crate::absent::{Absent, Reading};
use crate::calls::{Handle, function, get_by, string};
use crate::code::check;
use crate::list::grow;
use crate::versions::PROFILE_V2;
use nvml_wrapper_sys::bindings as sys;

type Device = Handle<sys::nvmlDevice_st>;

/// Numbers of profiles to try. The header has 17 and grows; what a device lacks it says so.
const NUMBERS: u32 = 32;
/// More places than any profile has.
const PLACES: u32 = 16;

/// Profiles by name, and where each fits.
pub(crate) struct Profiles(Vec<Profile>);

struct Profile {
    /// The id that instances name, not the number the table was asked by.
    id: u32,
    name: String,
    places: Vec<Placement>,
}

impl Profiles {
    /// Reads the table. It is empty where the driver has no names for profiles.
    pub(crate) fn read(table: &sys::NvmlLib, device: Device) -> Reading<Self> {
        let mut profiles = Vec::new();
        for number in 0..NUMBERS {
            match get_by(&table.nvmlDeviceGetGpuInstanceProfileInfoV, device, number, NO_PROFILE) {
                Ok(info) => profiles.push(Profile {
                    id: info.id,
                    name: name::of_profile(&string(&info.name)),
                    places: places(table, device, info.id),
                }),
                Err(
                    Absent::NotSupported | Absent::Code(sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
                ) => {}
                Err(Absent::NoFunction | Absent::VersionMismatch) => break,
                Err(absent) => return Err(absent),
            }
        }
        Ok(Self(profiles))
    }

    pub(crate) fn name_of(&self, id: u32) -> Option<String> {
        self.0
            .iter()
            .find(|profile| profile.id == id && !profile.name.is_empty())
            .map(|profile| profile.name.clone())
    }

    /// Where instances of a profile may stand; empty where that is not known.
    pub(super) fn places_of(&self, name: &str) -> &[Placement] {
        self.0.iter().find(|profile| profile.name == name).map_or(&[], |profile| &profile.places)
    }
}

/// Where a profile may stand; empty where NVML does not say, for lack of privilege too. It asks for as much room as it needs and cannot be told
/// how much there is, so their number is asked first.
fn places(table: &sys::NvmlLib, device: Device, profile: u32) -> Vec<Placement> {
    let Ok(call) = function(&table.nvmlDeviceGetGpuInstancePossiblePlacements_v2) else { return Vec::new() };
    let mut count = 0;
    // SAFETY: function and handle are NVML's (see `calls`); without a place for them it writes their number only.
    let code = unsafe { call(device.raw(), profile, std::ptr::null_mut(), &raw mut count) };
    let empty = sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 };
    check(code)
        .and_then(|()| {
            grow(empty, count.max(PLACES), |count, rows| {
                // SAFETY: as above; there is room for as many rows as NVML said, and a profile has the same ones at all times.
                unsafe { call(device.raw(), profile, rows, count) }
            })
        })
        .map(|rows| rows.into_iter().map(placement).collect())
        .unwrap_or_default()
}

const NO_PROFILE: sys::nvmlGpuInstanceProfileInfo_v2_t = sys::nvmlGpuInstanceProfileInfo_v2_t {
    version: PROFILE_V2,
    id: 0,
    isP2pSupported: 0,
    sliceCount: 0,
    instanceCount: 0,
    multiprocessorCount: 0,
    copyEngineCount: 0,
    decoderCount: 0,
    encoderCount: 0,
    jpegCount: 0,
    ofaCount: 0,
    memorySizeMB: 0,
    name: [0; 96],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Profiles {
        let place = |start, size| Placement { start, size };
        Profiles(vec![
            Profile { id: 9, name: "3g.40gb".into(), places: vec![place(0, 4), place(4, 4)] },
            Profile { id: 0, name: "7g.80gb".into(), places: vec![place(0, 8)] },
            Profile { id: 19, name: String::new(), places: vec![] },
        ])
    }

    #[test]
    fn profiles_are_found_by_their_id() {
        assert_eq!(table().name_of(9).as_deref(), Some("3g.40gb"));
        assert_eq!(table().name_of(0).as_deref(), Some("7g.80gb"));
        assert_eq!(table().name_of(19), None);
        assert_eq!(table().name_of(4), None);
    }

    #[test]
    fn places_are_found_by_the_name_of_the_profile() {
        assert_eq!(table().places_of("7g.80gb"), [Placement { start: 0, size: 8 }]);
        assert_eq!(table().places_of("3g.40gb").len(), 2);
        assert_eq!(table().places_of("1g.10gb"), []);
    }
}
