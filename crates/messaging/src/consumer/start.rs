//! Where a partition goes on: the stored offset, checked against the live topic.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::client::{Client, ClientContext};
use tokio::runtime::Handle;

use super::settings::ConsumerSettings;
use crate::error::MessagingError;
use crate::identity::{Partition, TopicIdentity, identities};
use crate::settings::KafkaSettings;
use crate::topics::{Watermarks, partition_watermarks};

/// Longest single question to the cluster.
const QUESTION: Duration = Duration::from_secs(10);
/// Pause before a failed attempt is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// An offset as the database holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOffset {
    /// Cluster and topic it was read from.
    pub identity: TopicIdentity,
    /// Offset to read next.
    pub next_offset: i64,
}

/// Why stored offsets could not be read.
pub type OffsetsError = Box<dyn Error + Send + Sync>;

/// Stored offsets on their way; a partition without one is absent.
pub type OffsetsFuture =
    Pin<Box<dyn Future<Output = Result<BTreeMap<Partition, StoredOffset>, OffsetsError>> + Send>>;

/// Reads stored offsets. Asked at every assignment and rewind, with a time limit, and again after a failure.
/// A closure from partitions to a boxed future is one.
pub trait OffsetSource: Send + Sync + 'static {
    /// The stored offsets of these partitions.
    fn stored(&self, partitions: Vec<Partition>) -> OffsetsFuture;
}

impl<F> OffsetSource for F
where
    F: Fn(Vec<Partition>) -> OffsetsFuture + Send + Sync + 'static,
{
    fn stored(&self, partitions: Vec<Partition>) -> OffsetsFuture {
        self(partitions)
    }
}

/// Where reading a partition begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) partition: Partition,
    pub(super) identity: TopicIdentity,
    /// What the database holds; `None`: nothing yet.
    pub(super) stored: Option<i64>,
    /// Offset to read first.
    pub(super) next: i64,
}

/// Finds starts. Runs on the consumer's thread; only the question to the caller's source runs on the runtime.
pub(super) struct Finder {
    bootstrap: String,
    offsets: Arc<dyn OffsetSource>,
    runtime: Handle,
    timeout: Duration,
}

impl Finder {
    pub(super) fn new(
        kafka: &KafkaSettings,
        settings: &ConsumerSettings,
        offsets: Arc<dyn OffsetSource>,
        runtime: Handle,
    ) -> Self {
        Self { bootstrap: kafka.bootstrap.clone(), offsets, runtime, timeout: settings.offsets_timeout }
    }

    /// Starts of all the partitions. Tries again until its time is over, the fault is final, or `wanted` says no.
    pub(super) fn find<C: ClientContext>(
        &self,
        client: &Client<C>,
        partitions: &[Partition],
        wanted: impl Fn() -> bool,
    ) -> Result<Vec<Start>, MessagingError> {
        let until = Instant::now() + self.timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.attempt(client, partitions, left) {
                Ok(starts) => return Ok(starts),
                Err(fault) if is_final(&fault) || left <= PAUSE => return Err(fault),
                Err(_) if !wanted() => return Err(MessagingError::Stopped),
                Err(fault) => tracing::warn!(%fault, "where to go on is not known yet"),
            }
            thread::sleep(PAUSE);
        }
    }

    fn attempt<C: ClientContext>(
        &self,
        client: &Client<C>,
        partitions: &[Partition],
        left: Duration,
    ) -> Result<Vec<Start>, MessagingError> {
        let stored = self.ask(partitions, left)?;
        let question = left.clamp(PAUSE, QUESTION);
        let topics: BTreeSet<&str> = partitions.iter().map(|partition| &*partition.topic).collect();
        let topics: Vec<&str> = topics.into_iter().collect();
        let live = identities(client, &self.bootstrap, &topics, question)?;
        let mut starts = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let identity = live.get(&*partition.topic).ok_or_else(|| {
                MessagingError::Topics(vec![format!("{}: does not exist", partition.topic)])
            })?;
            let marks = partition_watermarks(client, partition, question)?;
            starts.push(decide(partition, stored.get(partition), identity, marks)?);
        }
        Ok(starts)
    }

    /// Asks the caller's source: the future runs on the runtime while this thread waits, no longer than `left`.
    fn ask(
        &self,
        partitions: &[Partition],
        left: Duration,
    ) -> Result<BTreeMap<Partition, StoredOffset>, MessagingError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let question = self.offsets.stored(partitions.to_vec());
        let task = self.runtime.spawn(async move {
            // The receiver is gone only when nobody wants the answer any more.
            drop(answer.send(question.await));
        });
        let result = answered.recv_timeout(left);
        task.abort();
        let cause = match result {
            Ok(Ok(stored)) => return Ok(stored),
            Ok(Err(fault)) => fault.to_string(),
            Err(mpsc::RecvTimeoutError::Timeout) => "no answer in time".to_owned(),
            Err(mpsc::RecvTimeoutError::Disconnected) => "the runtime is gone".to_owned(),
        };
        Err(MessagingError::Offsets { waited: self.timeout, cause })
    }
}

/// Asking again would not help.
fn is_final(fault: &MessagingError) -> bool {
    // An offset past the end may be that of a broker that has just restarted and not yet found its own end.
    matches!(fault, MessagingError::OffsetOutOfRange { offset, low, .. } if offset < low)
        || matches!(fault, MessagingError::ForeignOffset { .. })
}

/// Where reading goes on, or why it cannot.
pub(super) fn decide(
    partition: &Partition,
    stored: Option<&StoredOffset>,
    live: &TopicIdentity,
    marks: Watermarks,
) -> Result<Start, MessagingError> {
    let start = |stored, next| Start { partition: partition.clone(), identity: live.clone(), stored, next };
    let Some(StoredOffset { identity, next_offset }) = stored else {
        if marks.low > 0 {
            tracing::warn!(%partition, low = marks.low, "first reading, and older records are already deleted");
        } else {
            tracing::info!(%partition, "first reading, from the beginning");
        }
        return Ok(start(None, marks.low));
    };
    if identity != live {
        let (partition, stored, live) = (partition.clone(), identity.clone(), live.clone());
        return Err(MessagingError::ForeignOffset { partition, stored, live });
    }
    if !(marks.low..=marks.high).contains(next_offset) {
        let Watermarks { low, high } = marks;
        return Err(MessagingError::OffsetOutOfRange {
            partition: partition.clone(),
            offset: *next_offset,
            low,
            high,
        });
    }
    Ok(start(Some(*next_offset), *next_offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(topic_id: &str) -> TopicIdentity {
        TopicIdentity { cluster_id: "c".into(), topic_id: topic_id.into() }
    }

    fn at(next_offset: i64) -> StoredOffset {
        StoredOffset { identity: identity("t"), next_offset }
    }

    fn decided(stored: Option<&StoredOffset>, live: &str) -> Result<Start, MessagingError> {
        let partition = Partition { topic: "facts".into(), partition: 3 };
        decide(&partition, stored, &identity(live), Watermarks { low: 5, high: 9 })
    }

    #[test]
    fn a_first_reading_begins_at_the_oldest_record_and_expects_no_row() {
        let start = decided(None, "t").unwrap();
        assert_eq!((start.stored, start.next), (None, 5));
    }

    #[test]
    fn a_stored_offset_inside_the_log_is_taken_at_both_ends() {
        for offset in [5, 7, 9] {
            let start = decided(Some(&at(offset)), "t").unwrap();
            assert_eq!((start.stored, start.next), (Some(offset), offset));
        }
    }

    #[test]
    fn an_offset_outside_the_log_is_an_error_and_only_the_lost_past_is_final() {
        let past = decided(Some(&at(4)), "t").unwrap_err();
        assert!(
            is_final(&past) && past.to_string().contains("offset 4 of facts/3 is outside 5..=9"),
            "{past}"
        );
        let ahead = decided(Some(&at(10)), "t").unwrap_err();
        assert!(matches!(ahead, MessagingError::OffsetOutOfRange { .. }) && !is_final(&ahead), "{ahead}");
    }

    #[test]
    fn an_offset_of_another_topic_of_that_name_is_an_error_even_if_it_would_fit() {
        let fault = decided(Some(&at(7)), "other").unwrap_err();
        assert!(matches!(fault, MessagingError::ForeignOffset { .. }) && is_final(&fault), "{fault}");
    }
}
