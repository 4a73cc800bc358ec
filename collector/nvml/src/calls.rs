//! The shapes that NVML's functions have, each called in one place.
//!
//! A function pointer here comes from the table of the loaded library, under its own name and with the signature of the header; a [`Handle`]
//! comes from such a function. That is what makes the calls sound, together with what NVML promises: it writes what its signature says,
//! keeps no pointer beyond the call, answers a stale handle with an error, and may be called by several threads at once.

use crate::absent::{Absent, Reading};
use crate::code::check;
use nvml_wrapper_sys::bindings::nvmlReturn_t;
use std::ffi::{c_char, c_uint};

/// A place of the table: the function, or why the library has none.
pub(crate) type Slot<F> = Result<F, libloading::Error>;

type Get<D, T> = unsafe extern "C" fn(*mut D, *mut T) -> nvmlReturn_t;
type GetBy<D, A, T> = unsafe extern "C" fn(*mut D, A, *mut T) -> nvmlReturn_t;
type GetPair<D, T> = unsafe extern "C" fn(*mut D, *mut T, *mut T) -> nvmlReturn_t;
type Text<D> = unsafe extern "C" fn(*mut D, *mut c_char, c_uint) -> nvmlReturn_t;
type Plain<T> = unsafe extern "C" fn(*mut T) -> nvmlReturn_t;
type PlainBy<A, T> = unsafe extern "C" fn(A, *mut T) -> nvmlReturn_t;
type PlainText = unsafe extern "C" fn(*mut c_char, c_uint) -> nvmlReturn_t;

/// Room for a text. The longest the header has is 96 bytes.
const TEXT_BYTES: usize = 96;
const TEXT_BYTES_C: c_uint = 96;

/// What NVML gave to name a thing by. It is never looked into, only handed back.
pub(crate) struct Handle<D>(*mut D);

impl<D> Handle<D> {
    /// Takes what NVML filled in; none if that is nothing.
    pub(crate) fn given(raw: *mut D) -> Reading<Self> {
        if raw.is_null() { Err(Absent::Implausible) } else { Ok(Self(raw)) }
    }

    /// To be handed back to NVML.
    pub(crate) fn raw(self) -> *mut D {
        self.0
    }
}

impl<D> Clone for Handle<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Handle<D> {}

impl<D> PartialEq for Handle<D> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<D> Eq for Handle<D> {}

// SAFETY: the address is never followed on our side, and NVML binds no handle to a thread.
unsafe impl<D> Send for Handle<D> {}
// SAFETY: as above; a shared reference gives nothing but a copy of the address.
unsafe impl<D> Sync for Handle<D> {}

/// The function of a place; a library that lacks it is an older one.
pub(crate) fn function<F: Copy>(slot: &Slot<F>) -> Reading<F> {
    slot.as_ref().copied().map_err(|_| Absent::NoFunction)
}

/// One value of a thing. The value handed in is the start: zero, or a structure that says its version.
pub(crate) fn get<D, T>(slot: &Slot<Get<D, T>>, of: Handle<D>, start: T) -> Reading<T> {
    let call = function(slot)?;
    let mut value = start;
    // SAFETY: function and handle are NVML's (see the module); it writes one T, which `value` has room for.
    let code = unsafe { call(of.0, &raw mut value) };
    check(code).map(|()| value)
}

/// One value of a thing that an argument chooses.
pub(crate) fn get_by<D, A, T>(slot: &Slot<GetBy<D, A, T>>, of: Handle<D>, which: A, start: T) -> Reading<T> {
    let call = function(slot)?;
    let mut value = start;
    // SAFETY: function and handle are NVML's (see the module); `which` goes by value; it writes one T, which `value` has room for.
    let code = unsafe { call(of.0, which, &raw mut value) };
    check(code).map(|()| value)
}

/// Two values of a thing.
pub(crate) fn get_pair<D, T: Copy>(slot: &Slot<GetPair<D, T>>, of: Handle<D>, start: T) -> Reading<(T, T)> {
    let call = function(slot)?;
    let (mut first, mut second) = (start, start);
    // SAFETY: function and handle are NVML's (see the module); it writes one T to each of two places.
    let code = unsafe { call(of.0, &raw mut first, &raw mut second) };
    check(code).map(|()| (first, second))
}

/// Another thing that belongs to a thing.
pub(crate) fn handle<D, A, H>(
    slot: &Slot<GetBy<D, A, *mut H>>,
    of: Handle<D>,
    which: A,
) -> Reading<Handle<H>> {
    get_by(slot, of, which, std::ptr::null_mut()).and_then(Handle::given)
}

/// A text of a thing.
pub(crate) fn text<D>(slot: &Slot<Text<D>>, of: Handle<D>) -> Reading<String> {
    let call = function(slot)?;
    let mut room: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
    // SAFETY: function and handle are NVML's (see the module); it writes at most as many bytes as it is told there are.
    let code = unsafe { call(of.0, room.as_mut_ptr(), TEXT_BYTES_C) };
    check(code).map(|()| string(&room))
}

/// One value of the system.
pub(crate) fn system<T>(slot: &Slot<Plain<T>>, start: T) -> Reading<T> {
    let call = function(slot)?;
    let mut value = start;
    // SAFETY: the function is NVML's (see the module); it writes one T, which `value` has room for.
    let code = unsafe { call(&raw mut value) };
    check(code).map(|()| value)
}

/// A thing of the system.
pub(crate) fn system_handle<A, H>(slot: &Slot<PlainBy<A, *mut H>>, which: A) -> Reading<Handle<H>> {
    let call = function(slot)?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the function is NVML's (see the module); it writes one pointer, which `raw` has room for.
    let code = unsafe { call(which, &raw mut raw) };
    check(code).and_then(|()| Handle::given(raw))
}

/// A text of the system.
pub(crate) fn system_text(slot: &Slot<PlainText>) -> Reading<String> {
    let call = function(slot)?;
    let mut room: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
    // SAFETY: the function is NVML's (see the module); it writes at most as many bytes as it is told there are.
    let code = unsafe { call(room.as_mut_ptr(), TEXT_BYTES_C) };
    check(code).map(|()| string(&room))
}

/// What stands before the first zero, or all of it.
pub(crate) fn string(room: &[c_char]) -> String {
    let bytes: Vec<u8> = room.iter().take_while(|c| **c != 0).flat_map(|c| c.to_ne_bytes()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvml_wrapper_sys::bindings::{nvmlDevice_st, nvmlReturn_enum_NVML_SUCCESS};

    #[test]
    fn a_text_ends_at_its_zero_or_at_the_end_of_its_room() {
        assert_eq!(string(&[71, 80, 85, 0, 71]), "GPU");
        assert_eq!(string(&[71, 80]), "GP");
        assert_eq!(string(&[0]), "");
    }

    #[test]
    fn success_without_a_handle_is_not_believed() {
        unsafe extern "C" fn nothing(_: c_uint, _: *mut *mut nvmlDevice_st) -> nvmlReturn_t {
            nvmlReturn_enum_NVML_SUCCESS
        }
        let slot: Slot<PlainBy<c_uint, *mut nvmlDevice_st>> = Ok(nothing);
        assert!(matches!(system_handle(&slot, 0), Err(Absent::Implausible)));
    }
}
