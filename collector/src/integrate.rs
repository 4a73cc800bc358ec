//! From observations to time: what each unit and process did between two looks, and for how much of that there is evidence.
//!
//! Pure: an [`Observation`] comes in, amounts over spans of the monotonic clock go into the lane's [`Book`]. Whole numbers only. The rule
//! of every source is: cover what it speaks of, never what lies between; when in doubt begin anew and tell nothing (the seed).

mod accounts;
mod derive;
mod driver_time;
mod energy;
mod hold;
mod lane;
mod ring;
mod roster;
mod rows;

pub use lane::Integrator;
pub(crate) use lane::Periods;
pub use roster::{Entry, Roster, Seen};
pub use rows::Discard;

/// Longest time between two of the driver's samples, and how long a sample may be in coming (nvml.h: a sixth of a second to a second).
pub(crate) const SAMPLE_US: u64 = 1_000_000;
/// The driver's rings hold about twelve seconds at their fastest; a look further apart than this has lost samples.
pub(crate) const RING_US: u64 = 10_000_000;
/// After so many periods without a look nothing is told of the time between.
pub(crate) const HELD_PERIODS: u64 = 3;
