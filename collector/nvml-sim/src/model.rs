//! The GPU models a scenario may name, with their MIG geometry.
//!
//! Sources: the vendor's MIG guide and public captures of `nvidia-smi mig -lgip` and `-lgipp`. Memory differs by board and driver release, so that a
//! client must read it and never know it. `is_unsure` marks numbers that no public capture shows.

mod catalogue;
mod geometry;

pub use catalogue::MODELS;

/// A GPU model.
#[derive(Debug)]
pub struct Model {
    /// Its key in a scenario: `h100-80`.
    pub key: &'static str,
    /// NVML's name.
    pub name: &'static str,
    /// All memory in MiB.
    pub memory_mib: u64,
    /// Of it kept by the driver, in MiB.
    pub reserved_mib: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// CUDA compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Vendor and device word of the PCI header: `0x233010DE`.
    pub pci_device_id: u32,
    /// Power at rest, in milliwatts.
    pub idle_mw: u32,
    /// Power limit, in milliwatts.
    pub limit_mw: u32,
    /// Highest clock of the multiprocessors and of the memory, in MHz.
    pub clocks_mhz: (u32, u32),
    /// MIG geometry; none where the model cannot do MIG.
    pub mig: Option<&'static Geometry>,
    /// Some numbers are not sourced.
    pub is_unsure: bool,
}

/// How a model may be cut.
#[derive(Debug)]
pub struct Geometry {
    /// Length of the placement axis.
    pub memory_slices: u32,
    /// Compute slices: fewer than memory slices on most.
    pub compute_slices: u32,
    /// Profiles of GPU instances.
    pub profiles: &'static [Profile],
}

/// A profile of GPU instances.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Profile id, as `nvidia-smi mig -cgi` takes it.
    pub id: u32,
    /// Number of the profile in the enumeration `NVML_GPU_INSTANCE_PROFILE_…`.
    pub number: u32,
    /// Its name: `3g.40gb`, `1g.10gb+me`.
    pub name: &'static str,
    /// Compute slices.
    pub compute_slices: u32,
    /// Memory slices: the size of its placement.
    pub memory_slices: u32,
    /// Legal first memory slices.
    pub starts: &'static [u32],
    /// How many fit on an empty GPU.
    pub max_instances: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Copy engines.
    pub copy_engines: u32,
    /// Decoders.
    pub decoders: u32,
    /// JPEG decoders.
    pub jpegs: u32,
    /// Optical flow accelerators.
    pub optical_flow: u32,
    /// Some numbers are not sourced.
    pub is_unsure: bool,
}

impl Model {
    /// The model of this key.
    pub fn find(key: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.key == key)
    }

    /// Whether it has performance counters (GPM): Hopper and later.
    pub fn has_gpm(&self) -> bool {
        self.compute_capability.0 >= 9
    }

    /// NVML's number of the architecture: 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell.
    pub fn architecture(&self) -> u32 {
        match self.compute_capability {
            (..=7, _) => 6,
            (8, 9) => 8,
            (8, _) => 7,
            (9, _) => 9,
            _ => 10,
        }
    }

    /// Whether its power reading is the mean of a second. GA100 and what is older say the power of the instant.
    pub fn has_mean_power(&self) -> bool {
        self.compute_capability > (8, 0)
    }
}

impl Geometry {
    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&'static Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// Ids that GPU instances of a size are given, lowest first: the whole axis 0, half of it 1 to 2, and so on, as captures show.
    pub fn instance_ids(&self, memory_slices: u32) -> std::ops::RangeInclusive<u32> {
        match self.memory_slices / memory_slices {
            0 | 1 => 0..=0,
            2 | 3 => 1..=2,
            4..=7 => 3..=6,
            _ => 7..=14,
        }
    }
}

impl Profile {
    /// Multiprocessors of a compute instance with that many of its compute slices.
    pub fn multiprocessors_of(&self, compute_slices: u32) -> u32 {
        if compute_slices >= self.compute_slices {
            self.multiprocessors
        } else {
            self.multiprocessors * compute_slices / self.compute_slices
        }
    }

    /// Whether it has media engines that the plain profile of its size lacks.
    pub fn has_media_extensions(&self) -> bool {
        self.name.ends_with("+me")
    }
}

#[cfg(test)]
mod tests;
