//! Consuming: one librdkafka consumer on a thread of its own, batches handed over a bounded queue, offsets from the
//! database.
//!
//! The thread polls without a pause, so that rebalances are answered and the group is kept even while the caller
//! works; where the caller falls behind, partitions are paused. Rebalance callbacks run on that thread and do nothing
//! asynchronous: they wait, within bounds, for offsets and for open batches.

mod batch;
mod check;
mod hand_off;
mod rebalance;
mod settings;
mod start;
mod thread;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::MessagingError;
use crate::identity::Partition;
use crate::settings::KafkaSettings;

pub use batch::{Batch, Message, Span};
pub use check::{OffsetCheck, check_offsets};
use hand_off::HandOff;
pub use settings::{BatchLimits, ConsumerSettings};
pub use start::{OffsetSource, OffsetsError, OffsetsFuture, StoredOffset};

/// One member of a consumer group.
pub struct Consumer {
    hand_off: Arc<HandOff>,
    /// Answers when the thread has let go of everything.
    ended: oneshot::Receiver<()>,
}

impl Consumer {
    /// Joins the group and begins to read. `offsets` is asked, inside every assignment, where each partition goes on.
    ///
    /// # Errors
    /// Settings that cannot work, secrets that cannot be read, and a call outside a tokio runtime.
    pub fn start(
        kafka: &KafkaSettings,
        settings: ConsumerSettings,
        offsets: impl OffsetSource,
    ) -> Result<Self, MessagingError> {
        let runtime = Handle::try_current().map_err(|_| MessagingError::NoRuntime)?;
        let hand_off = Arc::new(HandOff::new(&settings));
        let finder = start::Finder::new(kafka, &settings, Arc::new(offsets), runtime);
        let context = rebalance::Context::new(hand_off.clone(), finder, settings.revoke_timeout);
        let ended = thread::spawn(kafka, settings, context, hand_off.clone())?;
        Ok(Self { hand_off, ended })
    }

    /// The next batch. Cancelling the future loses nothing.
    ///
    /// A batch counts as open until it is dropped or given to [`Consumer::rewind`]; a rebalance that takes one of its
    /// partitions waits for that, so a caller that keeps one while it waits for the next holds rebalances up.
    ///
    /// # Errors
    /// What ended the consumer; from then on [`MessagingError::Stopped`].
    pub async fn next(&mut self) -> Result<Batch, MessagingError> {
        HandOff::next(&self.hand_off).await
    }

    /// Gives up a batch whose effects were rolled back, with everything read after it: every partition is read again
    /// from the offset its source then says. Also the answer to a fence that did not hold.
    pub fn rewind(&mut self, batch: Batch) {
        self.hand_off.rewind();
        drop(batch);
    }

    /// Partitions assigned now, each with the offset that will be read next.
    pub fn positions(&self) -> BTreeMap<Partition, i64> {
        self.hand_off.positions()
    }

    /// Stops reading, gives the partitions up and waits until the thread has ended. Finish or drop open batches first.
    ///
    /// # Errors
    /// [`MessagingError::CloseTimedOut`] when the client library is still busy at the deadline; its thread is left
    /// behind and ends with the process.
    pub async fn close(mut self, deadline: Duration) -> Result<(), MessagingError> {
        self.hand_off.stop();
        match tokio::time::timeout(deadline, &mut self.ended).await {
            // An error: the sender was dropped, which is how the thread says that it has let go.
            Ok(_) => Ok(()),
            Err(_) => Err(MessagingError::CloseTimedOut(deadline)),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.hand_off.stop();
    }
}
