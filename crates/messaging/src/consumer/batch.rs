//! What the caller gets.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::hand_off::HandOff;
use crate::identity::{Partition, TopicIdentity};

/// One record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it was read.
    pub partition: Partition,
    /// Its offset there.
    pub offset: i64,
    /// The record's time in milliseconds UTC as its producer or broker set it.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// Headers in order; a header without a value is empty.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The value; absent in a tombstone.
    pub payload: Option<Vec<u8>>,
}

impl Message {
    /// Bytes this message counts for in the limit of a batch.
    pub(crate) fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        headers + self.key.as_ref().map_or(0, Vec::len) + self.payload.as_ref().map_or(0, Vec::len)
    }
}

/// What a batch covers of one partition: the caller writes `next` where it finds `expected`, in the transaction of the
/// batch's effects, and rolls all of it back where it finds something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The partition.
    pub partition: Partition,
    /// The ids to store beside the offset.
    pub identity: TopicIdentity,
    /// Offset that must be stored now; `None`: no row must exist.
    pub expected: Option<i64>,
    /// Offset to store.
    pub next: i64,
}

/// Messages to apply in one transaction, each partition's in order.
#[derive(Debug)]
pub struct Batch {
    /// The messages.
    pub messages: Vec<Message>,
    /// One span for each partition of the messages, sorted by partition.
    pub spans: Vec<Span>,
    /// It reached its limit of messages or bytes before its time was over: more waits behind it.
    pub is_full: bool,
    pub(super) lease: Lease,
}

impl Batch {
    /// Whether a partition of this batch is no longer ours: roll back and rewind. The fence on the stored offset
    /// decides in any case; this only saves the work.
    pub fn is_withdrawn(&self) -> bool {
        self.lease.withdrawn.is_cancelled()
    }

    /// Completes when [`Batch::is_withdrawn`] becomes true.
    pub async fn withdrawn(&self) {
        self.lease.withdrawn.cancelled().await;
    }
}

/// Keeps a batch open until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) number: u64,
    pub(super) withdrawn: CancellationToken,
    pub(super) hand_off: Arc<HandOff>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.hand_off.finish(self.number);
    }
}
