//! Several consumers of one group: nothing lost, nothing doubled, whoever comes and goes.

use std::time::{Duration, Instant};

use gpuledger_messaging::Batch;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Store, bootstrap, member, produce, settings, start_member, topic, work};

const RECORDS: u64 = 5000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_comes_and_one_that_leaves_lose_and_double_nothing() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 8).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let pace = Duration::from_millis(20);
    let (leave, stay) = (CancellationToken::new(), CancellationToken::new());
    let one = start_member(&kafka, member(&kafka, "one", &name), &store);
    let one = tokio::spawn(work(one, store.clone(), pace, leave.clone()));
    store.wait_for(500).await;
    let two = start_member(&kafka, member(&kafka, "two", &name), &store);
    let two = tokio::spawn(work(two, store.clone(), pace, stay.clone()));
    store.wait_for(2500).await;
    leave.cancel();
    one.await.unwrap().unwrap().close(PATIENCE).await.unwrap();
    store.wait_for(RECORDS).await;
    stay.cancel();
    two.await.unwrap().unwrap().close(PATIENCE).await.unwrap();
    store.assert_exactly_once(RECORDS);
}

/// A member that stops in the middle of a batch, whose effects never commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_dies_inside_a_batch_loses_and_doubles_nothing() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 4).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let mut dying = start_member(&kafka, member(&kafka, "dying", &name), &store);
    for _ in 0..5 {
        let batch = tokio::time::timeout(PATIENCE, dying.next()).await.unwrap().unwrap();
        store.apply(&batch).unwrap();
    }
    let open: Batch = dying.next().await.unwrap();
    let stop = CancellationToken::new();
    let heir = start_member(&kafka, member(&kafka, "heir", &name), &store);
    let heir = tokio::spawn(work(heir, store.clone(), Duration::ZERO, stop.clone()));
    drop(open);
    drop(dying);
    store.wait_for(RECORDS).await;
    stop.cancel();
    heir.await.unwrap().unwrap().close(PATIENCE).await.unwrap();
    store.assert_exactly_once(RECORDS);
}

/// A member too slow for a rebalance: its batch is withdrawn, the fence keeps it from doubling what its heir applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_outstays_a_rebalance_is_withdrawn_and_fenced() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 2).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let mut slow = member(&kafka, "slow", &name);
    slow.revoke_timeout = Duration::from_millis(300);
    // One batch with records of both partitions, so that whichever moves is in it.
    slow.batch.messages = 4000;
    slow.batch.wait = Duration::from_secs(2);
    let mut slow = start_member(&kafka, slow, &store);
    let open = tokio::time::timeout(PATIENCE, slow.next()).await.unwrap().unwrap();
    assert_eq!(open.spans.len(), 2, "{:?}", open.spans);
    let stop = CancellationToken::new();
    let heir = start_member(&kafka, member(&kafka, "heir", &name), &store);
    let heir = tokio::spawn(work(heir, store.clone(), Duration::ZERO, stop.clone()));
    tokio::time::timeout(PATIENCE, open.withdrawn()).await.expect("a partition of the open batch has moved");
    store.wait_for(100).await;
    store.apply(&open).expect_err("the heir has moved the offset on");
    slow.rewind(open);
    let slow = tokio::spawn(work(slow, store.clone(), Duration::ZERO, stop.clone()));
    store.wait_for(RECORDS).await;
    stop.cancel();
    for member in [slow, heir] {
        member.await.unwrap().unwrap().close(PATIENCE).await.unwrap();
    }
    store.assert_exactly_once(RECORDS);
}

/// An ordinary revocation waits for the open batch, so that it commits and nothing is read twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_waits_for_the_open_batch() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 2).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let mut first = start_member(&kafka, member(&kafka, "first", &name), &store);
    let open = tokio::time::timeout(PATIENCE, first.next()).await.unwrap().unwrap();
    let second = start_member(&kafka, member(&kafka, "second", &name), &store);
    let began = Instant::now();
    // The second member joins within this time, and must not have been given what is open here.
    while began.elapsed() < Duration::from_secs(4) {
        let theirs = second.positions();
        let shared = open.spans.iter().any(|span| theirs.contains_key(&span.partition));
        assert!(!shared, "a partition of an open batch was given away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!open.is_withdrawn());
    store.apply(&open).expect("the batch commits in spite of the rebalance");
    drop(open);
    let stop = CancellationToken::new();
    let both =
        [first, second].map(|c| tokio::spawn(work(c, store.clone(), Duration::from_millis(5), stop.clone())));
    store.wait_for(RECORDS).await;
    stop.cancel();
    for member in both {
        let member = member.await.unwrap().unwrap();
        assert_eq!(member.positions().len(), 1, "each member ends with one of two partitions");
        member.close(PATIENCE).await.unwrap();
    }
    store.assert_exactly_once(RECORDS);
}

/// Every third transaction fails and is rolled back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rewinding_again_and_again_reads_everything_once() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 4).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let mut settings = member(&kafka, "one", &name);
    settings.batch.messages = 500;
    let mut consumer = start_member(&kafka, settings, &store);
    let (mut tried, mut rewound) = (0, 0);
    while store.count() < RECORDS {
        let batch = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
        tried += 1;
        if tried % 3 == 0 {
            rewound += 1;
            consumer.rewind(batch);
        } else {
            store.apply(&batch).expect("after a rewind the spans follow the stored offsets");
        }
    }
    assert!(rewound >= 4, "only {rewound} of {tried} batches were rewound");
    store.assert_exactly_once(RECORDS);
    consumer.close(PATIENCE).await.unwrap();
}

/// A caller slower than Kafka: the queue fills, partitions pause, and nothing is lost by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_caller_makes_reading_pause_and_gets_everything() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 4).await;
    produce(&kafka, &name, RECORDS).await;
    let store = Store::default();
    let mut settings = member(&kafka, "one", &name);
    settings.queued_batches = 1;
    let mut consumer = start_member(&kafka, settings, &store);
    let first = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ahead: i64 = consumer.positions().values().sum();
    // One open, one queued, one forming.
    assert!(ahead <= 300, "{ahead} records were read ahead of a caller that takes none");
    store.apply(&first).unwrap();
    drop(first);
    while store.count() < RECORDS {
        let batch = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
        store.apply(&batch).unwrap();
    }
    store.assert_exactly_once(RECORDS);
    consumer.close(PATIENCE).await.unwrap();
}
