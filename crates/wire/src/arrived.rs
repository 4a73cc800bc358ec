//! A telemetry window on its way into the ledger: its envelope, what identifies it, and its bytes as they came.

use crate::block::Staged;
use crate::decode::decode_binary;
use crate::encode::canonical_json;
use crate::error::{About, EventError, Fault};
use crate::event::{Event, EventData};
use crate::proto::telemetry_to_proto;
use crate::text::Name;
use crate::time::parse_time;
use crate::window::read_window;
use gpuledger_domain::time::Instant;
use std::borrow::Cow;

/// What the bytes of a window are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `schemas/telemetry.proto`, in the plain form that [`read_window`] reads.
    Protobuf,
    /// The event's `data` as canonical JSON: it has members that protobuf does not know.
    Json,
}

impl Encoding {
    /// The content type of its bytes.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/protobuf",
            Self::Json => "application/json",
        }
    }
}

impl From<Encoding> for u8 {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Protobuf => 0,
            Encoding::Json => 1,
        }
    }
}

impl TryFrom<u8> for Encoding {
    type Error = u8;

    fn try_from(byte: u8) -> Result<Self, u8> {
        match byte {
            0 => Ok(Self::Protobuf),
            1 => Ok(Self::Json),
            other => Err(other),
        }
    }
}

/// A window within all bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// CloudEvents `source`.
    pub source: String,
    /// CloudEvents `id`.
    pub id: String,
    /// CloudEvents `time`.
    pub time: Instant,
    /// Which node.
    pub node: String,
    /// Random id of the collector's spool.
    pub stream: String,
    /// Place in the stream.
    pub sequence: i64,
    /// First instant.
    pub start: Instant,
    /// First instant after it: when the rules let the window act.
    pub end: Instant,
    /// Number of its readings of units and processes.
    pub rows: u32,
    /// What its bytes are.
    pub encoding: Encoding,
    /// The event's data.
    pub body: Vec<u8>,
}

impl Arrived {
    /// A Kafka record that is a window in plain protobuf. The payload comes back where it is none, or is one that only the reader of events can
    /// judge.
    ///
    /// # Errors
    /// The payload.
    pub fn from_record(headers: &[(String, Vec<u8>)], payload: Vec<u8>) -> Result<Self, Vec<u8>> {
        match envelope(headers).and_then(|outer| arrived(outer, &payload)) {
            Some(arrived) => Ok(Self { body: payload, ..arrived }),
            None => Err(payload),
        }
    }

    /// The window of an event; none: it is another event.
    pub fn from_event(event: &Event) -> Option<Self> {
        let EventData::TelemetryWindow(window) = &event.data else { return None };
        let outer = Envelope { source: &event.source, id: &event.id, time: event.time };
        if event.unknown_members().is_empty() {
            let body = telemetry_to_proto(window);
            if let Some(plain) = arrived(outer, &body) {
                return Some(Self { body, ..plain });
            }
        }
        let rows = window.units.len() + window.processes.len();
        Some(Self {
            source: event.source.clone(),
            id: event.id.clone(),
            time: event.time,
            node: window.node.to_string(),
            stream: window.stream.to_string(),
            sequence: window.sequence.get(),
            start: window.start.get(),
            end: window.end.get(),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            encoding: Encoding::Json,
            body: canonical_json(&event.raw_data),
        })
    }

    /// As it stands in a block.
    pub fn staged(&self) -> Staged<'_> {
        Staged {
            source: &self.source,
            id: &self.id,
            time: self.time,
            node: &self.node,
            encoding: self.encoding,
            body: &self.body,
        }
    }
}

impl<'b> Staged<'b> {
    /// The window in plain protobuf, without the members that protobuf does not know.
    ///
    /// # Errors
    /// The bytes are not those of an accepted window.
    pub fn plain(&self) -> Result<Cow<'b, [u8]>, EventError> {
        if self.encoding == Encoding::Protobuf {
            return Ok(Cow::Borrowed(self.body));
        }
        match self.to_event()?.data {
            EventData::TelemetryWindow(window) => Ok(Cow::Owned(telemetry_to_proto(&window))),
            _ => Err(Fault::bad("type", format_args!("is not {WINDOW}")).about(About::default())),
        }
    }

    /// The event it was.
    ///
    /// # Errors
    /// The bytes are not those of an accepted window.
    pub fn to_event(&self) -> Result<Event, EventError> {
        let headers = [
            ("ce_specversion", "1.0"),
            ("ce_id", self.id),
            ("ce_source", self.source),
            ("ce_type", WINDOW),
            ("ce_time", &self.time.to_string()),
            ("content-type", self.encoding.content_type()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        decode_binary(&headers, self.body)
    }
}

/// CloudEvents `type` of a window.
const WINDOW: &str = "gpuledger.telemetry.window.v1";

#[derive(Clone, Copy)]
struct Envelope<'h> {
    source: &'h str,
    id: &'h str,
    time: Instant,
}

/// The envelope of a window in protobuf, where its headers are those that every producer of ours sends, each once.
fn envelope(headers: &[(String, Vec<u8>)]) -> Option<Envelope<'_>> {
    let (mut source, mut id, mut time) = (None, None, None);
    let (mut version, mut kind, mut content) = (None, None, None);
    for (name, value) in headers {
        let place = match name.as_str() {
            "ce_source" => &mut source,
            "ce_id" => &mut id,
            "ce_time" => &mut time,
            "ce_specversion" => &mut version,
            "ce_type" => &mut kind,
            "content-type" => &mut content,
            other if other.starts_with("ce_") || other.eq_ignore_ascii_case("content-type") => return None,
            _ => continue,
        };
        if place.replace(std::str::from_utf8(value).ok()?).is_some() {
            return None;
        }
    }
    let is_window = version == Some("1.0") && kind == Some(WINDOW) && content == Some("application/protobuf");
    let name = |text: Option<&'_ str>| text.is_some_and(|text| Name::new(text).is_ok());
    if !is_window || !name(source) || !name(id) {
        return None;
    }
    Some(Envelope { source: source?, id: id?, time: parse_time(time?).ok()? })
}

/// All but the body, which the caller owns.
fn arrived(outer: Envelope<'_>, body: &[u8]) -> Option<Arrived> {
    let window = read_window(body, |_, _| {})?;
    Some(Arrived {
        source: outer.source.to_owned(),
        id: outer.id.to_owned(),
        time: outer.time,
        node: window.node.to_owned(),
        stream: window.stream.to_owned(),
        sequence: window.sequence,
        start: window.start,
        end: window.end,
        rows: window.units.saturating_add(window.processes),
        encoding: Encoding::Protobuf,
        body: Vec::new(),
    })
}
