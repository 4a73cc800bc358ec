//! The `data` of each event type, as contract.md names its members.
//!
//! What one value alone can break (a negative count, an empty name) is refused while it is read; what needs two values (a start
//! after its end) is refused by [`Body::check`]. A reading that could not be taken is absent, never zero (M-8).

mod allocation;
mod node;
mod scrub;
mod signal;
mod telemetry;
mod unit;
mod usage;

pub use allocation::{
    AllocationGranted, AllocationPlaced, AllocationReleased, AllocationSnapshot, AllocationState,
    AllocationTransferred, Class, Mode, Scope,
};
pub use node::{InventoryGpu, InventoryInstance, NodeDecommissioned, NodeInventory, State, UnitState};
pub use scrub::{
    Coverage, Method, Platform, QuarantineReleased, ScrubClass, ScrubFinished, ScrubResult, ScrubStarted,
    Step, Tool, Verification,
};
pub use signal::{Action, Outcome, SignalAcknowledged, SignalRaised};
pub use telemetry::{Gap, ProcessReading, TelemetryWindow, UnitReading};
pub use unit::{
    GrantUnit, MigUnit, PlacedUnit, Placement, Runtime, SignalUnit, SlicesOfGpu, SlicesPlace, UnplacedUnit,
};
pub use usage::{ChargeRecorded, DisputeResolved, DisputeSubject, UsageReported, WorkReported};

use crate::time::Time;
use gpuledger_domain::time::Instant;
use serde::{Deserialize, Deserializer, de};
use std::fmt;

/// A member that does not go with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path inside `data`, such as `units[1].gpu`.
    pub member: String,
    /// What stands there and what would be right.
    pub problem: String,
}

impl Problem {
    fn new(member: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self { member: member.into(), problem: problem.to_string() }
    }
}

/// The data of an event type.
pub trait Body {
    /// Checks what one member alone does not show. `at` is the event's time.
    ///
    /// # Errors
    /// The first member that is wrong.
    fn check(&self, at: Instant) -> Result<(), Problem> {
        let _ = at;
        Ok(())
    }
}

fn ordered(prefix: &str, start: Time, end: Time) -> Result<(), Problem> {
    if start <= end {
        return Ok(());
    }
    Err(Problem::new(
        format!("{prefix}end"),
        format_args!("{end} is before start {start}, expected start <= end"),
    ))
}

fn not_empty<T>(member: &str, list: &[T]) -> Result<(), Problem> {
    if list.is_empty() { Err(Problem::new(member, "is empty, expected at least one")) } else { Ok(()) }
}

/// Reads the parts, then makes the whole of them, which may refuse.
fn from_parts<'de, P, T, D>(deserializer: D) -> Result<T, D::Error>
where
    P: Deserialize<'de>,
    T: TryFrom<P, Error = &'static str>,
    D: Deserializer<'de>,
{
    P::deserialize(deserializer).and_then(|parts| T::try_from(parts).map_err(de::Error::custom))
}
