//! Consuming from Kafka: a batch, its effects and its offsets in one transaction; a fence on the stored offset keeps a second owner of the same
//! partition from writing (I-3).

use crate::batch::{Tally, apply_all};
use crate::decide::{OLDEST, SKEW_BOUND_US};
use crate::error::LedgerError;
use crate::incoming::{Arrivals, Incoming, Origin};
use crate::parking::kept_record;
use crate::points::point;
use crate::telemetry::seal;
use crate::unsettled::{AT_ONCE, MOST_WAITING, settle_some};
use gpuledger_books::BooksError;
use gpuledger_domain::time::Instant;
use gpuledger_messaging::{
    Batch, Consumer, ConsumerSettings, KafkaSettings, Message, OffsetsFuture, Partition, StoredOffset,
    TopicIdentity,
};
use gpuledger_storage::{Db, StorageError, Tx, offsets};
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::decode_binary;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// First pause after a failed transaction; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Nothing came for so long: what was accepted as part of a backlog is settled.
const BACKLOG_IS_IN: Duration = Duration::from_millis(300);
/// Batches that are read while one is written: reading takes longer than a core has time for meanwhile.
const READ_AHEAD: usize = 2;
/// How long the client may take to let go at the end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// The server clock.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Consumes until shut down. `told` hears what became of each batch. Batches that fail for a passing reason are rolled back and read again.
///
/// # Errors
/// The consumer ended, or the database says something that trying again does not mend.
pub async fn consume(
    db: &Db,
    kafka: &KafkaSettings,
    settings: ConsumerSettings,
    clock: Clock,
    shutdown: CancellationToken,
    mut told: impl FnMut(Tally),
) -> Result<(), LedgerError> {
    let group = settings.group.clone();
    let mut consumer = Consumer::start(kafka, settings, offset_source(db.clone(), group.clone()))?;
    let mut pause = FIRST_PAUSE;
    // A process that ended may have left some.
    let (mut ahead, mut waiting) = (VecDeque::with_capacity(READ_AHEAD), 1);
    loop {
        let read = match ahead.pop_front() {
            Some(read) => read,
            None => tokio::select! {
                () = shutdown.cancelled() => break,
                batch = consumer.next() => read_ahead(batch?, clock()),
                () = tokio::time::sleep(BACKLOG_IS_IN), if waiting > 0 => {
                    waiting = settle_what_waits(db, waiting).await?;
                    continue;
                }
            },
        };
        let read = read.await.map_err(|why| LedgerError::Block(why.to_string()))??;
        // While one batch is written, the next ones are read.
        let applied = {
            let mut applying = pin!(apply_batch(db, &group, &read, clock()));
            loop {
                tokio::select! {
                    applied = &mut applying => break applied,
                    batch = consumer.next(), if ahead.len() < READ_AHEAD => ahead.push_back(read_ahead(batch?, clock())),
                }
            }
        };
        match applied {
            Ok(tally) => {
                pause = FIRST_PAUSE;
                waiting += tally.unsettled;
                told(tally);
                point("ledger::after-commit");
            }
            Err(error) => {
                if !is_passing(&error) {
                    return Err(error);
                }
                tracing::warn!(%error, "batch rolled back, it is read again");
                // What was read ahead comes again behind it.
                for read in ahead.drain(..) {
                    drop(read.await);
                }
                consumer.rewind(read.batch);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        if shutdown.is_cancelled() {
            break;
        }
        // Whoever settles what waits knows all of it: no more is read while so much does.
        if waiting >= MOST_WAITING {
            waiting = settle_what_waits(db, waiting).await?;
        }
    }
    drop(ahead);
    consumer.close(CLOSE_DEADLINE).await?;
    Ok(())
}

/// Settles all that waits; how much still does, where something that may pass hindered it.
async fn settle_what_waits(db: &Db, waiting: u64) -> Result<u64, LedgerError> {
    loop {
        match settle_some(db, AT_ONCE).await {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, "what waits is settled later");
                return Ok(waiting);
            }
            Err(error) => return Err(error),
        }
    }
}

/// A fence that did not hold means that another consumer has the partition: the answer is to read again from what is stored.
fn is_passing(error: &LedgerError) -> bool {
    match error {
        LedgerError::Storage(error) | LedgerError::Books(BooksError::Storage(error)) => {
            error.is_transient()
                || matches!(error, StorageError::Fenced { .. } | StorageError::Unreachable { .. })
        }
        LedgerError::Books(_)
        | LedgerError::Input { .. }
        | LedgerError::Messaging(_)
        | LedgerError::Archive(_)
        | LedgerError::Block(_)
        | LedgerError::Keys(_)
        | LedgerError::ClockWentBack { .. } => false,
    }
}

fn offset_source(db: Db, group: String) -> impl Fn(Vec<Partition>) -> OffsetsFuture + Send + Sync + 'static {
    move |partitions| {
        let (db, group) = (db.clone(), group.clone());
        Box::pin(async move { Ok(stored_offsets(&db, &group, &partitions).await?) })
    }
}

async fn stored_offsets(
    db: &Db,
    group: &str,
    partitions: &[Partition],
) -> Result<BTreeMap<Partition, StoredOffset>, StorageError> {
    let mut tx = db.snapshot().await?;
    let mut stored = BTreeMap::new();
    let topics: BTreeSet<&Arc<str>> = partitions.iter().map(|partition| &partition.topic).collect();
    for topic in topics {
        for row in offsets::load(&mut tx, group, topic).await? {
            let identity = TopicIdentity { cluster_id: row.cluster_id.into(), topic_id: row.topic_id.into() };
            let partition = Partition { topic: Arc::clone(topic), partition: row.partition };
            stored.insert(partition, StoredOffset { identity, next_offset: row.next_offset });
        }
    }
    stored.retain(|partition, _| partitions.contains(partition));
    Ok(stored)
}

/// A batch and what it brings.
struct Read {
    batch: Batch,
    arrivals: Arrivals,
}

/// Reads what a batch brings, and makes its blocks, on a thread of its own.
fn read_ahead(mut batch: Batch, now: Instant) -> JoinHandle<Result<Read, LedgerError>> {
    tokio::task::spawn_blocking(move || {
        let arrivals = arrivals(std::mem::take(&mut batch.messages), now);
        // Nearly all windows are new: their blocks are made before it is known which are.
        let blocks = seal(&arrivals.windows, (0..arrivals.windows.len()).collect())
            .map_err(|why| LedgerError::Block(why.to_string()))?;
        let arrivals = Arrivals { is_backlog: batch.is_full, blocks: Arc::new(blocks), ..arrivals };
        Ok(Read { batch, arrivals })
    })
}

async fn apply_batch(db: &Db, group: &str, read: &Read, now: Instant) -> Result<Tally, LedgerError> {
    let mut tx = db.begin().await?;
    let applied = apply_all(&mut tx, &read.arrivals, now).await?;
    point("ledger::before-offsets");
    move_offsets(&mut tx, group, &read.batch).await?;
    point("ledger::before-commit");
    tx.commit().await?;
    Ok(applied.tally)
}

async fn move_offsets(tx: &mut Tx, group: &str, batch: &Batch) -> Result<(), StorageError> {
    for span in &batch.spans {
        let place = offsets::Place {
            group,
            topic: &span.partition.topic,
            partition: span.partition.partition,
            cluster_id: &span.identity.cluster_id,
            topic_id: &span.identity.topic_id,
        };
        offsets::advance(tx, &place, span.expected, span.next).await?;
    }
    Ok(())
}

fn arrivals(messages: Vec<Message>, now: Instant) -> Arrivals {
    let (mut events, mut windows, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    for mut message in messages {
        let payload = message.payload.take().unwrap_or_default();
        match Arrived::from_record(&message.headers, payload) {
            Ok(window) if is_timely(&window, now) => {
                let Partition { topic, partition } = message.partition;
                origins.push(Origin { topic, partition, offset: message.offset });
                windows.push(window);
            }
            Ok(window) => events.push(incoming(&message, &window.body)),
            Err(payload) => events.push(incoming(&message, &payload)),
        }
    }
    Arrivals { events, windows: Arc::new(windows), origins, ..Arrivals::default() }
}

/// What lies outside these bounds is judged, and parked with its reason.
pub(crate) fn is_timely(window: &Arrived, now: Instant) -> bool {
    window.end.min(window.time) >= OLDEST && window.end.max(window.time) <= now.plus(SKEW_BOUND_US)
}

fn incoming(message: &Message, payload: &[u8]) -> Incoming {
    let event = decode_binary(&message.headers, payload);
    let raw = event.is_err().then(|| kept_record(&message.headers, payload));
    let Partition { topic, partition } = &message.partition;
    Incoming {
        event,
        origin: format!("{topic}/{partition}/{}", message.offset),
        raw,
        not_entitled: None,
        retry_of: None,
    }
}
