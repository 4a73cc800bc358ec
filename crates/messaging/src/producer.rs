//! Producing without loss: idempotent, acknowledged by all replicas, believed only on a delivery report.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::future_producer::Delivery;
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer as _};
use tokio::sync::Semaphore;

use crate::client::Logging;
use crate::error::MessagingError;
use crate::settings::KafkaSettings;

/// Largest record the producer hands to a broker, in bytes; topics may allow less.
const MAX_RECORD_BYTES: &str = "5242880";
/// How long to wait before offering a record again to a full queue.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);

/// One record to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Topic, with its prefix.
    pub topic: String,
    /// Records of one key keep their order; the partition is Java's murmur2 of it.
    pub key: Vec<u8>,
    /// Headers in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The value, sent unchanged.
    pub payload: Vec<u8>,
}

/// Where an acknowledged record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Partition of its topic.
    pub partition: i32,
    /// Offset in the partition.
    pub offset: i64,
}

/// Bounds of a producer.
#[derive(Clone, Debug)]
pub struct ProducerSettings {
    /// How long a record may wait for its acknowledgement before it fails. Long, because a record given up on may have
    /// been stored, or may leave a gap.
    pub delivery_timeout: Duration,
    /// How long a record waits for company in its batch.
    pub linger: Duration,
    /// Records on their way at once, over all calls.
    pub in_flight: u16,
    /// Memory for records on their way, in KiB.
    pub buffer_kib: u32,
}

impl Default for ProducerSettings {
    fn default() -> Self {
        Self {
            delivery_timeout: Duration::from_secs(600),
            linger: Duration::from_millis(10),
            in_flight: 20_000,
            buffer_kib: 64 * 1024,
        }
    }
}

/// An idempotent producer. Cheap to clone; clones share the connection and the bounds.
#[derive(Clone)]
pub struct Producer {
    inner: FutureProducer<Logging>,
    in_flight: Arc<Semaphore>,
    window: u16,
}

impl Producer {
    /// Makes a producer. It connects on first use.
    ///
    /// # Errors
    /// Settings that contradict each other, and secrets that cannot be read.
    pub fn new(kafka: &KafkaSettings, settings: &ProducerSettings) -> Result<Self, MessagingError> {
        let mut config = kafka.client_config()?;
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            // lz4 is part of librdkafka; zstd would link one more C library for a few per cent.
            .set("compression.type", "lz4")
            // As Java clients do, so that topics written by both are partitioned alike.
            .set("partitioner", "murmur2_random")
            .set("message.timeout.ms", settings.delivery_timeout.as_millis().to_string())
            .set("linger.ms", settings.linger.as_millis().to_string())
            .set("message.max.bytes", MAX_RECORD_BYTES)
            .set("queue.buffering.max.kbytes", settings.buffer_kib.to_string());
        let inner = config
            .create_with_context(Logging)
            .map_err(MessagingError::kafka(format!("make a producer for {}", kafka.bootstrap)))?;
        let in_flight = Arc::new(Semaphore::new(usize::from(settings.in_flight)));
        Ok(Self { inner, in_flight, window: settings.in_flight.max(1) })
    }

    /// Sends one record and waits until all in-sync replicas have it.
    ///
    /// # Errors
    /// [`MessagingError::Delivery`] when it was refused or timed out. After a time-out it may be stored nevertheless.
    pub async fn send(&self, record: &Record) -> Result<Delivered, MessagingError> {
        let permit = self.in_flight.acquire().await;
        let report = self.enqueue(record).await?;
        let delivered = settle(report, &record.topic).await;
        drop(permit);
        delivered
    }

    /// How many records [`Producer::publish`] keeps on their way.
    pub(crate) fn window(&self) -> usize {
        usize::from(self.window)
    }

    /// Hands a record to the library, waiting while its queue is full. The future is the delivery report.
    pub(crate) async fn enqueue(&self, record: &Record) -> Result<DeliveryFuture, MessagingError> {
        let headers = || {
            record
                .headers
                .iter()
                .fold(OwnedHeaders::new_with_capacity(record.headers.len()), |all, (key, value)| {
                    all.insert(Header { key, value: Some(value) })
                })
        };
        let mut next =
            FutureRecord::to(&record.topic).key(&record.key).payload(&record.payload).headers(headers());
        loop {
            match self.inner.send_result(next) {
                Ok(report) => return Ok(report),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    next = back;
                    tokio::time::sleep(QUEUE_FULL_PAUSE).await;
                }
                Err((source, _)) => {
                    return Err(MessagingError::Delivery { topic: record.topic.clone(), source });
                }
            }
        }
    }

    /// Waits for outstanding acknowledgements, then lets go of the connection, on a thread of its own because the
    /// library may block. That it returns is no proof of delivery: only each record's own report is.
    ///
    /// # Errors
    /// [`MessagingError::FlushTimedOut`] when records were still on their way at the deadline.
    pub async fn close(self, deadline: Duration) -> Result<(), MessagingError> {
        let closing = tokio::task::spawn_blocking(move || self.inner.flush(deadline));
        match tokio::time::timeout(deadline.saturating_add(Duration::from_secs(1)), closing).await {
            Ok(Ok(Ok(()))) => Ok(()),
            _ => Err(MessagingError::FlushTimedOut(deadline)),
        }
    }
}

/// Waits for a delivery report.
pub(crate) async fn settle(report: DeliveryFuture, topic: &str) -> Result<Delivered, MessagingError> {
    match report.await {
        Ok(Ok(Delivery { partition, offset, .. })) => Ok(Delivered { partition, offset }),
        Ok(Err((source, _))) => Err(MessagingError::Delivery { topic: topic.to_owned(), source }),
        Err(_) => Err(MessagingError::Undelivered(topic.to_owned())),
    }
}
