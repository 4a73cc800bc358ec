//! Consuming from Kafka: a batch, its effects and its offsets in one transaction; a fence on the stored offset keeps a second owner of the same
//! partition from writing (I-3).

use crate::batch::{Tally, apply};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use crate::points::point;
use gpuledger_books::BooksError;
use gpuledger_domain::time::Instant;
use gpuledger_messaging::{
    Batch, Consumer, ConsumerSettings, KafkaSettings, Message, OffsetsFuture, Partition, StoredOffset,
    TopicIdentity,
};
use gpuledger_storage::{Db, StorageError, Tx, offsets};
use gpuledger_wire::decode_binary;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// First pause after a failed transaction; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
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
    loop {
        let batch = tokio::select! {
            () = shutdown.cancelled() => break,
            batch = consumer.next() => batch?,
        };
        match apply_batch(db, &group, &batch, clock()).await {
            Ok(tally) => {
                pause = FIRST_PAUSE;
                told(tally);
                point("ledger::after-commit");
            }
            Err(error) => {
                if !is_passing(&error) {
                    return Err(error);
                }
                tracing::warn!(%error, "batch rolled back, it is read again");
                consumer.rewind(batch);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    consumer.close(CLOSE_DEADLINE).await?;
    Ok(())
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

async fn apply_batch(db: &Db, group: &str, batch: &Batch, now: Instant) -> Result<Tally, LedgerError> {
    let incoming: Vec<Incoming> = batch.messages.iter().map(incoming).collect();
    let mut tx = db.begin().await?;
    let applied = apply(&mut tx, &incoming, now).await?;
    point("ledger::before-offsets");
    move_offsets(&mut tx, group, batch).await?;
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

fn incoming(message: &Message) -> Incoming {
    let payload = message.payload.as_deref().unwrap_or_default();
    let event = decode_binary(&message.headers, payload);
    // What cannot be read as an event is kept as it came; the headers are in the log of the topic.
    let raw = event.is_err().then(|| payload.to_vec());
    let Partition { topic, partition } = &message.partition;
    Incoming {
        event,
        origin: format!("{topic}/{partition}/{}", message.offset),
        raw,
        not_entitled: None,
        retry_of: None,
    }
}
