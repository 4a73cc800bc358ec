//! Settings of a consumer.

use std::time::Duration;

use rdkafka::ClientConfig;

use crate::error::MessagingError;
use crate::settings::KafkaSettings;

/// When a batch is handed over: at the first of these.
#[derive(Clone, Debug)]
pub struct BatchLimits {
    /// Messages in a batch.
    pub messages: usize,
    /// Bytes of keys, headers and values in a batch.
    pub bytes: usize,
    /// Time since its first message.
    pub wait: Duration,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { messages: 8_000, bytes: 16 * 1024 * 1024, wait: Duration::from_millis(200) }
    }
}

/// How one member reads.
#[derive(Clone, Debug)]
pub struct ConsumerSettings {
    /// Consumer group: the name its offsets are stored under.
    pub group: String,
    /// Stable name of this member. A restart within `session_timeout` gets its partitions back without a rebalance;
    /// two members of one name fence each other.
    pub instance: String,
    /// Topics, with their prefix.
    pub topics: Vec<String>,
    /// How long a member may be silent before its partitions go to others: longer than a restart, at least the
    /// broker's `group.min.session.timeout.ms` (6 s).
    pub session_timeout: Duration,
    /// When a batch is full.
    pub batch: BatchLimits,
    /// Batches that wait for the caller; beyond them reading pauses.
    pub queued_batches: usize,
    /// How long an assignment tries to learn its offsets before the consumer fails.
    pub offsets_timeout: Duration,
    /// How long a rebalance waits for open batches of the partitions it takes.
    pub revoke_timeout: Duration,
}

impl ConsumerSettings {
    /// Sensible settings for these names.
    pub fn new(group: impl Into<String>, instance: impl Into<String>, topics: Vec<String>) -> Self {
        Self {
            group: group.into(),
            instance: instance.into(),
            topics,
            session_timeout: Duration::from_secs(30),
            batch: BatchLimits::default(),
            queued_batches: 1,
            offsets_timeout: Duration::from_secs(30),
            revoke_timeout: Duration::from_secs(10),
        }
    }

    /// The client library's options.
    pub(crate) fn client_config(&self, kafka: &KafkaSettings) -> Result<ClientConfig, MessagingError> {
        let named = [("group", &self.group), ("instance", &self.instance)];
        if let Some((name, _)) = named.iter().find(|(_, value)| value.is_empty()) {
            return Err(MessagingError::Setting(format!("consumer {name} is empty: give it a stable name")));
        }
        if self.topics.is_empty() {
            return Err(MessagingError::Setting(format!("consumer {} has no topics", self.group)));
        }
        let mut config = kafka.client_config()?;
        config
            .set("group.id", &self.group)
            .set("group.instance.id", &self.instance)
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", self.session_timeout.as_millis().to_string())
            .set("heartbeat.interval.ms", (self.session_timeout / 6).as_millis().to_string())
            // Offsets live in the database, and one that does not fit is a fault, not a reason to start elsewhere.
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("check.crcs", "true")
            .set("allow.auto.create.topics", "false")
            // The default holds fetching back for a second once the local queue is full, which starves a fast reader.
            .set("fetch.queue.backoff.ms", "20")
            .set("queued.max.messages.kbytes", "16384");
        Ok(config)
    }
}
