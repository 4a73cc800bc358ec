//! Return codes.

use crate::absent::{Absent, Reading};
use nvml_wrapper_sys::bindings as sys;

/// `Ok` for success, else the reason. Every code has one: those newer than this program keep their number.
pub(crate) fn check(code: sys::nvmlReturn_t) -> Reading<()> {
    if code == sys::nvmlReturn_enum_NVML_SUCCESS { Ok(()) } else { Err(reason(code)) }
}

fn reason(code: sys::nvmlReturn_t) -> Absent {
    match code {
        sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => Absent::Uninitialized,
        sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => Absent::NotSupported,
        sys::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => Absent::NoPermission,
        sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND | sys::nvmlReturn_enum_NVML_ERROR_GPU_NOT_FOUND => {
            Absent::NotFound
        }
        sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => Absent::DriverNotLoaded,
        sys::nvmlReturn_enum_NVML_ERROR_TIMEOUT => Absent::TimedOut,
        sys::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND => Absent::NoFunction,
        sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => Absent::Lost,
        sys::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => Absent::ResetRequired,
        sys::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH => Absent::DriverMismatch,
        sys::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH => Absent::VersionMismatch,
        sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN => Absent::Unknown,
        other => Absent::Code(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_reason_the_header_gives_them() {
        let known = [
            (1, Absent::Uninitialized),
            (3, Absent::NotSupported),
            (4, Absent::NoPermission),
            (6, Absent::NotFound),
            (9, Absent::DriverNotLoaded),
            (10, Absent::TimedOut),
            (13, Absent::NoFunction),
            (15, Absent::Lost),
            (16, Absent::ResetRequired),
            (18, Absent::DriverMismatch),
            (25, Absent::VersionMismatch),
            (28, Absent::NotFound),
            (999, Absent::Unknown),
        ];
        for (code, absent) in known {
            assert_eq!(check(code), Err(absent), "{code}");
        }
        assert_eq!(check(0), Ok(()));
    }

    #[test]
    fn a_code_without_a_name_keeps_its_number() {
        for code in [2, 7, 21, 23, 24, 26, 27, 29, 30, 31, 4711] {
            assert_eq!(check(code), Err(Absent::Code(code)));
        }
    }
}
