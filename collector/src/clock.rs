//! The clocks of the node: durations by one that never goes back, instants by one that people set.
//!
//! Every other module takes a [`Clock`]; only [`RealClock`] asks the system.

mod file;
mod real;
mod scale;

pub use file::FileClock;
pub use real::RealClock;
pub use scale::{Jump, Timescale};

use gpuledger_domain::time::Instant;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds since boot, time asleep included. Never goes back; the kernel counts the start of processes by it.
    pub monotonic_us: u64,
    /// Instant in UTC, as the node knows it. May jump.
    pub real: Instant,
}

/// Tells the time and waits.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Stamp;

    /// Comes back once the monotonic clock has reached `monotonic_us`; at once if that is past.
    fn sleep_until(&self, monotonic_us: u64);
}

/// The monotonic half of a clock, as readings of NVML want it.
pub struct Ticks<'a>(pub &'a dyn Clock);

impl gpuledger_nvml::Clock for Ticks<'_> {
    fn monotonic_us(&self) -> u64 {
        self.0.now().monotonic_us
    }
}
