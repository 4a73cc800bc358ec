//! Which cluster, which topic: the names an offset is meaningless without.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gpuledger_topic_ids::topic_ids;
use rdkafka::client::{Client, ClientContext};

use crate::error::MessagingError;

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Topic name, with its prefix.
    pub topic: Arc<str>,
    /// Number, from 0.
    pub partition: i32,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// What makes a topic this topic: the cluster's id and the topic's id, both as Kafka's own tools print them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicIdentity {
    /// Id of the cluster.
    pub cluster_id: Arc<str>,
    /// Id of the topic; a topic made again under the same name has another.
    pub topic_id: Arc<str>,
}

impl fmt::Display for TopicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {} topic {}", self.cluster_id, self.topic_id)
    }
}

/// Identities of the topics, by name, from the live cluster. Blocks for up to twice `timeout`.
pub(crate) fn identities<C: ClientContext>(
    client: &Client<C>,
    bootstrap: &str,
    topics: &[&str],
    timeout: Duration,
) -> Result<BTreeMap<String, TopicIdentity>, MessagingError> {
    if topics.is_empty() {
        return Ok(BTreeMap::new());
    }
    let cluster: Arc<str> = client
        .fetch_cluster_id(timeout)
        .ok_or_else(|| MessagingError::NoCluster { bootstrap: bootstrap.to_owned(), waited: timeout })?
        .into();
    let ids = topic_ids(client, topics, timeout)?;
    let pair = |(name, id): (String, String)| {
        (name, TopicIdentity { cluster_id: cluster.clone(), topic_id: id.into() })
    };
    Ok(ids.into_iter().map(pair).collect())
}
