//! What may be set about publishing.

use serde::Deserialize;
use std::time::Duration;

/// How events are sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct PublishSettings {
    /// Most records of a batch.
    pub batch_records: u16,
    /// Most bytes of a batch; a record that is longer goes alone.
    pub batch_bytes: u32,
    /// Records a second at which what has piled up is sent; 0: as fast as the sink takes them. A node makes about one in five
    /// seconds.
    pub backfill_per_second: u32,
    /// First pause after a failure, in milliseconds; it doubles with each.
    pub first_pause_ms: u32,
    /// Longest pause between two tries, in milliseconds. Each pause is drawn between half of it and all of it.
    pub longest_pause_ms: u32,
    /// How long to go on sending when the process is told to end, in milliseconds.
    pub drain_ms: u32,
}

impl Default for PublishSettings {
    fn default() -> Self {
        Self {
            batch_records: 64,
            batch_bytes: 256 << 10,
            backfill_per_second: 50,
            first_pause_ms: 500,
            longest_pause_ms: 60_000,
            drain_ms: 10_000,
        }
    }
}

impl PublishSettings {
    pub(crate) fn records(&self) -> usize {
        usize::from(self.batch_records.max(1))
    }

    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.batch_bytes).unwrap_or(usize::MAX)
    }

    pub(crate) fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms.into())
    }
}
