//! Requests to the cluster's controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, OwnedResourceSpecifier, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::Client;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataTopic;

use super::{REQUEST, Replication, TopicSpec, Watermarks, partition_watermarks};
use crate::client::Logging;
use crate::error::MessagingError;
use crate::identity::Partition;

/// How long a new topic may take until every broker knows it.
const SPREAD: Duration = Duration::from_secs(30);
const SPREAD_PAUSE: Duration = Duration::from_millis(100);

/// Creates what is missing and waits until the cluster shows it.
pub(super) async fn create(
    client: &Arc<AdminClient<Logging>>,
    specs: &[TopicSpec],
    replication: Replication,
) -> Result<(), MessagingError> {
    let values: Vec<[String; 3]> = specs
        .iter()
        .map(|s| {
            [s.retention_ms.to_string(), s.max_message_bytes.to_string(), replication.min_in_sync.to_string()]
        })
        .collect();
    let new: Vec<NewTopic<'_>> = specs
        .iter()
        .zip(&values)
        .map(|(spec, [retention, bytes, in_sync])| {
            NewTopic::new(&spec.name, spec.partitions, TopicReplication::Fixed(replication.factor))
                .set("cleanup.policy", "delete")
                .set("retention.ms", retention)
                .set("max.message.bytes", bytes)
                .set("min.insync.replicas", in_sync)
        })
        .collect();
    let options = AdminOptions::new().request_timeout(Some(REQUEST)).operation_timeout(Some(REQUEST));
    let answers =
        client.create_topics(&new, &options).await.map_err(MessagingError::kafka("create topics"))?;
    let refused: Vec<(String, RDKafkaErrorCode)> = answers
        .into_iter()
        .filter_map(Result::err)
        .filter(|(_, code)| *code != RDKafkaErrorCode::TopicAlreadyExists)
        .collect();
    if let Some((_, code)) = refused.iter().find(|(_, code)| is_passing(*code)) {
        let doing = "create topics".to_owned();
        return Err(MessagingError::Kafka { doing, source: KafkaError::AdminOp(*code) });
    }
    let faults: Vec<String> =
        refused.into_iter().map(|(name, code)| format!("{name}: could not be created: {code}")).collect();
    if faults.is_empty() {
        wait_until_known(client, specs).await
    } else {
        Err(MessagingError::Topics(faults))
    }
}

/// What a cluster answers while it starts or elects.
fn is_passing(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::NotController
            | RDKafkaErrorCode::RequestTimedOut
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::BrokerNotAvailable
    )
}

/// A created topic has leaders only a moment later, and a consumer that subscribes before that waits for minutes.
async fn wait_until_known(
    client: &Arc<AdminClient<Logging>>,
    specs: &[TopicSpec],
) -> Result<(), MessagingError> {
    let ready = async {
        loop {
            let live = partitions(client, specs).await?;
            if specs
                .iter()
                .all(|spec| live.get(&spec.name).is_some_and(|topic| topic.led == topic.partitions))
            {
                return Ok(());
            }
            tokio::time::sleep(SPREAD_PAUSE).await;
        }
    };
    let late = || MessagingError::Topics(vec![format!("new topics have no leaders after {SPREAD:?}")]);
    tokio::time::timeout(SPREAD, ready).await.map_err(|_| late())?
}

/// What the metadata says of a topic.
struct Live {
    partitions: i32,
    led: i32,
    fewest_replicas: i32,
}

impl Live {
    fn of(topic: &MetadataTopic) -> Self {
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let partitions = topic.partitions();
        Self {
            partitions: count(partitions.len()),
            led: count(partitions.iter().filter(|p| p.leader() >= 0).count()),
            fewest_replicas: count(partitions.iter().map(|p| p.replicas().len()).min().unwrap_or(0)),
        }
    }
}

async fn partitions(
    client: &Arc<AdminClient<Logging>>,
    specs: &[TopicSpec],
) -> Result<BTreeMap<String, Live>, MessagingError> {
    let client = client.clone();
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    blocking(move || {
        let metadata = client
            .inner()
            .fetch_metadata(None, REQUEST)
            .map_err(MessagingError::kafka("read the cluster's metadata"))?;
        let wanted =
            |topic: &&MetadataTopic| topic.error().is_none() && names.iter().any(|name| name == topic.name());
        Ok(metadata.topics().iter().filter(wanted).map(|t| (t.name().to_owned(), Live::of(t))).collect())
    })
    .await
}

/// Compares every topic with its specification and names all faults.
pub(super) async fn check(
    client: &Arc<AdminClient<Logging>>,
    specs: &[TopicSpec],
    replication: Replication,
) -> Result<(), MessagingError> {
    let live = partitions(client, specs).await?;
    let configs = configs(client, specs).await?;
    let mut faults = Vec::new();
    for spec in specs {
        match live.get(&spec.name) {
            Some(topic) => {
                shape_faults(spec, topic, replication, &mut faults);
                config_faults(spec, configs.get(&spec.name), replication, &mut faults);
            }
            None => faults.push(format!("{}: does not exist", spec.name)),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(MessagingError::Topics(faults)) }
}

fn shape_faults(spec: &TopicSpec, live: &Live, replication: Replication, faults: &mut Vec<String>) {
    if live.partitions != spec.partitions {
        faults.push(format!(
            "{}: has {} partitions, must have {}: the number is fixed for the life of v1",
            spec.name, live.partitions, spec.partitions
        ));
    }
    if live.fewest_replicas < replication.factor {
        faults.push(format!(
            "{}: a partition has {} replicas, must have {}",
            spec.name, live.fewest_replicas, replication.factor
        ));
    }
}

fn config_faults(
    spec: &TopicSpec,
    live: Option<&BTreeMap<String, String>>,
    replication: Replication,
    faults: &mut Vec<String>,
) {
    let value = |name: &str| live.and_then(|values| values.get(name)).map_or("", String::as_str);
    let policy = value("cleanup.policy");
    if policy != "delete" {
        faults.push(format!("{}: cleanup.policy is \"{policy}\", must be \"delete\"", spec.name));
    }
    let least = [
        ("retention.ms", spec.retention_ms),
        ("max.message.bytes", i64::from(spec.max_message_bytes)),
        ("min.insync.replicas", i64::from(replication.min_in_sync)),
    ];
    for (name, least) in least {
        let text = value(name);
        // -1 is Kafka's word for "no limit".
        let enough = text.parse().is_ok_and(|live: i64| live >= least || live == -1);
        if !enough {
            faults.push(format!("{}: {name} is \"{text}\", must be at least {least}", spec.name));
        }
    }
}

async fn configs(
    client: &Arc<AdminClient<Logging>>,
    specs: &[TopicSpec],
) -> Result<BTreeMap<String, BTreeMap<String, String>>, MessagingError> {
    let wanted: Vec<ResourceSpecifier<'_>> =
        specs.iter().map(|spec| ResourceSpecifier::Topic(&spec.name)).collect();
    let options = AdminOptions::new().request_timeout(Some(REQUEST));
    let answers = client
        .describe_configs(&wanted, &options)
        .await
        .map_err(MessagingError::kafka("read topic configurations"))?;
    let mut found = BTreeMap::new();
    for answer in answers {
        match answer {
            Ok(ConfigResource { specifier: OwnedResourceSpecifier::Topic(name), entries }) => {
                found.insert(name, entries.into_iter().filter_map(|e| Some((e.name, e.value?))).collect());
            }
            Ok(_) => {}
            // Reported as missing by the caller.
            Err(RDKafkaErrorCode::UnknownTopicOrPartition) => {}
            Err(code) => {
                let doing = "read topic configurations".to_owned();
                return Err(MessagingError::Kafka { doing, source: KafkaError::AdminOp(code) });
            }
        }
    }
    Ok(found)
}

/// Watermarks of all partitions of the topics. Blocks.
pub(super) fn watermarks(
    client: &Client<Logging>,
    topics: &[String],
) -> Result<BTreeMap<Partition, Watermarks>, MessagingError> {
    let mut all = BTreeMap::new();
    for name in topics {
        let metadata = client
            .fetch_metadata(Some(name), REQUEST)
            .map_err(MessagingError::kafka(format!("read the metadata of {name}")))?;
        let topic = metadata.topics().iter().find(|topic| topic.name() == name && topic.error().is_none());
        let topic = topic.ok_or_else(|| MessagingError::Topics(vec![format!("{name}: does not exist")]))?;
        for partition in topic.partitions() {
            let partition = Partition { topic: name.as_str().into(), partition: partition.id() };
            let marks = partition_watermarks(client, &partition, REQUEST)?;
            all.insert(partition, marks);
        }
    }
    Ok(all)
}

/// Runs blocking calls of the library away from the runtime's own threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MessagingError> + Send + 'static,
) -> Result<T, MessagingError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| MessagingError::Stopped)?
}
