//! Where events go: Kafka, the HTTP interface, or a file.
//!
//! A sink gets events in order and says how far they got. It may have taken more than it says (an answer can be lost on its way
//! back): the same events are then sent again, under the same names, which the ledger knows (I-1).

mod file;
mod http;
mod kafka;

pub use file::{FileSettings, FileSink};
pub use http::{HttpSettings, HttpSink};
pub use kafka::KafkaSink;

use gpuledger_messaging::{KafkaSettings, MessagingError};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is stored for good.
    Stored,
    /// It is stored, among what this node may not say: the ledger parks it (I-5).
    NotEntitled(String),
    /// It will never be taken.
    Refused(String),
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// One for each event from the first on, as far as they got.
    pub taken: Vec<Taken>,
    /// Why it is not all of them.
    pub stopped: Option<Stopped>,
}

/// Why a sink took no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// In words.
    pub why: String,
    /// How long the sink asks to be left alone.
    pub wait: Option<Duration>,
}

impl Sent {
    /// All events got there.
    pub fn all(taken: Vec<Taken>) -> Self {
        Self { taken, stopped: None }
    }

    /// Only these did.
    pub fn until(taken: Vec<Taken>, why: impl ToString) -> Self {
        Self { taken, stopped: Some(Stopped { why: why.to_string(), wait: None }) }
    }
}

/// Somewhere events go.
pub trait Sink: Send {
    /// Sends events in this order, each in canonical structured JSON. Dropping the future gives them up, not back.
    fn send(&mut self, events: Vec<Vec<u8>>) -> impl Future<Output = Sent> + Send;

    /// Lets go of connections within this time.
    fn close(self, deadline: Duration) -> impl Future<Output = ()> + Send;
}

/// Which sink, and how to reach it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SinkSettings {
    /// Brokers.
    Kafka(KafkaSettings),
    /// `POST /v1/events`.
    Http(HttpSettings),
    /// A file of NDJSON.
    File(FileSettings),
}

/// A sink that cannot be used as it is set.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Kafka's settings.
    #[error(transparent)]
    Kafka(#[from] MessagingError),
    /// A file that is named in the settings.
    #[error("{setting} names {}: {source}", path.display())]
    File {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A setting that cannot be right.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What stands there and what would be right.
        problem: String,
    },
}

/// The sink of the settings.
#[derive(Debug)]
pub enum AnySink {
    /// Brokers.
    Kafka(KafkaSink),
    /// `POST /v1/events`.
    Http(HttpSink),
    /// A file of NDJSON.
    File(FileSink),
}

impl AnySink {
    /// Makes the sink. It connects on first use.
    ///
    /// # Errors
    /// Settings that cannot be right, and files they name that cannot be read.
    pub fn new(settings: SinkSettings) -> Result<Self, SinkError> {
        match settings {
            SinkSettings::Kafka(settings) => KafkaSink::new(settings).map(Self::Kafka),
            SinkSettings::Http(settings) => HttpSink::new(settings).map(Self::Http),
            SinkSettings::File(settings) => Ok(Self::File(FileSink::new(settings))),
        }
    }
}

impl Sink for AnySink {
    async fn send(&mut self, events: Vec<Vec<u8>>) -> Sent {
        match self {
            Self::Kafka(sink) => sink.send(events).await,
            Self::Http(sink) => sink.send(events).await,
            Self::File(sink) => sink.send(events).await,
        }
    }

    async fn close(self, deadline: Duration) {
        match self {
            Self::Kafka(sink) => sink.close(deadline).await,
            Self::Http(sink) => sink.close(deadline).await,
            Self::File(sink) => sink.close(deadline).await,
        }
    }
}
