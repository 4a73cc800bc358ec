//! What a handle names at an instant.

use super::code::Code;
use super::handle::Handle;
use crate::model::Model;
use crate::world::{ComputeInstance, GpuInstance, GpuState, World};

/// A GPU or a MIG device at an instant.
pub(super) struct Target<'a> {
    world: &'a World,
    /// The GPU's place.
    pub(super) gpu: usize,
    /// Its state.
    pub(super) state: &'a GpuState,
    /// The compute instance where it is a MIG device, by its index.
    compute_instance: Option<usize>,
}

impl<'a> Target<'a> {
    /// What a handle names in a state of its GPU.
    ///
    /// # Errors
    /// It is no handle of a device, or nothing has that place in the list of MIG devices.
    pub(super) fn find(world: &'a World, state: &'a GpuState, handle: Handle) -> Result<Self, Code> {
        let (gpu, compute_instance) = match handle {
            Handle::Gpu(gpu) => (gpu, None),
            Handle::Mig { gpu, index } => {
                let device = state.mig_devices.iter().find(|device| device.index == u32::from(index));
                (gpu, Some(device.ok_or(Code::INVALID_ARGUMENT)?.compute_instance))
            }
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        Ok(Self { world, gpu: gpu.into(), state, compute_instance })
    }

    /// Its GPU's model.
    pub(super) fn model(&self) -> &'static Model {
        self.world.model(self.gpu)
    }

    /// GPU instance and compute instance where it is a MIG device.
    pub(super) fn instance(&self) -> Option<(&'a GpuInstance, &'a ComputeInstance)> {
        let compute = self.world.compute_instance(self.compute_instance?);
        Some((self.world.gpu_instance(compute.gpu_instance), compute))
    }

    /// As [`Self::instance`], for calls that only a MIG device answers.
    ///
    /// # Errors
    /// Not supported for a GPU.
    pub(super) fn mig_device(&self) -> Result<(&'a GpuInstance, &'a ComputeInstance), Code> {
        self.instance().ok_or(Code::NOT_SUPPORTED)
    }

    /// The compute instance by its index.
    pub(super) fn compute_instance(&self) -> Option<usize> {
        self.compute_instance
    }

    /// A live GPU instance by its id, with its index.
    pub(super) fn gpu_instance(&self, id: u32) -> Option<(usize, &'a GpuInstance)> {
        let indices = self.state.gpu_instances.iter();
        indices.map(|index| (*index, self.world.gpu_instance(*index))).find(|(_, instance)| instance.id == id)
    }

    /// Live compute instances of a GPU instance.
    pub(super) fn compute_instances(&self, gpu_instance: usize) -> impl Iterator<Item = &'a ComputeInstance> {
        let devices = self.state.mig_devices.iter();
        devices
            .map(|device| self.world.compute_instance(device.compute_instance))
            .filter(move |compute| compute.gpu_instance == gpu_instance)
    }
}

/// Name of a MIG device's profile: `3g.40gb`, or `1c.3g.40gb` where it is not all of its GPU instance.
pub(super) fn profile_name(gpu_instance: &GpuInstance, compute: &ComputeInstance) -> String {
    let profile = gpu_instance.profile;
    if compute.slices >= profile.compute_slices {
        profile.name.to_owned()
    } else {
        format!("{}c.{}", compute.slices, profile.name)
    }
}
