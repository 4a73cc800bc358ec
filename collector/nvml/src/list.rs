//! Lists whose length is only known after asking.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, Slot, function};
use crate::code::check;
use nvml_wrapper_sys::bindings as sys;
use std::ffi::c_uint;

/// No list that NVML has is longer; a length beyond it is a wrong reading of a structure.
const ROWS_MAX: c_uint = 65_536;
/// A list that grows faster than this many doublings is not a list.
const TRIES: usize = 6;

type List<D, T> = unsafe extern "C" fn(*mut D, *mut c_uint, *mut T) -> sys::nvmlReturn_t;

/// The rows of a list of a thing: see [`grow`].
pub(crate) fn list<D, T: Copy>(
    slot: &Slot<List<D, T>>,
    of: Handle<D>,
    empty: T,
    expected: c_uint,
) -> Reading<Vec<T>> {
    let call = function(slot)?;
    grow(empty, expected, |count, rows| {
        // SAFETY: function and handle are NVML's (see `calls`); `grow` says how many rows there is room for, and NVML writes no more.
        unsafe { call(of.raw(), count, rows) }
    })
}

/// Asks with room for `expected` rows; when that is too few, with twice the room NVML says it needs and some more, as the list may grow between
/// two calls. What NVML says it filled is what counts: a list that shrank has no rows of nothing at its end.
pub(crate) fn grow<T: Copy>(
    empty: T,
    expected: c_uint,
    mut call: impl FnMut(*mut c_uint, *mut T) -> sys::nvmlReturn_t,
) -> Reading<Vec<T>> {
    let mut room = expected.clamp(1, ROWS_MAX);
    for _ in 0..TRIES {
        let mut rows = vec![empty; usize::try_from(room).map_err(|_| Absent::Implausible)?];
        let mut count = room;
        let code = call(&raw mut count, rows.as_mut_ptr());
        if code == sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE {
            room = more(room, count)?;
            continue;
        }
        check(code)?;
        if count > room {
            return Err(Absent::Implausible);
        }
        rows.truncate(usize::try_from(count).map_err(|_| Absent::Implausible)?);
        return Ok(rows);
    }
    Err(Absent::Implausible)
}

fn more(had: c_uint, wanted: c_uint) -> Reading<c_uint> {
    let base = wanted.max(had);
    if base > ROWS_MAX { Err(Absent::Implausible) } else { Ok(base * 2 + 8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_FEW: sys::nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;

    /// Answers as NVML does from a list that is of another length at each call.
    fn from(lengths: &[c_uint], expected: c_uint) -> (Reading<Vec<u32>>, usize) {
        let mut calls = 0;
        let rows = grow(0, expected, |count, rows| {
            let length = lengths[calls.min(lengths.len() - 1)];
            calls += 1;
            // SAFETY: `grow` hands in a count and room for as many rows.
            let room = unsafe { count.replace(length) };
            if room < length {
                return TOO_FEW;
            }
            for (at, row) in (0..usize::try_from(length).expect("small")).zip(1_u32..) {
                // SAFETY: `at` is below the room, as `length` is.
                let place = unsafe { rows.add(at) };
                // SAFETY: as above.
                unsafe { place.write(row) };
            }
            0
        });
        (rows, calls)
    }

    #[test]
    fn a_list_that_fits_takes_one_call() {
        assert_eq!(from(&[3], 16), (Ok(vec![1, 2, 3]), 1));
        assert_eq!(from(&[0], 16), (Ok(vec![]), 1));
    }

    #[test]
    fn a_list_that_grows_between_the_calls_is_read_whole() {
        let (rows, calls) = from(&[20, 300, 301], 16);
        assert_eq!(rows.map(|rows| rows.len()), Ok(301));
        assert_eq!(calls, 3);
    }

    #[test]
    fn a_list_that_shrinks_has_no_rows_of_nothing() {
        assert_eq!(from(&[20, 2], 16).0, Ok(vec![1, 2]));
    }

    #[test]
    fn a_list_that_is_never_satisfied_is_given_up() {
        let mut calls = 0;
        let rows: Reading<Vec<u32>> = grow(0, 8, |_, _| {
            calls += 1;
            TOO_FEW
        });
        assert_eq!(rows, Err(Absent::Implausible));
        assert_eq!(calls, TRIES);
    }

    #[test]
    fn a_length_that_cannot_be_is_not_believed() {
        assert_eq!(from(&[3_000_000_000], 16).0, Err(Absent::Implausible));
        let more_than_asked: Reading<Vec<u32>> = grow(0, 8, |count, _| {
            // SAFETY: `grow` hands in a count.
            unsafe { count.write(9) };
            0
        });
        assert_eq!(more_than_asked, Err(Absent::Implausible));
    }

    #[test]
    fn another_error_is_told() {
        assert_eq!(grow(0_u32, 8, |_, _| 15), Err(Absent::Lost));
    }
}
