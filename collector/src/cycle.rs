//! One look at one GPU: what is asked in which order, and what comes of it.
//!
//! Topology, process rows, start times and owners, readings, start times again, topology again. What does not hold still over that time
//! is discarded and counted.

mod device;
mod observation;
mod observe;
mod report;
mod sampler;

pub use observation::{Accounted, Live, Observation, RowsReply, Timed};
pub use report::{CycleReport, Gauges, LiveProcess, View};
pub use sampler::{Sampler, SamplerSettings};

#[cfg(test)]
pub(crate) mod tests;
