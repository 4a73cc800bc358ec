//! A simulated NVML: `libnvidia-ml.so.1` with a scripted timeline behind it, and the ground truth beside it.
//!
//! - [`scenario`]: what a file says. [`model`]: the GPUs it may name.
//! - [`world`]: the scenario worked out: the state of every GPU at every instant, and exact integrals. It never changes.
//! - [`injection`]: failures and delays, counted by call: all that changes while the library is in use.
//! - [`clock`], [`procfs`]: the time and the `/proc` that belong to it.
//! - [`truth`], [`random`]: what a collector should have seen, and timelines drawn from a seed.
//!
//! The timeline is counted in microseconds since the scenario's start, by the monotonic clock.

pub mod abi;
pub mod clock;
pub mod code;
pub mod injection;
pub mod model;
pub mod procfs;
pub mod random;
pub mod scenario;
pub mod truth;
pub mod world;
