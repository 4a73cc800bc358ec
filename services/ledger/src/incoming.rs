//! What comes in: an event as it was read, with where it came from and whether its source may say it.

use gpuledger_wire::{Event, EventError, decode_structured};

/// One event on its way in.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// What was read.
    pub event: Result<Event, EventError>,
    /// Where it came from: `file:line` or `topic/partition/offset`.
    pub origin: String,
    /// The bytes that were read.
    pub raw: Vec<u8>,
    /// Why its principal may not say it (I-5); none: it may.
    pub not_entitled: Option<String>,
    /// The parked event it is a retry of.
    pub retry_of: Option<i64>,
}

impl Incoming {
    /// A structured event said by a principal who may say anything: a local file.
    pub fn trusted(raw: Vec<u8>, origin: String) -> Self {
        Self { event: decode_structured(&raw), origin, raw, not_entitled: None, retry_of: None }
    }
}
