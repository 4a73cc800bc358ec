//! Kafka: telemetry by node, facts by allocation, GPU or node; a record has arrived when all in-sync replicas have it.

use super::{Sent, Sink, SinkError, Taken};
use gpuledger_messaging::{
    KafkaSettings, MessagingError, Producer, ProducerSettings, PublishStopped, Record,
};
use gpuledger_wire::{decode_structured, encode_binary};
use std::time::Duration;

/// How long a record may wait for its acknowledgement. After that the batch is sent again, in its order.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory for records on their way, in KiB: a batch has at most a few hundred, and a node has little to spare.
const BUFFER_KIB: u32 = 4 * 1024;
/// Records on their way at once.
const IN_FLIGHT: u16 = 64;

/// Sends to brokers.
pub struct KafkaSink {
    settings: KafkaSettings,
    producer: Producer,
}

impl std::fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaSink").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl KafkaSink {
    /// Makes the sink. It connects on first use, and makes no topics.
    ///
    /// # Errors
    /// Settings that contradict each other, and secrets that cannot be read.
    pub fn new(settings: KafkaSettings) -> Result<Self, SinkError> {
        let producer = producer(&settings)?;
        Ok(Self { settings, producer })
    }

    fn record(&self, event: &[u8]) -> Result<Record, String> {
        let event = decode_structured(event).map_err(|why| why.to_string())?;
        let (headers, payload) = encode_binary(&event);
        let topic = format!("{}{}", self.settings.topic_prefix, event.topic());
        Ok(Record { topic, key: event.partition_key().into_bytes(), headers, payload })
    }

    /// After a fatal error the library takes nothing any more: only a new producer does.
    fn renew(&mut self) {
        match producer(&self.settings) {
            Ok(new) => self.producer = new,
            Err(error) => tracing::error!(%error, "no new producer can be made"),
        }
    }
}

impl Sink for KafkaSink {
    async fn send(&mut self, events: Vec<Vec<u8>>) -> Sent {
        let mut records = Vec::with_capacity(events.len());
        let mut unreadable = None;
        for event in &events {
            match self.record(event) {
                Ok(record) => records.push(Ok::<_, MessagingError>(record)),
                Err(why) => {
                    unreadable = Some(why);
                    break;
                }
            }
        }
        match self.producer.publish(records, 0, |_| ()).await {
            Ok(count) => {
                let mut taken = stored(count);
                // The rest comes with the next batch.
                taken.extend(unreadable.map(Taken::Refused));
                Sent::all(taken)
            }
            Err(PublishStopped { acknowledged, cause }) => {
                let why = cause.to_string();
                let mut taken = stored(acknowledged);
                if cause.is_record_refused() {
                    taken.push(Taken::Refused(why));
                    return Sent::all(taken);
                }
                if cause.is_fatal() {
                    self.renew();
                }
                Sent::until(taken, why)
            }
        }
    }

    async fn close(self, deadline: Duration) {
        if let Err(error) = self.producer.close(deadline).await {
            tracing::warn!(%error, "what was on its way is sent again after the next start");
        }
    }
}

fn producer(settings: &KafkaSettings) -> Result<Producer, MessagingError> {
    let bounds = ProducerSettings {
        delivery_timeout: DELIVERY_TIMEOUT,
        linger: Duration::from_millis(10),
        in_flight: IN_FLIGHT,
        buffer_kib: BUFFER_KIB,
    };
    Producer::new(settings, &bounds)
}

fn stored(count: u64) -> Vec<Taken> {
    vec![Taken::Stored; usize::try_from(count).unwrap_or_default()]
}
