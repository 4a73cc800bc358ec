//! How the spool stands, for metrics and logs.

use super::reason::Reason;
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

/// How the spool stands. Counts begin with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Bytes of all segments.
    pub bytes: u64,
    /// How many there may be.
    pub max_bytes: u64,
    /// Records that are not acknowledged.
    pub waiting: u64,
    /// Id of the stream that is written.
    pub stream: String,
    /// End of the last acknowledged window.
    pub acknowledged_window_end: Option<Instant>,
    /// End of the last kept window.
    pub window_end: Option<Instant>,
    /// Why windows are not kept just now.
    pub trouble: Option<Reason>,
    /// Windows that were kept.
    pub windows: u64,
    /// Facts that were kept.
    pub facts: u64,
    /// Windows that were not kept, by reason.
    pub not_kept: BTreeMap<Reason, u64>,
    /// Records that could not be read again; one that is read twice counts twice.
    pub damaged_records: u64,
    /// Windows that were replaced by a gap, because they could not be read again.
    pub damaged_windows: u64,
    /// Events that the sink refuses for ever.
    pub refused: u64,
}
