//! Writing events: structured lines and Kafka records.

use crate::event::{Event, EventData};
use crate::proto;
use serde_json::json;

/// The headers and the value of a Kafka record.
pub type Record = (Vec<(String, Vec<u8>)>, Vec<u8>);

/// The event as one line of canonical JSON (RFC 8785), without a line feed.
pub fn encode_structured(event: &Event) -> Vec<u8> {
    event.canonical_bytes()
}

/// The event as a Kafka record in binary mode. Telemetry travels as protobuf, unless it has members that protobuf does not know.
pub fn encode_binary(event: &Event) -> Record {
    let protobuf = match &event.data {
        EventData::TelemetryWindow(window) if event.unknown_members().is_empty() => {
            Some(proto::telemetry_to_proto(window))
        }
        _ => None,
    };
    let (content_type, value) = match protobuf {
        Some(value) => ("application/protobuf", value),
        None => ("application/json", canonical_json(&event.raw_data)),
    };
    let headers = [
        ("ce_specversion", "1.0".to_owned()),
        ("ce_id", event.id.clone()),
        ("ce_source", event.source.clone()),
        ("ce_type", event.type_name().to_owned()),
        ("ce_time", event.time.to_string()),
        ("content-type", content_type.to_owned()),
    ];
    (headers.into_iter().map(|(name, value)| (name.to_owned(), value.into_bytes())).collect(), value)
}

impl Event {
    /// The whole event in RFC 8785 canonical JSON: what is stored, digested and exported. Reading it back gives an equal event.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        canonical_json(&json!({
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type_name(),
            "time": self.time.to_string(),
            "data": self.raw_data,
        }))
    }
}

/// RFC 8785 form of a JSON value; whole numbers beyond 2^53 must be text in it. A `Value` has text keys, each once, and finite numbers, so nothing in it can be refused.
pub fn canonical_json(value: &serde_json::Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}
