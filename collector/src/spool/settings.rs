//! What may be set about the spool.

use serde::Deserialize;
use std::path::PathBuf;

/// Where the spool lies and how large it may be.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct SpoolSettings {
    /// Folder of its own, for one collector. Never restore it from a backup: numbers would be used twice. Remove it instead.
    pub folder: PathBuf,
    /// Most bytes of all segments; the last sixteenth is for facts alone. At least 64 KiB.
    pub max_bytes: u64,
    /// Bytes after which a new segment is begun: what is acknowledged is dropped by segment. At most a quarter of `max_bytes`.
    pub segment_bytes: u64,
    /// When the disk is asked to hold what was written.
    pub sync: Sync,
}

/// When the disk is asked to hold what was written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// After each record, before it is sent: a power cut loses nothing that is numbered. It costs about 1.5 ms a record on a virtual
    /// disk with ext4, where writing alone takes 0.1 ms.
    #[default]
    Each,
    /// Never: for demonstrations and tests. A kill of the process loses nothing, a power cut may; each start begins a new
    /// stream, so that no number is used twice even then.
    Never,
}

impl Default for SpoolSettings {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("/var/lib/gpuledger-collector/spool"),
            max_bytes: 1 << 30,
            segment_bytes: 1 << 20,
            sync: Sync::Each,
        }
    }
}

impl SpoolSettings {
    /// The same with bounds that fit each other.
    pub(crate) fn within_bounds(mut self) -> Self {
        self.max_bytes = self.max_bytes.max(64 << 10);
        self.segment_bytes = self.segment_bytes.clamp(4 << 10, self.max_bytes / 4);
        self
    }

    /// Most bytes with which a window is still kept.
    pub(crate) const fn bytes_for_windows(&self) -> u64 {
        self.max_bytes - self.max_bytes / 16
    }
}
