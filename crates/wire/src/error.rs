//! Why an event cannot be read, and what of it could be: enough to park it under its name (I-4).

use gpuledger_domain::time::Instant;
use std::fmt;

/// An event that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError {
    /// What is wrong, and where.
    pub fault: Fault,
    /// What could be read all the same.
    pub about: Box<About>,
}

/// What is wrong with an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// More bytes than are read at all.
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No JSON, no protobuf, or no event at all.
    #[error("malformed at {field}: {problem}")]
    Malformed {
        /// JSON path of the place reading stopped at, such as `data.units[0]`; `event` for the whole of it.
        field: String,
        /// What stands there and what would be right.
        problem: String,
    },
    /// A field that cannot be taken as it stands.
    #[error("{field}: {problem}")]
    BadField {
        /// JSON path, such as `data.units[0].count`.
        field: String,
        /// What stands there and what would be right.
        problem: String,
    },
}

/// What could be read of an event that is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// CloudEvents `source`.
    pub source: Option<String>,
    /// CloudEvents `id`.
    pub id: Option<String>,
    /// CloudEvents `type`.
    pub kind: Option<String>,
    /// When it is said to have happened.
    pub time: Option<Instant>,
    /// What it is about: the allocation, else the GPU, else the node, else the tenant.
    pub subject: Option<String>,
}

impl EventError {
    /// Why it is parked, in one word: `malformed` or `bad_value`.
    pub const fn reason(&self) -> &'static str {
        match self.fault {
            Fault::TooLong { .. } | Fault::Malformed { .. } => "malformed",
            Fault::BadField { .. } => "bad_value",
        }
    }

    /// The subject of the parked row: what the event is about, else its identity, else `unknown`.
    pub fn subject(&self) -> String {
        match (&self.about.subject, &self.about.source, &self.about.id) {
            (Some(subject), _, _) => subject.clone(),
            (None, Some(source), Some(id)) => format!("{source} {id}"),
            (None, Some(one), None) | (None, None, Some(one)) => one.clone(),
            (None, None, None) => "unknown".to_owned(),
        }
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl std::error::Error for EventError {}

impl Fault {
    pub(crate) fn bad(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self::BadField { field: field.into(), problem: problem.to_string() }
    }

    pub(crate) fn malformed(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self::Malformed { field: field.into(), problem: problem.to_string() }
    }

    pub(crate) fn about(self, about: About) -> EventError {
        EventError { fault: self, about: Box::new(about) }
    }
}
