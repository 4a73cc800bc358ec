//! Processes of the node: which one a number means, and whose it is.
//!
//! All of it is read from a procfs, `/proc` by default. A process that vanishes between two reads is normal, never an error.

mod boot;
mod cgroup;
mod environ;
mod file;
mod held;
mod identity;
mod namespace;
mod procfs;
mod stat;

pub use boot::{Boot, BootError};
pub use cgroup::{belonging_of, pod_uid_in};
pub use identity::{Belonging, Container, JobName, Owner, ProcessId, Processes, SlurmJob, Unknown};
pub use namespace::{Namespace, Standing};
pub use procfs::Procfs;
