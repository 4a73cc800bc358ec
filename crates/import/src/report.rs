//! What an import did: how much it read, how much it emitted, what it could not map and why.

use std::collections::BTreeMap;
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $text:literal, $listed:literal;)*) => {
        /// Why a row gave no event, or what is to be known about one that did.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// The word used in summaries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether each case is listed with its line; the others are ordinary and only counted.
            pub const fn is_listed(self) -> bool {
                match self { $(Self::$name => $listed,)* }
            }
        }
    };
}

reasons! {
    /// The job or pod holds no GPU.
    NoGpu => "no_gpu", false;
    /// No row of the dump ever names a GPU, so that none of its jobs is known to hold none.
    GpuUnknown => "gpu_unknown", true;
    /// The pod was never placed on a node.
    NeverScheduled => "never_scheduled", false;
    /// The job never started.
    NeverStarted => "never_started", false;
    /// A step of a job, whose GPUs are the job's.
    JobStep => "job_step", false;
    /// The row before it, once more.
    Repeated => "repeated", false;
    /// The job still runs and open jobs were not wanted.
    StillRunning => "still_running", false;
    /// The line is too long, not UTF-8, cut off, or has another number of fields.
    BadLine => "bad_line", true;
    /// A field cannot be read.
    BadValue => "bad_value", true;
    /// Fields that contradict each other.
    Contradiction => "contradiction", true;
    /// A local time that the zone skipped.
    NoSuchTime => "no_such_time", true;
    /// A job that is over, without an end.
    NoEnd => "no_end", true;
    /// Nobody to charge: the tenant's field is empty, or two mappings are equally good.
    NoTenant => "no_tenant", true;
    /// A job that ran, and its TRES says nothing at all.
    TresUnknown => "tres_unknown", true;
    /// Shares of GPUs (`gres/shard`, `gres/mps`) whose size the dump does not tell.
    ShareUnknown => "share_unknown", true;
    /// Emitted: a local time that occurred twice; the earlier one was taken.
    TwiceLocalTime => "twice_local_time", false;
    /// Emitted: the job was suspended for a while and held its GPUs all the same.
    Suspended => "suspended", false;
    /// Emitted: a state that Slurm does not document; the release carries no reason.
    StateUnknown => "state_unknown", true;
    /// Emitted: the last line has no line end and may be cut.
    NoFinalNewline => "no_final_newline", true;
    /// Emitted: a UUID that is absent, a placeholder, or there twice.
    UuidUnsure => "uuid_unsure", true;
    /// Emitted: fewer GPUs in the capture than it says are attached.
    GpuMissing => "gpu_missing", true;
    /// Emitted with 1 and 1 slices: a MIG-capable model without geometry.
    GeometryUnknown => "geometry_unknown", true;
    /// A MIG instance whose profile cannot be told for sure.
    ProfileUnsure => "profile_unsure", true;
}

/// A row, or a part of one, that could not be mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// Which file.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The field, where one is to blame.
    pub field: Option<String>,
    /// Kind of cause.
    pub reason: Reason,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(field) = &self.field {
            write!(f, "field {field}: ")?;
        }
        write!(f, "{} ({})", self.message, self.reason.as_str())
    }
}

/// What an import of one file did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows read, without header and blank lines (of an inventory: GPUs).
    pub read: u64,
    /// Events emitted.
    pub emitted: u64,
    /// How often each reason occurred. A row without an event has one reason; "emitted" reasons come on top.
    pub counts: BTreeMap<Reason, u64>,
    /// The first of the listed cases, in the order of the file.
    pub unmapped: Vec<Unmapped>,
    /// All listed cases, also those no longer kept in `unmapped`.
    pub unmapped_total: u64,
}

impl Report {
    /// How often this reason occurred.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts.get(&reason).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    pub(crate) fn list(&mut self, keep: usize, case: Unmapped) {
        self.unmapped_total += 1;
        if self.unmapped.len() < keep {
            self.unmapped.push(case);
        }
    }
}

impl fmt::Display for Report {
    /// One line: `4285 read, 4 events; no_gpu 4283`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} read, {} events", self.read, self.emitted)?;
        for (place, (reason, count)) in self.counts.iter().enumerate() {
            write!(f, "{} {} {count}", if place == 0 { ";" } else { "," }, reason.as_str())?;
        }
        Ok(())
    }
}

/// Why one row gives no event. Line and file are added where they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) reason: Reason,
    pub(crate) field: Option<String>,
    pub(crate) message: String,
}

impl Reject {
    /// Rejected for an ordinary reason that is only counted.
    pub(crate) const fn ordinary(reason: Reason) -> Self {
        Self { reason, field: None, message: String::new() }
    }

    pub(crate) fn new(reason: Reason, field: Option<&str>, message: impl Into<String>) -> Self {
        Self { reason, field: field.map(str::to_owned), message: message.into() }
    }

    pub(crate) fn value(field: &str, message: impl Into<String>) -> Self {
        Self::new(Reason::BadValue, Some(field), message)
    }
}

/// The text of a field as messages show it: short, so that a hostile file cannot flood the terminal, and in one line.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}
