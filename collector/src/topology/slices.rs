//! How many slices a device has: capacity begins with these numbers, so they are never guessed lightly.

use gpuledger_domain::geometry::Geometry;
use gpuledger_nvml::{MigMode, Reading};

/// Slices of a whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// Compute slices.
    pub compute: u8,
    /// Memory slices.
    pub memory: u8,
}

/// A device that cannot be cut.
const WHOLE: Slicing = Slicing { compute: 1, memory: 1 };
/// Every data-centre part that can do MIG and is not an A30: eight memory slices, seven of compute (MIG user guide, A100 to B200). A board cut in
/// another way must be in the table.
const EIGHTHS: Slicing = Slicing { compute: 7, memory: 8 };

/// The slices of a model, the same whether MIG is on or off. None: nobody can tell, because the model is in no table and its MIG mode
/// could not be read; then the inventory leaves the device out rather than say a number that changes later.
pub fn slicing(model: &str, mode: Reading<MigMode>, geometry: &Geometry) -> Option<Slicing> {
    if let Some(known) = geometry.of(model) {
        return Some(Slicing { compute: known.compute_slices, memory: known.memory_slices });
    }
    match mode {
        Ok(MigMode::Unsupported) => Some(WHOLE),
        Ok(MigMode::Off { .. } | MigMode::On { .. }) => Some(EIGHTHS),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_nvml::Absent;

    #[test]
    fn the_table_wins_and_the_mode_decides_for_models_it_lacks() {
        let geometry = gpuledger_wire::geometry::geometry();
        let of = |model: &str, mode| slicing(model, mode, &geometry).map(|s| (s.compute, s.memory));
        assert_eq!(of("NVIDIA A30", Ok(MigMode::Off { turns_on: false })), Some((4, 4)));
        assert_eq!(of("NVIDIA H100 80GB HBM3", Err(Absent::Lost)), Some((7, 8)));
        assert_eq!(of("NVIDIA B200", Ok(MigMode::Unsupported)), Some((7, 8)));
        assert_eq!(of("NVIDIA B300 SXM6 AC", Ok(MigMode::Off { turns_on: false })), Some((7, 8)));
        assert_eq!(of("Tesla T4", Ok(MigMode::Unsupported)), Some((1, 1)));
        assert_eq!(of("NVIDIA B300 SXM6 AC", Err(Absent::Lost)), None);
    }
}
