//! Memory of GPUs and of GPU instances.

use super::argument::{InOut, Out, Words};
use super::call::Call;
use super::code::Code;
use super::handle::DeviceHandle;
use super::layout::{Bar1Memory, Memory, MemoryV2};
use crate::world::MemoryFigures;
use std::fmt::{self, Write};

export! {
    fn nvmlDeviceGetMemoryInfo(call, device: DeviceHandle, memory: Out<'_, Memory>) {
        // The first version has no place for what the driver keeps, and counts it as used.
        let MemoryFigures { total, reserved, used, free } = figures(call, device)?;
        memory.put(Memory { total, free, used: reserved + used })
    }

    fn nvmlDeviceGetMemoryInfo_v2(call, device: DeviceHandle, memory: InOut<'_, MemoryV2>) {
        let memory = memory.get()?;
        if memory.version != MemoryV2::VERSION {
            // Early drivers of 510 said so, later ones name the version.
            let is_early = call.release < (515, 0);
            return Err(if is_early { Code::FUNCTION_NOT_FOUND } else { Code::ARGUMENT_VERSION_MISMATCH });
        }
        let MemoryFigures { total, reserved, used, free } = figures(call, device)?;
        *memory = MemoryV2 { version: MemoryV2::VERSION, total, reserved, free, used };
        Ok(())
    }

    fn nvmlDeviceGetBAR1MemoryInfo(call, device: DeviceHandle, memory: Out<'_, Bar1Memory>) {
        // As large as the device's memory rounded up to a power of two, which is how data-centre boards are set up; a MIG device has one, too.
        let figures = figures(call, device)?;
        let total = figures.total.next_power_of_two();
        let used = 1 << 20;
        memory.put(Bar1Memory { total, free: total - used, used })
    }
}

// Its presence beside a missing detail list is how clients tell drivers whose process records are 32 bytes long, so both are exported.
export! {
    fn nvmlDeviceGetConfComputeMemSizeInfo(call, device: DeviceHandle, _memory: Out<'_, Bar1Memory>) {
        call.gpu(device)?;
        Err(Code::NOT_SUPPORTED)
    }
}

/// Memory of a GPU, which needs privilege with MIG on, or of a MIG device's GPU instance.
fn figures(call: &Call, device: DeviceHandle) -> Result<MemoryFigures, Code> {
    let target = call.target(device)?;
    match target.compute_instance() {
        Some(compute) => {
            let instance = call.world().compute_instance(compute).gpu_instance;
            Ok(call.world().instance_memory(instance, call.t_us))
        }
        None => {
            if target.state.is_mig_on() {
                call.needs_root()?;
            }
            Ok(call.world().memory(target.gpu, call.t_us))
        }
    }
}

impl Words for MemoryV2 {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{:x}", self.version)
    }
}
