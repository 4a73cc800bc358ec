//! Writing events: structured lines and Kafka records.

use crate::event::{Event, EventData};
use crate::proto;
use serde_json::json;
use sha2::{Digest, Sha256};

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

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// [`Event::canonical_bytes`].
    pub bytes: Vec<u8>,
    /// [`Event::content_digest`].
    pub digest: [u8; 32],
}

impl Event {
    /// Bytes and digest at once: the data, which is nearly all of both, is written once.
    pub fn stored(&self) -> Stored {
        let data = canonical_json(&self.raw_data);
        let text = |text: &str| canonical_json(&serde_json::Value::from(text));
        let mut hash = Sha256::new();
        for part in [
            b"[".as_slice(),
            &text(self.type_name()),
            b",",
            &text(&self.time.as_micros().to_string()),
            b",",
            &data,
            b"]",
        ] {
            hash.update(part);
        }
        let members = [
            ("{\"data\":", data),
            (",\"id\":", text(&self.id)),
            (",\"source\":", text(&self.source)),
            (",\"specversion\":", text("1.0")),
            (",\"time\":", text(&self.time.to_string())),
            (",\"type\":", text(self.type_name())),
        ];
        let mut bytes = Vec::with_capacity(
            members.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() + 1,
        );
        for (name, value) in members {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&value);
        }
        bytes.push(b'}');
        Stored { bytes, digest: hash.finalize().into() }
    }

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

#[cfg(test)]
mod tests {
    use crate::decode_structured;

    #[test]
    fn an_event_is_stored_as_it_is_written_and_digested() {
        let examples = include_str!("../../../schemas/examples.ndjson");
        let odd = r#"{"specversion":"1.0","id":"a\"b\u00e9","source":"/x","type":"gpuledger.allocation.released.v1","time":"2026-10-01T00:00:00.5Z","data":{"zz":1.5,"allocation":"a\\b","reason":"\ud83d\ude00"}}"#;
        for line in examples.lines().chain([odd]) {
            let event = decode_structured(line.as_bytes()).unwrap();
            let stored = event.stored();
            assert_eq!(String::from_utf8(stored.bytes), String::from_utf8(event.canonical_bytes()));
            assert_eq!(stored.digest, event.content_digest());
        }
    }
}
