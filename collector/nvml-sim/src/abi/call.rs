//! What happens to every call: it is recorded, counted, perhaps delayed or refused; then it is answered by the state of the simulated now.

use super::argument::Argument;
use super::code::Code;
use super::engine::{self, Engine};
use super::handle::{DeviceHandle, Handle};
use super::since::{self, Release};
use super::target::Target;
use crate::scenario::Privilege;
use crate::world::{DriverLife, World};
use std::ffi::c_uint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A call that is to be answered.
pub(super) struct Call {
    pub(super) engine: Arc<Engine>,
    /// The simulated now, in microseconds since the scenario's start.
    pub(super) t_us: u64,
    /// Release of the driver.
    pub(super) release: Release,
}

/// Runs the body of an exported function. No panic may pass into C: there it would end the client's process.
pub(super) fn guard(body: impl FnOnce() -> Result<(), Code>) -> c_uint {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => Code::UNKNOWN.0,
    }
}

/// Begins a call.
///
/// # Errors
/// The library is not initialised; no driver is loaded, or another one than then; the driver has no such function; the scenario wants the call
/// to fail.
pub(super) fn begin(name: &str, arguments: &[&dyn Argument]) -> Result<Call, Code> {
    let engine = engine::current()?;
    engine.host.record(name, arguments);
    let subject = arguments.iter().find_map(|argument| argument.subject());
    let named = arguments.iter().find_map(|argument| argument.gpu_instance());
    let injected = inject(&engine, name, subject, named);
    let t_us = engine.host.now_us()?;
    engine.host.refresh_procfs(t_us)?;
    let world = &engine.host.world;
    let driver = world.driver(t_us).ok_or(Code::DRIVER_NOT_LOADED)?;
    let release = since::release(&driver.driver.version);
    if driver.epoch != engine.driver_epoch {
        // The library in this process is still the old driver's: it must be initialised anew.
        let is_same = release == engine.release;
        return Err(if is_same { Code::UNINITIALIZED } else { Code::LIB_RM_VERSION_MISMATCH });
    }
    if !since::has(name, release) {
        return Err(Code::FUNCTION_NOT_FOUND);
    }
    if let Some(code) = world.standing_refusal(name, subject.and_then(Handle::gpu)) {
        return Err(code);
    }
    injected?;
    Ok(Call { engine, t_us, release })
}

/// Counts a call, lets it take its time, and says what it must answer. A GPU instance is that of the handle, or the one `named` beside it.
fn inject(engine: &Engine, name: &str, subject: Option<Handle>, named: Option<u32>) -> Result<(), Code> {
    let host = &engine.host;
    if host.world.injections().is_empty() {
        return Ok(());
    }
    let t_us = host.now_us()?;
    let gpu = subject.and_then(Handle::gpu).filter(|gpu| *gpu < host.world.gpu_count());
    let gpu_instance = subject.and_then(|handle| gpu_instance(&host.world, handle, t_us)).or(named);
    let verdict = host.injector.consult(&host.world, name, gpu, gpu_instance, t_us);
    if verdict.delay_us > 0 {
        host.pass(verdict.delay_us)?;
    }
    verdict.returns.map_or(Ok(()), Err)
}

fn gpu_instance(world: &World, handle: Handle, t_us: u64) -> Option<u32> {
    match handle {
        Handle::GpuInstance { id, .. } | Handle::ComputeInstance { gpu_instance: id, .. } => Some(id.into()),
        Handle::Mig { gpu, .. } if usize::from(gpu) < world.gpu_count() => {
            let state = world.state(gpu.into(), t_us);
            let target = Target::find(world, state, handle).ok()?;
            target.instance().map(|(gpu_instance, _)| gpu_instance.id)
        }
        _ => None,
    }
}

impl Call {
    /// The scenario worked out.
    pub(super) fn world(&self) -> &World {
        &self.engine.host.world
    }

    /// The loaded driver.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn driver(&self) -> Result<&DriverLife, Code> {
        self.world().driver(self.t_us).ok_or(Code::DRIVER_NOT_LOADED)
    }

    /// Asks for a privileged client.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn needs_root(&self) -> Result<(), Code> {
        match self.world().scenario().privilege {
            Privilege::Root => Ok(()),
            Privilege::User => Err(Code::NO_PERMISSION),
        }
    }

    /// The device of a handle, if it answers now.
    ///
    /// # Errors
    /// The handle is none, or its MIG device is gone; the GPU is lost or the like.
    pub(super) fn target(&self, handle: DeviceHandle) -> Result<Target<'_>, Code> {
        self.target_of(Handle::read(handle.0)?)
    }

    /// As [`Self::target`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn target_of(&self, handle: Handle) -> Result<Target<'_>, Code> {
        let gpu = handle.gpu().filter(|gpu| *gpu < self.world().gpu_count()).ok_or(Code::INVALID_ARGUMENT)?;
        let state = self.world().state(gpu, self.t_us);
        state.refusal().map_or(Ok(()), Err)?;
        Target::find(self.world(), state, handle)
    }

    /// The device of a handle, if it is a whole GPU.
    ///
    /// # Errors
    /// As [`Self::target`]; not supported for a MIG device.
    pub(super) fn gpu(&self, handle: DeviceHandle) -> Result<Target<'_>, Code> {
        let target = self.target(handle)?;
        if target.instance().is_some() { Err(Code::NOT_SUPPORTED) } else { Ok(target) }
    }

    /// The device of a handle, if it is a whole GPU that is not cut into instances.
    ///
    /// # Errors
    /// As [`Self::gpu`]; not supported with MIG on.
    pub(super) fn uncut_gpu(&self, handle: DeviceHandle) -> Result<Target<'_>, Code> {
        let target = self.gpu(handle)?;
        if target.state.is_mig_on() { Err(Code::NOT_SUPPORTED) } else { Ok(target) }
    }
}
