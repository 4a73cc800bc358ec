//! Stored offsets compared with the live cluster, before anything is read: after a restore they may be of another time, or of another cluster.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::client::{Client, ClientContext};

use super::start::{StoredOffset, decide};
use crate::error::MessagingError;
use crate::identity::{Partition, TopicIdentity, identities};
use crate::settings::KafkaSettings;
use crate::topics::{REQUEST, Watermarks, admin, blocking, partition_watermarks};

/// One stored offset and what the cluster says of its partition.
#[derive(Debug)]
pub struct OffsetCheck {
    /// Which partition.
    pub partition: Partition,
    /// What is stored.
    pub stored: StoredOffset,
    /// What the cluster has; none: no such topic or partition.
    pub live: Option<(TopicIdentity, Watermarks)>,
    /// Why reading cannot go on there; none: it can.
    pub fault: Option<MessagingError>,
}

impl OffsetCheck {
    /// Whether looking again may help: a broker that has just restarted may not have found its end yet.
    pub fn is_passing(&self) -> bool {
        matches!(self.fault, Some(MessagingError::OffsetOutOfRange { offset, high, .. }) if offset > high)
    }
}

/// Compares stored offsets with the cluster, in order of topic and partition. Changes nothing, and makes no topic.
///
/// # Errors
/// Why the cluster could not be asked.
pub async fn check_offsets(
    kafka: &KafkaSettings,
    stored: BTreeMap<Partition, StoredOffset>,
) -> Result<Vec<OffsetCheck>, MessagingError> {
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let client = admin(kafka)?;
    let bootstrap = kafka.bootstrap.clone();
    blocking(move || checks(client.inner(), &bootstrap, stored)).await
}

fn checks<C: ClientContext>(
    client: &Client<C>,
    bootstrap: &str,
    stored: BTreeMap<Partition, StoredOffset>,
) -> Result<Vec<OffsetCheck>, MessagingError> {
    let there = partitions(client)?;
    let topics: BTreeSet<&str> = stored.keys().filter(|p| there.contains(*p)).map(|p| &*p.topic).collect();
    let topics: Vec<&str> = topics.into_iter().collect();
    let identities = identities(client, bootstrap, &topics, REQUEST)?;
    let mut checks = Vec::with_capacity(stored.len());
    for (partition, stored) in stored {
        let live = match identities.get(&*partition.topic).filter(|_| there.contains(&partition)) {
            Some(identity) => Some((identity.clone(), partition_watermarks(client, &partition, REQUEST)?)),
            None => None,
        };
        let fault = match &live {
            Some((identity, marks)) => decide(&partition, Some(&stored), identity, *marks).err(),
            None => Some(MessagingError::MissingPartition {
                partition: partition.clone(),
                stored: stored.identity.clone(),
                bootstrap: bootstrap.to_owned(),
            }),
        };
        checks.push(OffsetCheck { partition, stored, live, fault });
    }
    Ok(checks)
}

/// All partitions of the cluster. Asking for a topic by name might make it.
fn partitions<C: ClientContext>(client: &Client<C>) -> Result<BTreeSet<Partition>, MessagingError> {
    let metadata =
        client.fetch_metadata(None, REQUEST).map_err(MessagingError::kafka("read the cluster's metadata"))?;
    let mut all = BTreeSet::new();
    for topic in metadata.topics().iter().filter(|topic| topic.error().is_none()) {
        let name: std::sync::Arc<str> = topic.name().into();
        all.extend(topic.partitions().iter().map(|p| Partition { topic: name.clone(), partition: p.id() }));
    }
    Ok(all)
}
