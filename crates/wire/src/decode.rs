//! Reading events: structured, in batches, and as Kafka records.

use crate::error::{About, EventError, Fault};
use crate::event::{Event, EventData, MAX_BATCH_BYTES, MAX_EVENT_BYTES};
use crate::json::{self, Stopped};
use crate::text::Name;
use crate::time::parse_time;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads one structured event, such as a line of NDJSON.
///
/// # Errors
/// Names the first field that is wrong, and what of the event could be read.
pub fn decode_structured(bytes: &[u8]) -> Result<Event, EventError> {
    within(bytes, MAX_EVENT_BYTES)?;
    match json::parse(bytes) {
        Ok(Value::Object(members)) => from_members(members),
        Ok(_) => Err(Fault::malformed("event", "is no JSON object").about(About::default())),
        Err(stopped) => Err(broken_off(stopped, "")),
    }
}

/// One element of a batch: its text, to be parked where it is refused, and what it says.
#[derive(Debug)]
pub struct BatchItem<'a> {
    /// The element as it stands in the batch.
    pub text: &'a str,
    /// The event, or why there is none.
    pub event: Result<Event, EventError>,
}

/// Reads a JSON array of structured events; one bad event does not spoil the others.
///
/// # Errors
/// The batch as a whole is too long or no JSON array.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<BatchItem<'_>>, EventError> {
    within(bytes, MAX_BATCH_BYTES)?;
    let elements: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|why| {
        Fault::malformed("batch", format_args!("{why}, expected a JSON array of events"))
            .about(About::default())
    })?;
    let item = |raw: &'_ RawValue| decode_structured(raw.get().as_bytes());
    Ok(elements.into_iter().map(|raw| BatchItem { text: raw.get(), event: item(raw) }).collect())
}

/// Reads a Kafka record: binary mode with `ce_` headers and JSON or, for telemetry, protobuf data; or structured mode where the
/// content type says so.
///
/// # Errors
/// Names the header or field that is wrong.
pub fn decode_binary(headers: &[(String, Vec<u8>)], value: &[u8]) -> Result<Event, EventError> {
    let mut attributes = Map::new();
    let mut content_type = "application/json".to_owned();
    for (name, bytes) in headers {
        let attribute = name.strip_prefix("ce_");
        if attribute.is_none() && !name.eq_ignore_ascii_case("content-type") {
            continue;
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(Fault::bad(name.as_str(), "is no UTF-8 text").about(about(&attributes)));
        };
        match attribute {
            Some("data") => {
                return Err(Fault::bad(name.as_str(), "is no attribute, data is the record's value")
                    .about(about(&attributes)));
            }
            Some(attribute) if attributes.contains_key(attribute) => {
                return Err(
                    Fault::bad(name.as_str(), "stands twice, expected once").about(about(&attributes))
                );
            }
            Some(attribute) => {
                attributes.insert(attribute.to_owned(), Value::String(text.to_owned()));
            }
            None => content_type = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
        }
    }
    match content_type.as_str() {
        "application/cloudevents+json" => decode_structured(value),
        "application/json" => binary_json(attributes, value),
        "application/protobuf" => binary_protobuf(attributes, value),
        other => {
            let problem = format_args!(
                "`{other}` is not read, expected application/json, application/protobuf or application/cloudevents+json"
            );
            Err(Fault::bad("content-type", problem).about(about(&attributes)))
        }
    }
}

fn binary_json(mut attributes: Map<String, Value>, value: &[u8]) -> Result<Event, EventError> {
    within(value, MAX_EVENT_BYTES).map_err(|error| error.fault.about(about(&attributes)))?;
    match json::parse(value) {
        Ok(data) => {
            attributes.insert("data".to_owned(), data);
            from_members(attributes)
        }
        Err(stopped) => {
            let mut error = broken_off(stopped, "data");
            let subject = error.about.subject.take();
            *error.about = About { subject, ..about(&attributes) };
            Err(error)
        }
    }
}

fn binary_protobuf(mut attributes: Map<String, Value>, value: &[u8]) -> Result<Event, EventError> {
    let data = within(value, MAX_EVENT_BYTES).map_err(|error| error.fault).and_then(|()| {
        match attributes.get("type").and_then(Value::as_str) {
            Some("gpuledger.telemetry.window.v1") => crate::proto::telemetry_from_proto(value),
            _ => Err(Fault::bad(
                "content-type",
                "application/protobuf is for telemetry only, expected application/json",
            )),
        }
    });
    match data {
        Ok(data) => {
            attributes.insert("data".to_owned(), data);
            from_members(attributes)
        }
        Err(fault) => Err(fault.about(about(&attributes))),
    }
}

fn within(bytes: &[u8], limit: usize) -> Result<(), EventError> {
    if bytes.len() <= limit {
        return Ok(());
    }
    Err(Fault::TooLong { bytes: bytes.len(), limit }.about(About::default()))
}

fn broken_off(stopped: Stopped, prefix: &str) -> EventError {
    let field = match (prefix, stopped.path.as_str()) {
        ("", "") => "event".to_owned(),
        ("", path) => path.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}.{path}"),
    };
    Fault::malformed(field, stopped.problem).about(about(&stopped.seen))
}

/// What can be told of an event from its outer members; `seen` may hold `data.x` instead of `data`.
fn about(seen: &Map<String, Value>) -> About {
    let text = |name: &str| seen.get(name).and_then(Value::as_str).map(str::to_owned);
    let inner = |name: &str| {
        let whole =
            seen.get("data").and_then(|data| data.get(name)).and_then(Value::as_str).map(str::to_owned);
        whole
            .or_else(|| text(&format!("data.{name}")))
            .or_else(|| seen.get("data").is_none().then(|| text(name)).flatten())
    };
    About {
        source: text("source"),
        id: text("id"),
        kind: text("type"),
        time: text("time").and_then(|time| parse_time(&time).ok()),
        subject: ["allocation", "gpu", "node", "tenant"]
            .into_iter()
            .find_map(inner)
            .filter(|subject| subject.len() <= 512),
    }
}

fn from_members(mut members: Map<String, Value>) -> Result<Event, EventError> {
    match read_members(&mut members) {
        Ok(event) => Ok(event),
        Err(fault) => Err(fault.about(about(&members))),
    }
}

fn read_members(members: &mut Map<String, Value>) -> Result<Event, Fault> {
    match members.get("specversion") {
        Some(Value::String(version)) if version == "1.0" => {}
        Some(other) => return Err(Fault::bad("specversion", format_args!("is {other}, expected \"1.0\""))),
        None => return Err(Fault::bad("specversion", "is missing, expected \"1.0\"")),
    }
    let id = name(members, "id")?;
    let source = name(members, "source")?;
    let kind = name(members, "type")?;
    let time = name(members, "time")?;
    let time = parse_time(&time).map_err(|why| Fault::bad("time", format_args!("`{time}` {why}")))?;
    content_type(members)?;
    let data = members.get("data").ok_or_else(|| Fault::bad("data", "is missing, expected a JSON object"))?;
    if !data.is_object() {
        return Err(Fault::bad("data", "is no JSON object"));
    }
    let typed = EventData::read(&kind, data, time)?;
    let raw_data = members.remove("data").unwrap_or_default();
    Ok(Event { source, id, time, data: typed, raw_data })
}

fn name(members: &Map<String, Value>, field: &str) -> Result<String, Fault> {
    match members.get(field) {
        Some(Value::String(text)) => match Name::new(text) {
            Ok(_) => Ok(text.clone()),
            Err(why) => Err(Fault::bad(field, why)),
        },
        Some(other) => Err(Fault::bad(
            field,
            format_args!("is {}, expected a text of 1 to 512 characters", kind_of(other)),
        )),
        None => Err(Fault::bad(field, "is missing, expected a text of 1 to 512 characters")),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Structured events carry JSON; a content type that says otherwise, or data as base64, is a mistake of the sender.
fn content_type(members: &Map<String, Value>) -> Result<(), Fault> {
    if members.contains_key("data_base64") {
        return Err(Fault::bad("data_base64", "is not read, expected `data` as a JSON object"));
    }
    match members.get("datacontenttype") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if is_json(text) => Ok(()),
        Some(other) => {
            Err(Fault::bad("datacontenttype", format_args!("is {other}, expected application/json")))
        }
    }
}

fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.ends_with("+json")
}
