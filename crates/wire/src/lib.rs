//! What travels: CloudEvents and their bodies, the business objects of the configuration, the protobuf of telemetry, and the
//! geometry of MIG-capable models.
//!
//! Everything read here is checked here: what the other packages get is typed and within its bounds. `schemas/` holds the
//! machine-readable form, generated from these types; a test keeps both equal.

pub mod amount;
pub mod arrived;
pub mod block;
pub mod bodies;
pub mod currency;
mod decode;
mod encode;
pub mod error;
pub mod event;
#[cfg(test)]
mod examples;
mod fact;
pub mod findings;
pub mod geometry;
mod json;
pub mod number;
pub mod objects;
mod proto;
mod routing;
pub mod schema;
pub mod share;
pub mod text;
pub mod time;
pub mod window;

pub use decode::{BatchItem, decode_batch, decode_binary, decode_structured};
pub use encode::{Record, Stored, canonical_json, encode_binary, encode_structured};
pub use error::{About, EventError, Fault};
pub use event::{EVENT_TYPES, Event, EventData, MAX_BATCH_BYTES, MAX_EVENT_BYTES};
pub use routing::{TOPIC_FACTS, TOPIC_PARKED, TOPIC_SIGNALS, TOPIC_TELEMETRY, TOPIC_WORK, scrub_subject};
