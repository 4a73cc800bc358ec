//! What a MIG-capable model can be cut into: data from `schemas/geometry/`, never guessed in code.

use crate::fact::Placement;

/// One profile of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Such as `3g.40gb`.
    pub name: String,
    /// Compute slices it takes.
    pub compute_slices: u8,
    /// Memory slices it takes.
    pub memory_slices: u8,
    /// Memory slices at which it may start.
    pub starts: Vec<u8>,
}

/// The geometry of a family of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelGeometry {
    /// NVML names it holds for, each a whole name.
    pub models: Vec<String>,
    /// Compute slices of the whole GPU.
    pub compute_slices: u8,
    /// Memory slices of the whole GPU.
    pub memory_slices: u8,
    /// What it can be cut into.
    pub profiles: Vec<Profile>,
}

impl ModelGeometry {
    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|p| p.name == name)
    }

    /// Every legal placement with the compute slices it takes.
    pub fn placements(&self) -> impl Iterator<Item = (Placement, u8)> + '_ {
        self.profiles.iter().flat_map(|p| {
            p.starts
                .iter()
                .map(|start| (Placement { start: *start, size: p.memory_slices }, p.compute_slices))
        })
    }
}

/// All models known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// In no special order; a model stands in one entry only.
    pub models: Vec<ModelGeometry>,
}

impl Geometry {
    /// The geometry of the model with this NVML name.
    pub fn of(&self, model: &str) -> Option<&ModelGeometry> {
        self.models.iter().find(|m| m.models.iter().any(|name| name == model))
    }
}
