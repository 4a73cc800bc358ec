//! Memory as NVML tells it.

use super::World;

/// Memory of a GPU or of a GPU instance, in bytes: `total = reserved + used + free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFigures {
    /// All of it.
    pub total: u64,
    /// Kept by the driver.
    pub reserved: u64,
    /// Allocated, without what is reserved.
    pub used: u64,
    /// Neither.
    pub free: u64,
}

impl MemoryFigures {
    fn new(total: u64, reserved: u64, used: u64) -> Self {
        let used = used.min(total.saturating_sub(reserved));
        Self { total, reserved, used, free: total.saturating_sub(reserved).saturating_sub(used) }
    }
}

const MIB: u64 = 1 << 20;

impl World {
    /// Memory of a GPU.
    pub fn memory(&self, gpu: usize, t_us: u64) -> MemoryFigures {
        let model = self.model(gpu);
        let total = self.spec(gpu).memory.map_or(model.memory_mib * MIB, |memory| memory.0);
        MemoryFigures::new(total, model.reserved_mib * MIB, self.device_memory(gpu).at(t_us))
    }

    /// Memory of a GPU instance, by its index.
    pub fn instance_memory(&self, gpu_instance: usize, t_us: u64) -> MemoryFigures {
        let instance = self.gpu_instance(gpu_instance);
        MemoryFigures::new(instance.profile.memory_mib * MIB, 0, instance.memory.at(t_us))
    }
}
