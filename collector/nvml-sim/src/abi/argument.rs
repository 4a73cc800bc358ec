//! What C hands in, as types that can be used without fear: a null pointer is `None`, and what is written is never read first.
//!
//! Each argument can also say what it is for the record of calls, which a replay turns into the same call again.

use super::code::Code;
use super::handle::{DeviceHandle, Handle, InstanceHandle};
use super::layout::Plain;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};
use std::fmt::{self, Write};
use std::mem::{MaybeUninit, size_of};

/// An argument of an exported function.
pub(super) trait Argument {
    /// The device or instance it names.
    fn subject(&self) -> Option<Handle> {
        None
    }

    /// The id of the GPU instance it names beside a device.
    fn gpu_instance(&self) -> Option<u32> {
        None
    }

    /// What a replay needs: `#1f` a number, `-` a null pointer, `*` room for an answer, `[1f,0,@]` words that lie there (`@`: a pointer
    /// to room), `"…"` text.
    ///
    /// # Errors
    /// As the writer says.
    fn record(&self, to: &mut String) -> fmt::Result;
}

impl Argument for DeviceHandle {
    fn subject(&self) -> Option<Handle> {
        Handle::read(self.0).ok()
    }

    fn record(&self, to: &mut String) -> fmt::Result {
        write!(to, "#{:x}", self.0)
    }
}

impl Argument for InstanceHandle {
    fn subject(&self) -> Option<Handle> {
        Handle::read(self.0).ok()
    }

    fn record(&self, to: &mut String) -> fmt::Result {
        self.0.record(to)
    }
}

impl Argument for usize {
    fn record(&self, to: &mut String) -> fmt::Result {
        write!(to, "#{self:x}")
    }
}

impl Argument for c_uint {
    fn record(&self, to: &mut String) -> fmt::Result {
        write!(to, "#{self:x}")
    }
}

impl Argument for c_int {
    fn record(&self, to: &mut String) -> fmt::Result {
        write!(to, "#{self:x}")
    }
}

impl Argument for c_ulonglong {
    fn record(&self, to: &mut String) -> fmt::Result {
        write!(to, "#{self:x}")
    }
}

/// A GPU's place in NVML's list, which is its place in the scenario.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct GpuIndex(pub(super) c_uint);

impl Argument for GpuIndex {
    fn subject(&self) -> Option<Handle> {
        u8::try_from(self.0).ok().map(Handle::Gpu)
    }

    fn record(&self, to: &mut String) -> fmt::Result {
        self.0.record(to)
    }
}

/// The id of a GPU instance of the device that stands before it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct GpuInstanceId(pub(super) c_uint);

impl Argument for GpuInstanceId {
    fn gpu_instance(&self) -> Option<u32> {
        Some(self.0)
    }

    fn record(&self, to: &mut String) -> fmt::Result {
        self.0.record(to)
    }
}

/// Where one answer goes.
#[repr(transparent)]
pub(super) struct Out<'a, T>(Option<&'a mut MaybeUninit<T>>);

impl<T: Plain> Out<'_, T> {
    /// Writes the answer.
    pub(super) fn put(self, value: T) -> Result<(), Code> {
        self.0.ok_or(Code::INVALID_ARGUMENT)?.write(value);
        Ok(())
    }
}

impl<T> Argument for Out<'_, T> {
    fn record(&self, to: &mut String) -> fmt::Result {
        to.write_char(if self.0.is_some() { '*' } else { '-' })
    }
}

/// A number or structure that is read and written.
#[repr(transparent)]
pub(super) struct InOut<'a, T>(Option<&'a mut T>);

impl<'a, T: Plain> InOut<'a, T> {
    /// What lies there.
    pub(super) fn get(self) -> Result<&'a mut T, Code> {
        self.0.ok_or(Code::INVALID_ARGUMENT)
    }
}

impl<T: Words> Argument for InOut<'_, T> {
    fn record(&self, to: &mut String) -> fmt::Result {
        match &self.0 {
            None => to.write_char('-'),
            Some(value) => {
                to.write_char('[')?;
                value.words(to)?;
                to.write_char(']')
            }
        }
    }
}

/// The leading words of a structure that a call reads.
pub(super) trait Words {
    /// Writes them in hexadecimal, with commas.
    fn words(&self, to: &mut String) -> fmt::Result;
}

impl Words for c_uint {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{self:x}")
    }
}

/// A structure of which only the version word with which it begins says what it is.
#[repr(transparent)]
pub(super) struct Versioned(*mut c_uint);

impl Versioned {
    /// The version word.
    pub(super) fn version(&self) -> Result<c_uint, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not null, and the caller of the C function vouches for a structure here that begins with its version.
        Ok(unsafe { self.0.read() })
    }

    /// Writes the structure whose version word it has.
    pub(super) fn put<T: Plain>(self, value: T) {
        // SAFETY: the caller of the C function wrote the version word of `T`, and so vouches for room for it.
        unsafe { self.0.cast::<T>().write(value) }
    }
}

impl Argument for Versioned {
    fn record(&self, to: &mut String) -> fmt::Result {
        match self.version() {
            Ok(version) => write!(to, "[{version:x}]"),
            Err(_) => to.write_char('-'),
        }
    }
}

/// Where many answers go: their number stands in another argument.
#[repr(transparent)]
pub(super) struct Rows<T>(*mut MaybeUninit<T>);

impl<T: Plain> Rows<T> {
    /// Rows at a pointer that stands in a structure.
    pub(super) fn at(pointer: *mut T) -> Self {
        Self(pointer.cast())
    }

    /// The same room for rows of another length.
    pub(super) fn cast<U: Plain>(self) -> Rows<U> {
        Rows(self.0.cast())
    }

    /// Whether only the number of rows is asked for.
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes rows into room for `capacity`; too many of them is an insufficient size, and then nothing is written.
    pub(super) fn put(self, capacity: c_uint, rows: &[T]) -> Result<(), Code> {
        let capacity = usize::try_from(capacity).map_err(|_| Code::INVALID_ARGUMENT)?;
        if rows.len() > capacity {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        if self.0.is_null() {
            return if rows.is_empty() { Ok(()) } else { Err(Code::INVALID_ARGUMENT) };
        }
        // SAFETY: the caller of the C function vouches for room for `capacity` rows here, we pass no more than that, and `MaybeUninit` asks
        // nothing of their content.
        let room = unsafe { std::slice::from_raw_parts_mut(self.0, rows.len()) };
        for (cell, row) in room.iter_mut().zip(rows) {
            cell.write(*row);
        }
        Ok(())
    }

    /// The first rows, which the caller wrote, for an answer within them.
    pub(super) fn filled(&mut self, count: c_uint) -> Result<&mut [T], Code> {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_ARGUMENT)?;
        if self.0.is_null() {
            return if count == 0 { Ok(&mut []) } else { Err(Code::INVALID_ARGUMENT) };
        }
        // SAFETY: the caller of the C function vouches for `count` rows that it wrote here, and each bit pattern is a value of `T`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), count) })
    }
}

impl<T> Argument for Rows<T> {
    fn record(&self, to: &mut String) -> fmt::Result {
        to.write_char(if self.0.is_null() { '-' } else { '*' })
    }
}

// SAFETY: integers.
unsafe impl Plain for c_char {}

impl Rows<c_char> {
    /// Writes text and the zero after it.
    pub(super) fn put_text(self, capacity: c_uint, text: &str) -> Result<(), Code> {
        let capacity = usize::try_from(capacity).map_err(|_| Code::INVALID_ARGUMENT)?;
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        if text.len() >= capacity {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller of the C function vouches for `capacity` bytes here, and the text with its zero is no longer.
        let room = unsafe { std::slice::from_raw_parts_mut(self.0, text.len() + 1) };
        for (cell, byte) in room.iter_mut().zip(text.bytes().chain([0])) {
            cell.write(c_char::from_ne_bytes([byte]));
        }
        Ok(())
    }
}

/// Text that C hands in.
#[repr(transparent)]
pub(super) struct Text(*const c_char);

impl Text {
    /// The text; not UTF-8 is an invalid argument, as no name here holds such.
    pub(super) fn get(&self) -> Result<&str, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not null, and the caller of the C function vouches for a string that ends in zero and lives through this call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Code::INVALID_ARGUMENT)
    }
}

impl Argument for Text {
    fn record(&self, to: &mut String) -> fmt::Result {
        match self.get() {
            Err(_) => to.write_char('-'),
            Ok(text) => write!(to, "\"{text}\""),
        }
    }
}

// A pointer in each of these is what C passes.
const _: () = assert!(size_of::<Out<'static, u32>>() == size_of::<usize>());
const _: () = assert!(size_of::<InOut<'static, u32>>() == size_of::<usize>());
const _: () = assert!(size_of::<Rows<u32>>() == size_of::<usize>());
