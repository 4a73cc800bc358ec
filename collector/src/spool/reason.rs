//! Why a time has no window.

use std::io;

/// Why a time has no window; the word stands in the gap record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The spool had as many bytes as it may have: nothing was acknowledged for too long.
    SpoolFull,
    /// The disk, or our quota on it, was full.
    DiskFull,
    /// The disk refused to write or to sync.
    DiskFailed,
    /// The window was longer than an event may be.
    TooLarge,
    /// The window was no valid event.
    Invalid,
    /// The collector was not running.
    Stopped,
    /// Two windows of one run do not meet.
    NotSampled,
    /// What was kept can no longer be read.
    Damaged,
    /// The sink refused the window for ever; it lies in `refused/`.
    Refused,
}

impl Reason {
    /// The word in the gap record and in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpoolFull => "spool_full",
            Self::DiskFull => "disk_full",
            Self::DiskFailed => "disk_failed",
            Self::TooLarge => "too_large",
            Self::Invalid => "invalid",
            Self::Stopped => "collector_stopped",
            Self::NotSampled => "not_sampled",
            Self::Damaged => "spool_damaged",
            Self::Refused => "refused",
        }
    }

    /// What a failed write means. A file-size limit counts as a full disk: it is our quota.
    pub(crate) fn of_write(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::DiskFull
            }
            _ => Self::DiskFailed,
        }
    }
}
