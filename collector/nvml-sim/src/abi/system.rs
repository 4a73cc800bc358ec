//! Initialisation, versions, names of return codes and of processes.

use super::argument::{Out, Rows};
use super::call::guard;
use super::code::{self, Code};
use super::engine;
use std::ffi::{c_char, c_int, c_uint};

/// Initialises the library.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> c_uint {
    guard(|| engine::initialise("nvmlInit_v2", &[]))
}

/// Initialises the library; no flag changes anything here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInitWithFlags(flags: c_uint) -> c_uint {
    guard(|| engine::initialise("nvmlInitWithFlags", &[&flags]))
}

/// Ends what was initialised.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlShutdown() -> c_uint {
    guard(engine::shut_down)
}

/// The text of a return code.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlErrorString(number: c_uint) -> *const c_char {
    code::text(number).as_ptr()
}

export! {
    fn nvmlSystemGetDriverVersion(call, version: Rows<c_char>, length: c_uint) {
        version.put_text(length, &call.driver()?.driver.version)
    }

    fn nvmlSystemGetNVMLVersion(call, version: Rows<c_char>, length: c_uint) {
        version.put_text(length, &call.driver()?.driver.nvml_version())
    }

    fn nvmlSystemGetCudaDriverVersion(call, version: Out<'_, c_int>) {
        version.put(cuda(call.driver()?.driver.cuda)?)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(call, version: Out<'_, c_int>) {
        version.put(cuda(call.driver()?.driver.cuda)?)
    }

    fn nvmlSystemGetProcessName(call, pid: c_uint, name: Rows<c_char>, length: c_uint) {
        let world = call.world();
        let mut alive = world.processes().iter().filter(|process| process.state(call.t_us).is_some());
        let process = alive.find(|process| world.visible_pid(process) == Some(pid)).ok_or(Code::NOT_FOUND)?;
        name.put_text(length, &process.comm)
    }
}

fn cuda(release: u32) -> Result<c_int, Code> {
    c_int::try_from(release).map_err(|_| Code::UNKNOWN)
}
