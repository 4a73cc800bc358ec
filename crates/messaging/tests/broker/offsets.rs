//! Stored offsets that do not fit the live topic stop the consumer; nothing is reset.

use std::time::Duration;

use gpuledger_messaging::{Consumer, KafkaSettings, MessagingError, TopicIdentity, check_offsets};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;

use crate::support::{PATIENCE, Store, bootstrap, member, produce, settings, start_member, topic};

/// Reads `count` records into a new store and closes the consumer.
async fn read(kafka: &KafkaSettings, name: &str, count: u64) -> Store {
    let store = Store::default();
    let mut consumer = start_member(kafka, member(kafka, "one", name), &store);
    while store.count() < count {
        let batch = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
        store.apply(&batch).unwrap();
    }
    consumer.close(PATIENCE).await.unwrap();
    store
}

/// The error that ends a consumer.
async fn end(mut consumer: Consumer) -> MessagingError {
    let fault = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap_err();
    let after = consumer.next().await.unwrap_err();
    assert!(matches!(after, MessagingError::Stopped), "{after}");
    consumer.close(PATIENCE).await.unwrap();
    fault
}

fn admin(kafka: &KafkaSettings) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", &kafka.bootstrap).create().unwrap()
}

#[tokio::test]
async fn a_restart_goes_on_where_the_store_says() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 3).await;
    produce(&kafka, &name, 500).await;
    let store = read(&kafka, &name, 500).await;
    let producer = gpuledger_messaging::Producer::new(&kafka, &Default::default()).unwrap();
    producer.publish(crate::support::records(&name, 600), 500, |_| ()).await.unwrap();
    let mut consumer = start_member(&kafka, member(&kafka, "one", &name), &store);
    while store.count() < 600 {
        let batch = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
        store.apply(&batch).expect("the first batch follows the stored offset");
    }
    store.assert_exactly_once(600);
    consumer.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_topic_made_again_under_its_name_is_refused() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 50).await;
    let store = read(&kafka, &name, 50).await;
    let deleted = admin(&kafka).delete_topics(&[&name], &AdminOptions::new()).await.unwrap();
    assert!(deleted.iter().all(Result::is_ok), "{deleted:?}");
    topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 80).await;
    let fault = end(start_member(&kafka, member(&kafka, "two", &name), &store)).await;
    assert!(matches!(fault, MessagingError::ForeignOffset { .. }), "{fault}");
    assert_eq!(store.count(), 50, "no record of the new topic took effect");
}

#[tokio::test]
async fn a_restored_database_of_another_cluster_is_refused() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 50).await;
    let store = read(&kafka, &name, 50).await;
    store.tamper(|stored| {
        let topic_id = stored.identity.topic_id.clone();
        stored.identity = TopicIdentity { cluster_id: "elsewhere".into(), topic_id };
    });
    let fault = end(start_member(&kafka, member(&kafka, "two", &name), &store)).await;
    assert!(fault.to_string().contains("belongs to cluster elsewhere topic"), "{fault}");
}

#[tokio::test]
async fn an_offset_past_the_end_is_refused() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 50).await;
    let store = read(&kafka, &name, 50).await;
    store.tamper(|stored| stored.next_offset += 1);
    let mut settings = member(&kafka, "two", &name);
    settings.offsets_timeout = Duration::from_secs(2);
    let fault = end(start_member(&kafka, settings, &store)).await;
    assert!(
        fault.to_string().contains("offset 51") && fault.to_string().contains("outside 0..=50"),
        "{fault}"
    );
}

#[tokio::test]
async fn records_deleted_before_they_were_read_are_an_error() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 50).await;
    let store = read(&kafka, &name, 50).await;
    store.tamper(|stored| stored.next_offset = 10);
    let mut gone = rdkafka::TopicPartitionList::new();
    gone.add_partition_offset(&name, 0, rdkafka::Offset::Offset(30)).unwrap();
    admin(&kafka).delete_records(&gone, &AdminOptions::new()).await.unwrap();
    let fault = end(start_member(&kafka, member(&kafka, "two", &name), &store)).await;
    assert!(
        fault.to_string().contains("offset 10") && fault.to_string().contains("outside 30..=50"),
        "{fault}"
    );
}

#[tokio::test]
async fn stored_offsets_are_compared_before_anything_is_read() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 50).await;
    let store = read(&kafka, &name, 50).await;
    let said = async |stored| {
        let checks = check_offsets(&kafka, stored).await.unwrap();
        let one = checks.into_iter().next().unwrap();
        (
            one.fault.as_ref().map(ToString::to_string).unwrap_or_default(),
            one.is_passing(),
            one.live.is_some(),
        )
    };
    assert_eq!(said(store.offsets()).await, (String::new(), false, true));
    store.tamper(|stored| stored.next_offset = 51);
    let (past_the_end, passing, _) = said(store.offsets()).await;
    assert!(
        past_the_end.contains("offset 51") && past_the_end.contains("outside 0..=50") && passing,
        "{past_the_end}"
    );
    let mut gone = rdkafka::TopicPartitionList::new();
    gone.add_partition_offset(&name, 0, rdkafka::Offset::Offset(30)).unwrap();
    admin(&kafka).delete_records(&gone, &AdminOptions::new()).await.unwrap();
    store.tamper(|stored| stored.next_offset = 10);
    let (deleted, passing, _) = said(store.offsets()).await;
    assert!(deleted.contains("outside 30..=50") && !passing, "{deleted}");
    let elsewhere: std::collections::BTreeMap<_, _> = store
        .offsets()
        .into_iter()
        .map(|(at, stored)| {
            (gpuledger_messaging::Partition { topic: format!("{}no", at.topic).into(), ..at }, stored)
        })
        .collect();
    let (missing, _, there) = said(elsewhere).await;
    assert!(missing.contains("has no such partition") && !there, "{missing}");
    let deleted = admin(&kafka).delete_topics(&[&name], &AdminOptions::new()).await.unwrap();
    assert!(deleted.iter().all(Result::is_ok), "{deleted:?}");
    topic(&kafka, "facts", 1).await;
    produce(&kafka, &name, 80).await;
    let (foreign, passing, _) = said(store.offsets()).await;
    assert!(foreign.contains("belongs to cluster") && !passing, "{foreign}");
    assert!(check_offsets(&kafka, std::collections::BTreeMap::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_store_that_does_not_answer_ends_the_consumer_in_time() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    let mut settings = member(&kafka, "one", &name);
    settings.offsets_timeout = Duration::from_secs(1);
    let silent = |_| -> gpuledger_messaging::OffsetsFuture { Box::pin(std::future::pending()) };
    let fault = end(Consumer::start(&kafka, settings, silent).unwrap()).await;
    assert!(matches!(fault, MessagingError::Offsets { .. }), "{fault}");
}
