//! Memory of a device or of a GPU instance.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, get};
use crate::values::Memory;
use crate::versions::MEMORY_V2;
use nvml_wrapper_sys::bindings as sys;

/// The second version tells what the driver keeps for itself; drivers before 510 have only the first, in which that is part of `used`.
pub(crate) fn read(table: &sys::NvmlLib, device: Handle<sys::nvmlDevice_st>) -> Reading<Memory> {
    match second(table, device) {
        Err(Absent::NoFunction | Absent::VersionMismatch) => first(table, device),
        reading => reading,
    }
    .and_then(believed)
}

fn second(table: &sys::NvmlLib, device: Handle<sys::nvmlDevice_st>) -> Reading<Memory> {
    let start = sys::nvmlMemory_v2_t { version: MEMORY_V2, total: 0, reserved: 0, free: 0, used: 0 };
    let it = get(&table.nvmlDeviceGetMemoryInfo_v2, device, start)?;
    Ok(Memory { total: it.total, reserved: Some(it.reserved), used: it.used, free: it.free })
}

fn first(table: &sys::NvmlLib, device: Handle<sys::nvmlDevice_st>) -> Reading<Memory> {
    let it = get(&table.nvmlDeviceGetMemoryInfo, device, sys::nvmlMemory_t { total: 0, free: 0, used: 0 })?;
    Ok(Memory { total: it.total, reserved: None, used: it.used, free: it.free })
}

/// No part is larger than the whole. The parts need not add up: they are read one after the other.
fn believed(memory: Memory) -> Reading<Memory> {
    let parts = [memory.used, memory.free, memory.reserved.unwrap_or(0)];
    if parts.iter().any(|part| *part > memory.total) { Err(Absent::Implausible) } else { Ok(memory) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_larger_than_the_whole_is_not_believed() {
        let memory = Memory { total: 100, reserved: Some(10), used: 30, free: 60 };
        assert_eq!(believed(memory), Ok(memory));
        assert_eq!(believed(Memory { used: 101, ..memory }), Err(Absent::Implausible));
        assert_eq!(believed(Memory { free: u64::MAX, ..memory }), Err(Absent::Implausible));
        assert_eq!(believed(Memory { reserved: Some(101), ..memory }), Err(Absent::Implausible));
    }
}
