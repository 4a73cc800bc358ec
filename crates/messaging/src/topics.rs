//! The topic manifest: what must exist, making it, and checking the live cluster against it.
//!
//! Brokers must not create topics on their own (`auto.create.topics.enable=false`): a misspelt name would become a
//! topic with one partition and a week of retention.

mod admin;

pub(crate) use admin::blocking;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::admin::AdminClient;
use rdkafka::client::Client;
use serde::Deserialize;

use crate::client::Logging;
use crate::error::MessagingError;
use crate::identity::Partition;
use crate::settings::KafkaSettings;

/// How long one request to the cluster may take.
pub(crate) const REQUEST: Duration = Duration::from_secs(30);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const MEBIBYTE: i32 = 1024 * 1024;

/// The product's topics (contract, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Windows of telemetry; key: node.
    Telemetry,
    /// Facts about devices and allocations; key: GPU or allocation.
    Facts,
    /// Work reported by gateways; key: pool.
    Work,
    /// Signals out and their acknowledgements; key: tenant.
    Signals,
    /// Records that could not be applied.
    Parked,
}

impl Topic {
    /// All topics, in the contract's order.
    pub const ALL: [Self; 5] = [Self::Telemetry, Self::Facts, Self::Work, Self::Signals, Self::Parked];

    /// Public name, without a prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Telemetry => "gpuledger.telemetry.v1",
            Self::Facts => "gpuledger.facts.v1",
            Self::Work => "gpuledger.work.v1",
            Self::Signals => "gpuledger.signals.v1",
            Self::Parked => "gpuledger.parked.v1",
        }
    }

    /// Partitions: fixed for the life of `v1`, since the key decides the partition.
    fn partitions(self) -> i32 {
        match self {
            Self::Telemetry => 24,
            Self::Facts | Self::Work => 12,
            Self::Signals | Self::Parked => 3,
        }
    }

    /// Days kept: longer than the longest outage of the ledger that must be survived without loss.
    fn retention_days(self) -> i64 {
        match self {
            Self::Telemetry | Self::Signals => 14,
            Self::Facts | Self::Work => 30,
            Self::Parked => 90,
        }
    }

    /// Largest record: a snapshot of a large source is the largest fact; a parked record holds any of them and why.
    fn max_message_bytes(self) -> i32 {
        match self {
            Self::Telemetry | Self::Facts | Self::Work | Self::Signals => 4 * MEBIBYTE,
            Self::Parked => 5 * MEBIBYTE,
        }
    }
}

impl KafkaSettings {
    /// Name of a topic on this cluster, with the prefix.
    pub fn topic(&self, topic: Topic) -> String {
        format!("{}{}", self.topic_prefix, topic.name())
    }
}

/// What a topic must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// Name, with its prefix.
    pub name: String,
    /// Number of partitions, exactly.
    pub partitions: i32,
    /// Milliseconds records are kept, at least.
    pub retention_ms: i64,
    /// Largest record in bytes, at least.
    pub max_message_bytes: i32,
}

/// The product's topics as they must exist on this cluster.
pub fn manifest(kafka: &KafkaSettings) -> Vec<TopicSpec> {
    let spec = |topic: Topic| TopicSpec {
        name: kafka.topic(topic),
        partitions: topic.partitions(),
        retention_ms: topic.retention_days() * DAY_MS,
        max_message_bytes: topic.max_message_bytes(),
    };
    Topic::ALL.into_iter().map(spec).collect()
}

/// Copies of each partition.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Replication {
    /// Brokers that hold a partition.
    pub factor: i32,
    /// Of them, how many must have a record before it is acknowledged.
    pub min_in_sync: i32,
}

impl Default for Replication {
    /// Survives the loss of one broker without loss of records.
    fn default() -> Self {
        Self { factor: 3, min_in_sync: 2 }
    }
}

impl Replication {
    /// One broker, as on a developer's machine.
    pub const SINGLE: Self = Self { factor: 1, min_in_sync: 1 };
}

/// Oldest and next offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Oldest offset kept.
    pub low: i64,
    /// Offset the next record will get.
    pub high: i64,
}

/// Makes the topics that are missing, then checks all of them. Existing topics are never altered.
///
/// # Errors
/// [`MessagingError::Topics`] when a live topic is not what its specification says; otherwise why it could not be asked.
pub async fn ensure_topics(
    kafka: &KafkaSettings,
    specs: &[TopicSpec],
    replication: Replication,
) -> Result<(), MessagingError> {
    let client = admin(kafka)?;
    admin::create(&client, specs, replication).await?;
    admin::check(&client, specs, replication).await
}

/// Checks the live topics; changes nothing.
///
/// # Errors
/// As [`ensure_topics`].
pub async fn check_topics(
    kafka: &KafkaSettings,
    specs: &[TopicSpec],
    replication: Replication,
) -> Result<(), MessagingError> {
    admin::check(&admin(kafka)?, specs, replication).await
}

/// Watermarks of every partition of the topics (full names), for lag and for knowing that all has been read.
///
/// # Errors
/// Why the cluster could not be asked, or a topic that does not exist.
pub async fn watermarks(
    kafka: &KafkaSettings,
    topics: &[String],
) -> Result<BTreeMap<Partition, Watermarks>, MessagingError> {
    let client = admin(kafka)?;
    let topics = topics.to_vec();
    admin::blocking(move || admin::watermarks(client.inner(), &topics)).await
}

/// Watermarks of one partition. Blocks for up to `timeout`.
pub(crate) fn partition_watermarks<C: rdkafka::ClientContext>(
    client: &Client<C>,
    partition: &Partition,
    timeout: Duration,
) -> Result<Watermarks, MessagingError> {
    let (low, high) = client
        .fetch_watermarks(&partition.topic, partition.partition, timeout)
        .map_err(MessagingError::kafka(format!("read the watermarks of {partition}")))?;
    Ok(Watermarks { low, high })
}

pub(crate) fn admin(kafka: &KafkaSettings) -> Result<Arc<AdminClient<Logging>>, MessagingError> {
    let client = kafka.client_config()?.create_with_context(Logging);
    client
        .map(Arc::new)
        .map_err(MessagingError::kafka(format!("make an admin client for {}", kafka.bootstrap)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_holds_the_contracts_topics_behind_the_prefix() {
        let mut kafka = KafkaSettings::plaintext("b:1");
        kafka.topic_prefix = "t1.".to_owned();
        let names: Vec<String> = manifest(&kafka).into_iter().map(|spec| spec.name).collect();
        assert_eq!(
            names,
            [
                "t1.gpuledger.telemetry.v1",
                "t1.gpuledger.facts.v1",
                "t1.gpuledger.work.v1",
                "t1.gpuledger.signals.v1",
                "t1.gpuledger.parked.v1"
            ]
        );
    }

    #[test]
    fn names_are_fit_for_kafka_and_its_metrics() {
        for topic in Topic::ALL {
            let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
            assert!(topic.name().chars().all(fit), "{}: only lower case, digits and dots", topic.name());
        }
    }
}
