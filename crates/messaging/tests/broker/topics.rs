//! Making and checking topics.

use gpuledger_messaging::{MessagingError, Replication, check_topics, ensure_topics, manifest, watermarks};

use crate::support::{bootstrap, produce, settings, spec, topic};

#[tokio::test]
async fn the_manifest_can_be_made_twice_and_then_holds() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let specs = manifest(&kafka);
    let before = check_topics(&kafka, &specs, Replication::SINGLE).await.unwrap_err();
    assert_eq!(before.to_string().matches("does not exist").count(), specs.len(), "{before}");
    ensure_topics(&kafka, &specs, Replication::SINGLE).await.unwrap();
    ensure_topics(&kafka, &specs, Replication::SINGLE).await.unwrap();
    check_topics(&kafka, &specs, Replication::SINGLE).await.unwrap();
}

#[tokio::test]
async fn every_difference_between_cluster_and_manifest_is_named() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    topic(&kafka, "facts", 2).await;
    let mut wanted = spec(&kafka, "facts", 3);
    wanted.retention_ms *= 2;
    wanted.max_message_bytes *= 2;
    let strict = Replication { factor: 3, min_in_sync: 2 };
    let Err(MessagingError::Topics(faults)) = check_topics(&kafka, &[wanted], strict).await else {
        panic!("a different topic passed the check")
    };
    for part in [
        "2 partitions, must have 3",
        "1 replicas",
        "retention.ms",
        "max.message.bytes",
        "min.insync.replicas",
    ] {
        assert!(faults.iter().any(|fault| fault.contains(part)), "{part} is not in {faults:#?}");
    }
    assert_eq!(faults.len(), 5, "{faults:#?}");
}

#[tokio::test]
async fn watermarks_count_the_records() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 4).await;
    produce(&kafka, &name, 1000).await;
    let marks = watermarks(&kafka, &[name]).await.unwrap();
    assert_eq!(marks.len(), 4);
    assert_eq!(marks.values().map(|mark| mark.high - mark.low).sum::<i64>(), 1000);
}
