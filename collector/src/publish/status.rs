//! How publishing goes, for metrics and health.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How publishing goes. Counts begin with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishStatus {
    /// Events that arrived.
    pub arrived: u64,
    /// Events that arrived and that the ledger parks, because this node may not say them.
    pub not_entitled: u64,
    /// Failures.
    pub failures: u64,
    /// Failures since something arrived.
    pub failures_in_a_row: u64,
    /// The last failure, until something arrives.
    pub stuck: Option<String>,
}

/// A view of a publisher. Cheap to clone; clones see the same.
#[derive(Clone, Debug, Default)]
pub struct PublishWatch {
    status: Arc<Mutex<PublishStatus>>,
}

impl PublishWatch {
    /// How it goes.
    pub fn status(&self) -> PublishStatus {
        self.inner().clone()
    }

    fn inner(&self) -> MutexGuard<'_, PublishStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn arrived(&self) {
        let mut status = self.inner();
        status.arrived += 1;
        if let Some(why) = status.stuck.take() {
            tracing::info!(failures = status.failures_in_a_row, why, "events arrive again");
        }
        status.failures_in_a_row = 0;
    }

    pub(crate) fn not_entitled(&self, why: &str) {
        self.arrived();
        let mut status = self.inner();
        status.not_entitled += 1;
        tracing::error!(why, "the ledger parks an event: this node's token does not allow it");
    }

    /// Says so once for each reason, not once a try.
    pub(crate) fn stuck(&self, why: &str, pause: Duration) {
        let mut status = self.inner();
        status.failures += 1;
        status.failures_in_a_row += 1;
        if status.stuck.as_deref() != Some(why) {
            tracing::warn!(why, ?pause, "events do not arrive; they stay in the spool and are sent again");
        }
        status.stuck = Some(why.to_owned());
    }
}
