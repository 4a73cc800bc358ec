//! Return codes as C sees them.

pub(super) use crate::code::ReturnCode as Code;
use std::ffi::{CStr, c_uint};

impl Code {
    pub(super) const UNINITIALIZED: Self = Self(1);
    pub(super) const INVALID_ARGUMENT: Self = Self(2);
    pub(super) const NOT_FOUND: Self = Self(6);
    pub(super) const INSUFFICIENT_SIZE: Self = Self(7);
    pub(super) const TIMEOUT: Self = Self(10);
    pub(super) const NO_DATA: Self = Self(21);
    pub(super) const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
}

/// The text of a return code, in the words of `nvmlErrorString`.
pub(super) const fn text(number: c_uint) -> &'static CStr {
    match number {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"ECC not supported when VGPU is enabled",
        23 => c"Insufficient resources",
        24 => c"Frequency not supported",
        25 => c"Argument version mismatch",
        26 => c"Deprecated",
        27 => c"Not ready",
        28 => c"GPU not found",
        29 => c"Invalid state",
        30 => c"Reset type not supported",
        _ => c"Unknown Error",
    }
}
