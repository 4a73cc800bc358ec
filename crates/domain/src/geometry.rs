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
    /// The profile of this name. `1c.3g.40gb` is a compute instance in a `3g.40gb`, whose slices it shares.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        let name = gpu_instance(name);
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

/// The GPU instance's part of a profile's name.
fn gpu_instance(name: &str) -> &str {
    let compute = |part: &str| part.strip_suffix('c').is_some_and(is_number);
    name.split_once('.').filter(|(first, _)| compute(first)).map_or(name, |(_, rest)| rest)
}

/// The profile that a foreign name carries, such as `3g.20gb` in the Slurm type `a100_3g.20gb` and in `nvidia.com/mig-3g.20gb`. What stands
/// behind it (`+me`) changes no slices and is left out.
pub fn profile_in(name: &str) -> Option<String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.flat_map(|word| word.split('.').zip(word.split('.').skip(1))).find_map(|(compute, memory)| {
        let is_profile = compute.strip_suffix('g').is_some_and(is_number)
            && memory.strip_suffix("gb").is_some_and(is_number);
        is_profile.then(|| format!("{compute}.{memory}"))
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
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
