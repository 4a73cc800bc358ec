use std::thread;

use super::*;
use crate::consumer::batch::Span;
use crate::identity::TopicIdentity;

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(30);

fn partition(number: i32) -> Partition {
    Partition { topic: "facts".into(), partition: number }
}

fn identity() -> TopicIdentity {
    TopicIdentity { cluster_id: "c".into(), topic_id: "t".into() }
}

fn message(number: i32, offset: i64) -> Message {
    Message {
        partition: partition(number),
        offset,
        timestamp_ms: None,
        key: None,
        headers: Vec::new(),
        payload: Some(vec![0; 10]),
    }
}

fn start(number: i32, stored: Option<i64>) -> Start {
    Start { partition: partition(number), identity: identity(), stored, next: stored.unwrap_or(0) }
}

/// Two partitions assigned, the second with a stored offset of 5; batches of two messages; one queued batch.
fn assigned() -> Arc<HandOff> {
    let mut settings = ConsumerSettings::new("g", "i", vec!["facts".to_owned()]);
    settings.batch.messages = 2;
    settings.batch.wait = LONG;
    settings.queued_batches = 1;
    let hand_off = Arc::new(HandOff::new(&settings));
    hand_off.assign(vec![start(0, None), start(1, Some(5))]);
    hand_off
}

fn push(hand_off: &HandOff, messages: &[(i32, i64)]) {
    for (number, offset) in messages {
        hand_off.push(message(*number, *offset));
    }
}

/// The next batch, which must be there already.
async fn ready(hand_off: &Arc<HandOff>) -> Batch {
    tokio::time::timeout(LONG, HandOff::next(hand_off)).await.unwrap().unwrap()
}

fn covered(batch: &Batch) -> Vec<(i32, Option<i64>, i64)> {
    let of = |span: &Span| (span.partition.partition, span.expected, span.next);
    batch.spans.iter().map(of).collect()
}

#[tokio::test]
async fn spans_chain_from_the_stored_offset_through_the_batches() {
    let hand_off = assigned();
    push(&hand_off, &[(1, 5), (0, 0)]);
    assert_eq!(hand_off.offer(NOW), Offered::Taken);
    let first = ready(&hand_off).await;
    assert_eq!(covered(&first), [(0, None, 1), (1, Some(5), 6)]);
    push(&hand_off, &[(1, 6), (1, 7)]);
    assert_eq!(hand_off.offer(NOW), Offered::Taken);
    assert_eq!(covered(&ready(&hand_off).await), [(1, Some(6), 8)]);
}

#[test]
fn what_is_not_ours_or_was_read_before_is_not_taken() {
    let hand_off = assigned();
    push(&hand_off, &[(9, 0), (1, 4)]);
    assert!(matches!(hand_off.offer(NOW), Offered::Later(_)));
    assert_eq!(hand_off.positions(), BTreeMap::from([(partition(0), 0), (partition(1), 5)]));
}

#[test]
fn a_full_queue_is_waited_for_and_then_reported() {
    let hand_off = assigned();
    push(&hand_off, &[(0, 0), (0, 1)]);
    assert_eq!(hand_off.offer(NOW), Offered::Taken);
    push(&hand_off, &[(0, 2), (0, 3)]);
    assert_eq!(hand_off.offer(NOW), Offered::Full);
}

#[tokio::test]
async fn a_revocation_takes_a_partition_out_of_every_stage() {
    let hand_off = assigned();
    push(&hand_off, &[(0, 0), (1, 5)]);
    assert_eq!(hand_off.offer(NOW), Offered::Taken);
    push(&hand_off, &[(1, 6), (1, 7)]);
    assert_eq!(hand_off.offer(NOW), Offered::Full);
    hand_off.revoke(&[partition(1)], NOW);
    assert!(
        matches!(hand_off.offer(NOW), Offered::Later(_)),
        "nothing is left to hand over, and nothing to pause for"
    );
    let queued = ready(&hand_off).await;
    assert_eq!(covered(&queued), [(0, None, 1)]);
    assert_eq!(queued.messages.len(), 1);
    assert!(!queued.is_withdrawn());
}

#[tokio::test]
async fn a_revocation_waits_until_the_open_batch_is_finished() {
    let hand_off = assigned();
    push(&hand_off, &[(0, 0), (1, 5)]);
    hand_off.offer(NOW);
    let open = ready(&hand_off).await;
    let revoking = thread::spawn({
        let hand_off = hand_off.clone();
        move || hand_off.revoke(&[partition(1)], LONG)
    });
    thread::sleep(Duration::from_millis(100));
    assert!(!revoking.is_finished());
    assert!(!open.is_withdrawn());
    drop(open);
    revoking.join().unwrap();
}

#[tokio::test]
async fn a_revocation_out_of_patience_withdraws_the_open_batch() {
    let hand_off = assigned();
    push(&hand_off, &[(0, 0), (1, 5)]);
    hand_off.offer(NOW);
    let open = ready(&hand_off).await;
    hand_off.revoke(&[partition(1)], Duration::from_millis(20));
    open.withdrawn().await;
}

#[tokio::test]
async fn a_revocation_of_others_does_not_wait() {
    let hand_off = assigned();
    push(&hand_off, &[(0, 0), (0, 1)]);
    hand_off.offer(NOW);
    let open = ready(&hand_off).await;
    let began = Instant::now();
    hand_off.revoke(&[partition(1)], LONG);
    assert!(began.elapsed() < LONG / 2);
    assert!(!open.is_withdrawn());
}

#[tokio::test]
async fn a_rewind_drops_what_was_read_and_starts_from_the_new_offsets() {
    let hand_off = assigned();
    push(&hand_off, &[(1, 5), (1, 6)]);
    hand_off.offer(NOW);
    let open = ready(&hand_off).await;
    push(&hand_off, &[(1, 7), (1, 8)]);
    hand_off.offer(NOW);
    hand_off.rewind();
    assert!(open.is_withdrawn());
    // The thread may read on until it sees the order.
    push(&hand_off, &[(1, 9), (1, 10)]);
    assert_eq!(hand_off.order(), Order::Rewind);
    hand_off.assign(vec![start(0, None), start(1, Some(5))]);
    hand_off.rewound();
    push(&hand_off, &[(1, 5), (1, 6)]);
    assert_eq!(hand_off.offer(NOW), Offered::Taken);
    assert_eq!(covered(&ready(&hand_off).await), [(1, Some(5), 7)]);
}

#[tokio::test]
async fn the_first_failure_reaches_the_caller_and_then_the_end() {
    let hand_off = assigned();
    hand_off.fail(MessagingError::NoRuntime);
    hand_off.fail(MessagingError::Stopped);
    assert!(matches!(HandOff::next(&hand_off).await, Err(MessagingError::NoRuntime)));
    assert!(matches!(HandOff::next(&hand_off).await, Err(MessagingError::Stopped)));
}

#[tokio::test]
async fn a_waiting_caller_is_woken() {
    let hand_off = assigned();
    let waiting = tokio::spawn({
        let hand_off = hand_off.clone();
        async move { HandOff::next(&hand_off).await.map(|batch| batch.messages.len()) }
    });
    tokio::task::yield_now().await;
    push(&hand_off, &[(0, 0), (0, 1)]);
    hand_off.offer(NOW);
    assert_eq!(tokio::time::timeout(LONG, waiting).await.unwrap().unwrap().unwrap(), 2);
}
