//! What comes in: an event as it was read, with where it came from and whether its source may say it.

use gpuledger_wire::{Event, EventError, decode_structured, encode_structured};

/// One event on its way in.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// What was read.
    pub event: Result<Event, EventError>,
    /// Where it came from: `file:line` or `topic/partition/offset`.
    pub origin: String,
    /// The bytes that were read, where they can be read again by themselves. A Kafka record without its headers cannot.
    pub raw: Option<Vec<u8>>,
    /// Why its principal may not say it (I-5); none: it may.
    pub not_entitled: Option<String>,
    /// The parked event it is a retry of.
    pub retry_of: Option<i64>,
}

impl Incoming {
    /// A structured event said by a principal who may say anything: a local file.
    pub fn trusted(raw: Vec<u8>, origin: String) -> Self {
        Self { event: decode_structured(&raw), origin, raw: Some(raw), not_entitled: None, retry_of: None }
    }

    /// What is kept where it is parked: it can be read again by itself.
    pub fn kept(&self) -> Vec<u8> {
        match (&self.raw, &self.event) {
            (Some(raw), _) => raw.clone(),
            (None, Ok(event)) => encode_structured(event),
            (None, Err(_)) => Vec::new(),
        }
    }
}
