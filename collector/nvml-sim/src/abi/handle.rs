//! Handles: numbers that look like pointers and point nowhere, so that a wrong one is told apart and never followed.
//!
//! A MIG device's handle names its place in the list of MIG devices, not the instance: after the instance is gone the handle is invalid,
//! and when another one takes the place, the handle is that one's. NVML warns of just that.

use super::code::Code;
use std::ffi::c_uint;

const _: () = assert!(usize::BITS == 64, "handles need 64 bits");

/// The two upper bytes of each handle: "NV".
const TAG: usize = 0x4e56 << 48;
const KIND: u32 = 40;
const GPU: u32 = 32;
const FIRST: u32 = 16;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    /// A device by its place in the scenario's list.
    Gpu(u8),
    /// A place in a device's list of MIG devices.
    Mig { gpu: u8, index: u16 },
    /// A GPU instance by its id.
    GpuInstance { gpu: u8, id: u16 },
    /// A compute instance by its id and that of its GPU instance.
    ComputeInstance { gpu: u8, gpu_instance: u16, id: u16 },
    /// A set of events by its place among them.
    EventSet(u16),
    /// A GPM sample by its place among them.
    GpmSample(u16),
}

/// A `nvmlDevice_t` as it comes from C: perhaps not one of ours.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceHandle(pub(super) usize);

/// A `nvmlGpuInstance_t` or `nvmlComputeInstance_t` as it comes from C.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstanceHandle(pub(super) usize);

impl Handle {
    /// The device it is of.
    pub(super) fn gpu(self) -> Option<usize> {
        match self {
            Self::Gpu(gpu)
            | Self::Mig { gpu, .. }
            | Self::GpuInstance { gpu, .. }
            | Self::ComputeInstance { gpu, .. } => Some(gpu.into()),
            Self::EventSet(_) | Self::GpmSample(_) => None,
        }
    }

    /// The number C holds.
    pub(super) fn number(self) -> usize {
        let (kind, gpu, first, second) = match self {
            Self::Gpu(gpu) => (1, gpu, 0, 0),
            Self::Mig { gpu, index } => (2, gpu, index, 0),
            Self::GpuInstance { gpu, id } => (3, gpu, id, 0),
            Self::ComputeInstance { gpu, gpu_instance, id } => (4, gpu, gpu_instance, id),
            Self::EventSet(slot) => (5, 0, slot, 0),
            Self::GpmSample(slot) => (6, 0, slot, 0),
        };
        TAG | kind << KIND | usize::from(gpu) << GPU | usize::from(first) << FIRST | usize::from(second)
    }

    /// What a number from C names; anything else is an invalid argument.
    pub(super) fn read(number: usize) -> Result<Self, Code> {
        let [s0, s1, f0, f1, gpu, kind, t0, t1] = number.to_le_bytes();
        let (first, second) = (u16::from_le_bytes([f0, f1]), u16::from_le_bytes([s0, s1]));
        if u16::from_le_bytes([t0, t1]) != 0x4e56 {
            return Err(Code::INVALID_ARGUMENT);
        }
        match (kind, gpu, second) {
            (1, gpu, 0) if first == 0 => Ok(Self::Gpu(gpu)),
            (2, gpu, 0) => Ok(Self::Mig { gpu, index: first }),
            (3, gpu, 0) => Ok(Self::GpuInstance { gpu, id: first }),
            (4, gpu, id) => Ok(Self::ComputeInstance { gpu, gpu_instance: first, id }),
            (5, 0, 0) => Ok(Self::EventSet(first)),
            (6, 0, 0) => Ok(Self::GpmSample(first)),
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }
}

/// A number of the scenario as it stands in a handle.
pub(super) fn short(number: u32) -> Result<u16, Code> {
    u16::try_from(number).map_err(|_| Code::UNKNOWN)
}

/// A place in a list as C counts.
pub(super) fn count(length: usize) -> c_uint {
    c_uint::try_from(length).unwrap_or(c_uint::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_handle_comes_back() {
        for handle in [
            Handle::Gpu(7),
            Handle::Mig { gpu: 1, index: 6 },
            Handle::GpuInstance { gpu: 0, id: 13 },
            Handle::ComputeInstance { gpu: 2, gpu_instance: 3, id: 4 },
            Handle::EventSet(5),
            Handle::GpmSample(65_535),
        ] {
            assert_eq!(Handle::read(handle.number()), Ok(handle));
        }
    }

    #[test]
    fn what_is_not_a_handle_is_an_invalid_argument() {
        for number in [
            0,
            1,
            usize::MAX,
            TAG,
            TAG | 9 << KIND,
            Handle::Gpu(0).number() | 1,
            Handle::EventSet(1).number() | 1 << GPU,
        ] {
            assert_eq!(Handle::read(number), Err(Code::INVALID_ARGUMENT), "{number:x}");
        }
    }
}
