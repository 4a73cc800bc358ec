//! Numbers that say their type.

use crate::absent::{Absent, Reading};
use crate::share::whole;
use nvml_wrapper_sys::bindings as sys;

/// A value of NVML's that is a whole number and not negative. The types are those of the header, 0 to 6.
pub(crate) fn number(kind: sys::nvmlValueType_t, value: sys::nvmlValue_t) -> Reading<u64> {
    // SAFETY: the union was made by us with all its eight bytes set, NVML may have written some of them, and any bytes are a u64.
    let bits = unsafe { value.ullVal };
    let [a, b, c, d, ..] = bits.to_ne_bytes();
    match kind {
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE => whole(f64::from_bits(bits)),
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => {
            Ok(u64::from(u32::from_ne_bytes([a, b, c, d])))
        }
        // An unsigned long has eight bytes on every system the collector runs on.
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG
        | sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => Ok(bits),
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG => {
            unsigned(i64::from_ne_bytes(bits.to_ne_bytes()))
        }
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT => {
            unsigned(i64::from(i32::from_ne_bytes([a, b, c, d])))
        }
        sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT => Ok(u64::from(u16::from_ne_bytes([a, b]))),
        _ => Err(Absent::Implausible),
    }
}

/// The start of a value that NVML fills in.
pub(crate) fn nothing() -> sys::nvmlValue_t {
    sys::nvmlValue_t { ullVal: 0 }
}

fn unsigned(value: i64) -> Reading<u64> {
    u64::try_from(value).map_err(|_| Absent::Implausible)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: impl FnOnce(&mut sys::nvmlValue_t)) -> sys::nvmlValue_t {
        let mut value = nothing();
        set(&mut value);
        value
    }

    #[test]
    fn every_type_of_the_header_is_read() {
        let seven = [
            (0, with(|v| v.dVal = 7.0)),
            (1, with(|v| v.uiVal = 7)),
            (2, with(|v| v.ulVal = 7)),
            (3, with(|v| v.ullVal = 7)),
            (4, with(|v| v.sllVal = 7)),
            (5, with(|v| v.siVal = 7)),
            (6, with(|v| v.usVal = 7)),
        ];
        for (kind, value) in seven {
            assert_eq!(number(kind, value), Ok(7), "type {kind}");
        }
    }

    #[test]
    fn a_negative_value_and_an_unknown_type_are_not_believed() {
        assert_eq!(number(5, with(|v| v.siVal = -1)), Err(Absent::Implausible));
        assert_eq!(number(4, with(|v| v.sllVal = -1)), Err(Absent::Implausible));
        assert_eq!(number(0, with(|v| v.dVal = f64::NAN)), Err(Absent::Implausible));
        assert_eq!(number(7, with(|v| v.uiVal = 1)), Err(Absent::Implausible));
    }
}
