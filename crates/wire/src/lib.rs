//! What travels: CloudEvents and their bodies, the business objects of the configuration, the protobuf of telemetry, and the
//! geometry of MIG-capable models.
//!
//! Everything read here is checked here: what the other packages get is typed and within its bounds. `schemas/` holds the
//! machine-readable form, generated from these types; a test keeps both equal.

pub mod amount;
pub mod bodies;
mod decode;
mod encode;
pub mod error;
pub mod event;
mod fact;
mod json;
pub mod number;
mod routing;
pub mod share;
pub mod text;
pub mod time;

pub use decode::{BatchItem, decode_batch, decode_binary, decode_structured};
pub use encode::{encode_binary, encode_structured};
pub use error::{About, EventError, Fault};
pub use event::{EVENT_TYPES, Event, EventData, MAX_BATCH_BYTES, MAX_EVENT_BYTES};
