//! What comes in: an event as it was read, with where it came from and whether its source may say it; and windows that need no such reading.

use crate::telemetry::Sealed;
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::{Event, EventError, decode_structured, encode_structured};
use std::fmt;
use std::sync::Arc;

/// What one batch brings.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Events to be judged.
    pub events: Vec<Incoming>,
    /// Windows that every judge admits, but for how late they are. Shared, since they are sealed on another thread.
    pub windows: Arc<Vec<Arrived>>,
    /// Blocks of the windows, made ahead; without them they are made once it is known which windows are new.
    pub blocks: Arc<Vec<Sealed>>,
    /// Of each window, where it came from.
    pub origins: Vec<Origin>,
    /// More waits behind it: what is posted with this batch would soon be posted again.
    pub is_backlog: bool,
}

/// A place in Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Topic.
    pub topic: Arc<str>,
    /// Its partition.
    pub partition: i32,
    /// Offset there.
    pub offset: i64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

impl Arrivals {
    /// The chosen windows as events, to be judged.
    pub fn as_events(&self, chosen: impl Fn(&Arrived) -> bool) -> Vec<Incoming> {
        let windows = self.windows.iter().zip(&self.origins).filter(|(window, _)| chosen(window));
        let event = |(window, origin): (&Arrived, &Origin)| Incoming {
            event: window.staged().to_event(),
            origin: origin.to_string(),
            raw: None,
            not_entitled: None,
            retry_of: None,
        };
        windows.map(event).collect()
    }
}

impl From<Vec<Incoming>> for Arrivals {
    fn from(events: Vec<Incoming>) -> Self {
        Self { events, ..Self::default() }
    }
}

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
