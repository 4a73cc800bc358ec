//! What a device consists of: its MIG instances with their generation, and its entry in the node's inventory.
//!
//! NVML gives the ids of an instance, its handle and even its UUID to a later one. So each GPU instance carries a *generation* of ours: a
//! number that no other instance of this device had before, given anew on any change, on any `NOT_FOUND`, on a MIG event and with each
//! load of the driver. What is integrated belongs to (GPU instance, generation); across generations nothing is.

mod inventory;
mod slices;
mod tracker;

pub(crate) use inventory::wire_placement;
pub use inventory::{inventory, inventory_gpu};
pub use slices::{Slicing, slicing};
pub use tracker::{GpuInstance, Tracker, is_same_layout};
