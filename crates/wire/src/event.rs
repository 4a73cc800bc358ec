//! One event: the envelope of CloudEvents 1.0 and its typed data.

use crate::bodies::{self, Body};
use crate::error::{About, EventError, Fault};
use crate::text::Name;
use gpuledger_domain::time::Instant;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Greatest length of one event in bytes: 1 MiB.
pub const MAX_EVENT_BYTES: usize = 1 << 20;
/// Greatest length of a batch of events in bytes: 16 MiB.
pub const MAX_BATCH_BYTES: usize = 16 << 20;

/// An event as it was read, within all bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// CloudEvents `source`: who says it (I-5).
    pub source: String,
    /// CloudEvents `id`, unique within its source (I-1).
    pub id: String,
    /// When it happened.
    pub time: Instant,
    /// What is said, typed.
    pub data: EventData,
    /// What is said, as a JSON value with unknown members too; whole numbers beyond 2^53 are text in it.
    pub raw_data: Value,
}

impl Event {
    /// An event to send. Its data is checked as a receiver would.
    ///
    /// # Errors
    /// The source or id is no name, or members of the data do not go together.
    pub fn new(source: &str, id: &str, time: Instant, data: EventData) -> Result<Self, EventError> {
        let about = || About {
            source: Some(source.to_owned()),
            id: Some(id.to_owned()),
            kind: Some(data.type_name().to_owned()),
            time: Some(time),
            subject: None,
        };
        let check = || {
            Name::new(source).map_err(|why| Fault::bad("source", why))?;
            Name::new(id).map_err(|why| Fault::bad("id", why))?;
            data.check(time)?;
            data.to_value().map_err(|why| Fault::bad("data", why))
        };
        let raw_data = check().map_err(|fault| fault.about(about()))?;
        Ok(Self { source: source.to_owned(), id: id.to_owned(), time, data, raw_data })
    }

    /// CloudEvents `type`.
    pub fn type_name(&self) -> &'static str {
        self.data.type_name()
    }

    /// Paths of members of `data` that the contract does not name. Consumers ignore them; a producer that finds one has a fault.
    pub fn unknown_members(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Ok(known) = self.data.to_value() {
            collect_unknown("data", &self.raw_data, &known, &mut found);
        }
        found
    }
}

/// Compares what was sent with what its typed form says. A member that is `null` counts as absent.
fn collect_unknown(path: &str, sent: &Value, known: &Value, found: &mut Vec<String>) {
    match (sent, known) {
        (Value::Object(sent), Value::Object(known)) => {
            for (name, value) in sent {
                match known.get(name) {
                    Some(known) => collect_unknown(&format!("{path}.{name}"), value, known, found),
                    None if is_empty(value) => {}
                    None => found.push(format!("{path}.{name}")),
                }
            }
        }
        (Value::Array(sent), Value::Array(known)) => {
            for (index, (sent, known)) in sent.iter().zip(known).enumerate() {
                collect_unknown(&format!("{path}[{index}]"), sent, known, found);
            }
        }
        _ => {}
    }
}

/// What the typed form leaves out: null, and empty lists and maps.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads a typed body and checks it; faults carry the path inside the event.
fn read<T: DeserializeOwned + Body>(data: &Value, at: Instant) -> Result<T, Fault> {
    let body: T = serde_path_to_error::deserialize(data).map_err(|error| {
        let path = error.path().to_string();
        Fault::bad(if path == "." { "data".to_owned() } else { format!("data.{path}") }, error.into_inner())
    })?;
    body.check(at)?;
    Ok(body)
}

impl From<bodies::Problem> for Fault {
    fn from(problem: bodies::Problem) -> Self {
        Self::bad(format!("data.{}", problem.member), problem.problem)
    }
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $type:literal,)*) => {
        /// The data of an event, one case per type of the contract.
        #[derive(Clone, Debug, PartialEq)]
        pub enum EventData {$(
            $(#[$doc])*
            $name(bodies::$name),
        )*}

        /// Every event type, in the order of the contract.
        pub const EVENT_TYPES: &[&str] = &[$($type),*];

        impl EventData {
            /// CloudEvents `type`.
            pub const fn type_name(&self) -> &'static str {
                match self {$(Self::$name(_) => $type,)*}
            }

            /// The data as a JSON value.
            pub(crate) fn to_value(&self) -> serde_json::Result<Value> {
                match self {$(Self::$name(body) => serde_json::to_value(body),)*}
            }

            /// Checks what one member alone does not show.
            pub(crate) fn check(&self, at: Instant) -> Result<(), bodies::Problem> {
                match self {$(Self::$name(body) => body.check(at),)*}
            }

            /// Reads the data of this type.
            pub(crate) fn read(type_name: &str, data: &Value, at: Instant) -> Result<Self, Fault> {
                match type_name {
                    $($type => read(data, at).map(Self::$name),)*
                    _ => Err(Fault::bad("type", format_args!("`{type_name}` is unknown, expected one of {}", EVENT_TYPES.join(", ")))),
                }
            }
        }

        $(impl From<bodies::$name> for EventData {
            fn from(body: bodies::$name) -> Self {
                Self::$name(body)
            }
        })*

        /// Each type with what makes the JSON Schema of its data.
        pub(crate) const DATA_SCHEMAS: &[(&str, fn(&mut schemars::SchemaGenerator) -> schemars::Schema)] =
            &[$(($type, schemars::SchemaGenerator::subschema_for::<bodies::$name>)),*];
    };
}

event_types! {
    /// Full state of a node.
    NodeInventory = "gpuledger.node.inventory.v1",
    /// Capacity ends.
    NodeDecommissioned = "gpuledger.node.decommissioned.v1",
    /// State of a unit.
    UnitState = "gpuledger.unit.state.v1",
    /// Measurements.
    TelemetryWindow = "gpuledger.telemetry.window.v1",
    /// A hold begins.
    AllocationGranted = "gpuledger.allocation.granted.v1",
    /// Devices of an unplaced grant.
    AllocationPlaced = "gpuledger.allocation.placed.v1",
    /// A billing state.
    AllocationState = "gpuledger.allocation.state.v1",
    /// A new owner.
    AllocationTransferred = "gpuledger.allocation.transferred.v1",
    /// A hold ends.
    AllocationReleased = "gpuledger.allocation.released.v1",
    /// An allocator's live list.
    AllocationSnapshot = "gpuledger.allocation.snapshot.v1",
    /// Sanitising began.
    ScrubStarted = "gpuledger.scrub.started.v1",
    /// Sanitising ended.
    ScrubFinished = "gpuledger.scrub.finished.v1",
    /// A person lets units out of quarantine.
    QuarantineReleased = "gpuledger.quarantine.released.v1",
    /// Work of a shared server.
    WorkReported = "gpuledger.work.reported.v1",
    /// Usage of something else that is sold.
    UsageReported = "gpuledger.usage.reported.v1",
    /// A charge as an amount.
    ChargeRecorded = "gpuledger.charge.recorded.v1",
    /// A dispute's end.
    DisputeResolved = "gpuledger.dispute.resolved.v1",
    /// An order to the allocator.
    SignalRaised = "gpuledger.signal.raised.v1",
    /// The allocator's answer.
    SignalAcknowledged = "gpuledger.signal.acknowledged.v1",
}

#[cfg(test)]
mod tests;
