//! Return codes of NVML by their names (nvml.h).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A return code of NVML. In a scenario: its name without `NVML_ERROR_`, such as `GPU_IS_LOST`, or its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReturnCode(pub u32);

/// Names as in nvml.h, in order of their numbers.
const NAMES: [(u32, &str); 32] = [
    (0, "SUCCESS"),
    (1, "UNINITIALIZED"),
    (2, "INVALID_ARGUMENT"),
    (3, "NOT_SUPPORTED"),
    (4, "NO_PERMISSION"),
    (5, "ALREADY_INITIALIZED"),
    (6, "NOT_FOUND"),
    (7, "INSUFFICIENT_SIZE"),
    (8, "INSUFFICIENT_POWER"),
    (9, "DRIVER_NOT_LOADED"),
    (10, "TIMEOUT"),
    (11, "IRQ_ISSUE"),
    (12, "LIBRARY_NOT_FOUND"),
    (13, "FUNCTION_NOT_FOUND"),
    (14, "CORRUPTED_INFOROM"),
    (15, "GPU_IS_LOST"),
    (16, "RESET_REQUIRED"),
    (17, "OPERATING_SYSTEM"),
    (18, "LIB_RM_VERSION_MISMATCH"),
    (19, "IN_USE"),
    (20, "MEMORY"),
    (21, "NO_DATA"),
    (22, "VGPU_ECC_NOT_SUPPORTED"),
    (23, "INSUFFICIENT_RESOURCES"),
    (24, "FREQ_NOT_SUPPORTED"),
    (25, "ARGUMENT_VERSION_MISMATCH"),
    (26, "DEPRECATED"),
    (27, "NOT_READY"),
    (28, "GPU_NOT_FOUND"),
    (29, "INVALID_STATE"),
    (30, "RESET_TYPE_NOT_SUPPORTED"),
    (999, "UNKNOWN"),
];

impl ReturnCode {
    /// The device or its mode has no such reading.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// Needs more privilege.
    pub const NO_PERMISSION: Self = Self(4);
    /// The kernel driver is not loaded.
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    /// The driver has no such function.
    pub const FUNCTION_NOT_FOUND: Self = Self(13);
    /// The device fell off the bus.
    pub const GPU_IS_LOST: Self = Self(15);
    /// The device wants a reset.
    pub const RESET_REQUIRED: Self = Self(16);
    /// Library and kernel driver are of different versions.
    pub const LIB_RM_VERSION_MISMATCH: Self = Self(18);
    /// Anything else, a revoked device cgroup included.
    pub const UNKNOWN: Self = Self(999);

    /// Its name without the prefix.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for ReturnCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_u32(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for ReturnCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = NAMES.iter().find(|(_, name)| *name == text).map(|(number, _)| *number);
        known.or_else(|| text.parse().ok()).map(Self).ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` is no return code, expected a name such as GPU_IS_LOST or a number"
            ))
        })
    }
}
