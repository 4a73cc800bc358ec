//! What can go wrong with Kafka, said so that an operator knows what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use gpuledger_topic_ids::TopicIdError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::identity::{Partition, TopicIdentity};

/// A fault of this room.
#[derive(Debug, thiserror::Error)]
pub enum MessagingError {
    /// A setting that cannot be right.
    #[error("{0}")]
    Setting(String),
    /// A file with a password or key password could not be read.
    #[error("read the secret in {}: {source}", file.display())]
    Secret {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A call to the client library failed.
    #[error("{doing}: {source}")]
    Kafka {
        /// What was being done.
        doing: String,
        /// What the library said.
        source: KafkaError,
    },
    /// The cluster did not tell its id in time.
    #[error("no cluster id from {bootstrap} within {waited:?}: are the brokers reachable?")]
    NoCluster {
        /// The brokers asked.
        bootstrap: String,
        /// How long.
        waited: Duration,
    },
    /// The ids of the topics could not be read.
    #[error(transparent)]
    TopicIds(#[from] TopicIdError),
    /// The live topics are not what the manifest declares; every fault on its own line.
    #[error("the cluster's topics differ from the manifest:\n  {}", .0.join("\n  "))]
    Topics(Vec<String>),
    /// The caller's offsets did not come in time.
    #[error("stored offsets could not be read within {waited:?}: {cause}")]
    Offsets {
        /// How long was tried.
        waited: Duration,
        /// The last failure.
        cause: String,
    },
    /// A stored offset belongs to another cluster, or to another topic of the same name.
    #[error(
        "the stored offset of {partition} belongs to {stored}, but the live one is {live}: the topic was re-created or \
         the database restored; compare both before moving the stored offset by hand"
    )]
    ForeignOffset {
        /// Where.
        partition: Partition,
        /// What the database says.
        stored: TopicIdentity,
        /// What the cluster says.
        live: TopicIdentity,
    },
    /// A stored offset points to records that are gone, or not there yet.
    #[error(
        "the stored offset {offset} of {partition} is outside {low}..={high}: records were deleted before they were \
         read, or the cluster lost some; nothing is skipped or replayed until an operator decides"
    )]
    OffsetOutOfRange {
        /// Where.
        partition: Partition,
        /// Next offset to read.
        offset: i64,
        /// Oldest offset kept.
        low: i64,
        /// One past the newest offset.
        high: i64,
    },
    /// A stored offset is of a partition that the cluster does not have.
    #[error("the stored offset of {partition} belongs to {stored}, but {bootstrap} has no such partition")]
    MissingPartition {
        /// Where.
        partition: Partition,
        /// What the database says.
        stored: TopicIdentity,
        /// The brokers asked.
        bootstrap: String,
    },
    /// Consuming failed in a way that retrying does not mend (a broken record, a fenced instance, a refused right).
    #[error("consuming failed: {0}")]
    Consumption(RDKafkaErrorCode),
    /// The consumer has ended.
    #[error("the consumer has stopped")]
    Stopped,
    /// The consumer thread was still closing at the deadline; it is left behind.
    #[error("the consumer was still closing after {0:?}")]
    CloseTimedOut(Duration),
    /// Called outside a tokio runtime.
    #[error("a consumer starts inside a tokio runtime")]
    NoRuntime,
    /// A thread could not be started.
    #[error("start the consumer's thread: {0}")]
    Thread(io::Error),
    /// A record was not acknowledged. It may have been stored all the same: the event's identity makes that harmless.
    #[error("a record for {topic} was not acknowledged: {source}")]
    Delivery {
        /// Topic it was for.
        topic: String,
        /// What the library said.
        source: KafkaError,
    },
    /// The producer was closed before the record's fate was known.
    #[error("the producer was closed before a record for {0} was acknowledged")]
    Undelivered(String),
    /// Records were still waiting for their acknowledgement at the deadline.
    #[error("the producer still had unacknowledged records after {0:?}")]
    FlushTimedOut(Duration),
}

impl MessagingError {
    /// The cluster could not be asked: it may answer when it is up again.
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            Self::Kafka { .. } | Self::NoCluster { .. } => true,
            // Brokers that go away in the middle of the question, or that have just come back and know no leader yet.
            Self::TopicIds(TopicIdError::Request(_)) => true,
            Self::TopicIds(TopicIdError::Topic { code, .. }) => *code == RDKafkaErrorCode::LeaderNotAvailable,
            _ => false,
        }
    }

    /// The record itself is at fault and will never be taken; the next one may be. No broker, no right and no such topic can be mended
    /// without it.
    pub fn is_record_refused(&self) -> bool {
        let code = self.delivery_code();
        matches!(code, Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidRecord))
    }

    /// The producer takes nothing any more: only a new one does.
    pub fn is_fatal(&self) -> bool {
        self.delivery_code() == Some(RDKafkaErrorCode::Fatal)
    }

    fn delivery_code(&self) -> Option<RDKafkaErrorCode> {
        match self {
            Self::Delivery { source, .. } => source.rdkafka_error_code(),
            _ => None,
        }
    }

    /// For `map_err`: names what was being done.
    pub(crate) fn kafka(doing: impl Into<String>) -> impl FnOnce(KafkaError) -> Self {
        let doing = doing.into();
        move |source| Self::Kafka { doing, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_that_go_away_in_any_question_are_out_of_reach_and_a_topic_that_is_not_there_is_no_such_thing()
    {
        let topic = |code| MessagingError::TopicIds(TopicIdError::Topic { topic: "t".to_owned(), code });
        let gone = TopicIdError::Request(RDKafkaErrorCode::BrokerTransportFailure);
        assert!(MessagingError::TopicIds(gone).is_out_of_reach());
        assert!(topic(RDKafkaErrorCode::LeaderNotAvailable).is_out_of_reach());
        assert!(!topic(RDKafkaErrorCode::UnknownTopicOrPartition).is_out_of_reach());
        assert!(!MessagingError::Stopped.is_out_of_reach());
    }
}
