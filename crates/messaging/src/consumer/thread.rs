//! The consumer's own thread: it polls, hands over, pauses, rewinds, and lets go.

mod fault;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use tokio::sync::oneshot;

use super::batch::Message;
use super::hand_off::{HandOff, Offered, Order};
use super::rebalance::{Context, place};
use super::settings::ConsumerSettings;
use crate::error::MessagingError;
use crate::identity::Partition;
use crate::settings::KafkaSettings;
use crate::topics::partition_watermarks;

/// How long a full queue is waited for before partitions are paused: pausing throws away what was fetched.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often a paused consumer polls, to answer rebalances.
const PAUSED_POLL: Duration = Duration::from_millis(50);
/// How long a rewind may take to move the library's positions.
const SEEK: Duration = Duration::from_secs(15);
const SEEK_PAUSE: Duration = Duration::from_millis(50);
/// How long to look for the partition that is out of range.
const PROBE: Duration = Duration::from_secs(5);

/// Makes the consumer and starts its thread. The receiver learns when all is released.
pub(super) fn spawn(
    kafka: &KafkaSettings,
    settings: ConsumerSettings,
    context: Context,
    hand_off: Arc<HandOff>,
) -> Result<oneshot::Receiver<()>, MessagingError> {
    let consumer: BaseConsumer<Context> = settings
        .client_config(kafka)?
        .create_with_context(context)
        .map_err(MessagingError::kafka(format!("make a consumer of group {}", settings.group)))?;
    let topics = settings.topics.iter().map(|topic| topic.as_str().into()).collect();
    let (released, ended) = oneshot::channel::<()>();
    let reader = Reader { consumer, topics, hand_off, paused: None };
    let name = format!("kafka-{}", settings.instance);
    std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            reader.run();
            // Dropping the sender is the message.
            drop(released);
        })
        .map_err(MessagingError::Thread)?;
    Ok(ended)
}

struct Reader {
    consumer: BaseConsumer<Context>,
    topics: Vec<Arc<str>>,
    hand_off: Arc<HandOff>,
    /// The assignment's epoch at which all its partitions were paused.
    paused: Option<u64>,
}

/// Tells the caller that the thread is gone, even when it panicked.
struct Farewell(Arc<HandOff>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.fail(MessagingError::Stopped);
    }
}

impl Reader {
    fn run(mut self) {
        let farewell = Farewell(self.hand_off.clone());
        if let Err(fault) = self.read() {
            self.hand_off.fail(fault);
        }
        drop(farewell);
        // Dropping the consumer polls until the group has let go, and may block: that is why it happens here.
    }

    fn read(&mut self) -> Result<(), MessagingError> {
        let topics: Vec<&str> = self.topics.iter().map(|topic| &**topic).collect();
        self.consumer.subscribe(&topics).map_err(MessagingError::kafka("subscribe"))?;
        loop {
            match self.hand_off.order() {
                Order::Stop => return Ok(()),
                Order::Rewind => self.rewind()?,
                Order::Read => {
                    let wait = self.hand_over()?;
                    self.poll(wait)?;
                }
            }
        }
    }

    /// Offers what has been read; answers how long the next poll may wait.
    fn hand_over(&mut self) -> Result<Duration, MessagingError> {
        let patience = if self.paused.is_some() { PAUSED_POLL } else { PATIENCE };
        match self.hand_off.offer(patience) {
            // Also after a pause: a revocation may have emptied what was waiting.
            Offered::Later(wait) => self.resume().map(|()| wait),
            Offered::Taken => self.resume().map(|()| Duration::ZERO),
            Offered::Full => self.pause().map(|()| Duration::ZERO),
        }
    }

    fn poll(&self, wait: Duration) -> Result<(), MessagingError> {
        match self.consumer.poll(wait) {
            Some(Ok(message)) => {
                if let Some(message) = self.own(&message) {
                    self.hand_off.push(message);
                }
                Ok(())
            }
            Some(Err(error)) => match fault::judge(error) {
                fault::Verdict::Wait(code) => {
                    // The context's error callback has reported it already.
                    tracing::debug!(%code, "consuming is disturbed");
                    Ok(())
                }
                fault::Verdict::OutOfRange(code) => Err(self.find_out_of_range(code)),
                fault::Verdict::End(error) => Err(error),
            },
            None => Ok(()),
        }
    }

    /// Copies a message out of the library's memory. `None` for a topic we did not ask for.
    fn own(&self, message: &BorrowedMessage<'_>) -> Option<Message> {
        let topic = self.topics.iter().find(|topic| ***topic == *message.topic())?;
        let headers = message.headers().map(|headers| {
            let pair = |header: rdkafka::message::Header<'_, &[u8]>| {
                (header.key.to_owned(), header.value.unwrap_or_default().to_vec())
            };
            headers.iter().map(pair).collect()
        });
        Some(Message {
            partition: Partition { topic: topic.clone(), partition: message.partition() },
            offset: message.offset(),
            timestamp_ms: message.timestamp().to_millis(),
            key: message.key().map(<[u8]>::to_vec),
            headers: headers.unwrap_or_default(),
            payload: message.payload().map(<[u8]>::to_vec),
        })
    }

    fn pause(&mut self) -> Result<(), MessagingError> {
        let epoch = self.hand_off.epoch();
        if self.paused != Some(epoch) {
            tracing::debug!(epoch, "the caller is behind: reading pauses");
            self.consumer.pause(&self.assigned()).map_err(MessagingError::kafka("pause"))?;
            self.paused = Some(epoch);
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<(), MessagingError> {
        if self.paused.take().is_some() {
            tracing::debug!("reading resumes");
            self.consumer.resume(&self.assigned()).map_err(MessagingError::kafka("resume"))?;
        }
        Ok(())
    }

    /// Moves every partition back to its stored offset.
    fn rewind(&mut self) -> Result<(), MessagingError> {
        self.resume()?;
        let starts = self.consumer.context().starts(&self.consumer, &self.hand_off.assigned())?;
        let mut list = self.assigned();
        place(&mut list, &starts)?;
        self.seek(list)?;
        self.hand_off.assign(starts);
        self.hand_off.rewound();
        Ok(())
    }

    /// A partition that was assigned a moment ago refuses to seek until its fetcher runs: those are tried again.
    fn seek(&self, mut list: TopicPartitionList) -> Result<(), MessagingError> {
        let until = Instant::now() + SEEK;
        while list.count() > 0 && self.hand_off.order() != Order::Stop {
            let tried = self.consumer.seek_partitions(list, SEEK).map_err(MessagingError::kafka("seek"))?;
            list = TopicPartitionList::new();
            for element in tried.elements() {
                if let Err(fault) = element.error() {
                    if Instant::now() > until {
                        let doing = format!("seek {}/{}", element.topic(), element.partition());
                        return Err(MessagingError::kafka(doing)(fault));
                    }
                    list.add_partition_offset(element.topic(), element.partition(), element.offset())
                        .map_err(MessagingError::kafka("seek"))?;
                }
            }
            if list.count() > 0 {
                std::thread::sleep(SEEK_PAUSE);
            }
        }
        Ok(())
    }

    fn assigned(&self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for Partition { topic, partition } in self.hand_off.assigned() {
            list.add_partition(&topic, partition);
        }
        list
    }

    /// The library says that some partition is out of range but not which: ask the cluster.
    fn find_out_of_range(&self, code: rdkafka::error::RDKafkaErrorCode) -> MessagingError {
        for (partition, offset) in self.hand_off.positions() {
            if let Ok(marks) = partition_watermarks(self.consumer.client(), &partition, PROBE)
                && !(marks.low..=marks.high).contains(&offset)
            {
                return MessagingError::OffsetOutOfRange {
                    partition,
                    offset,
                    low: marks.low,
                    high: marks.high,
                };
            }
        }
        MessagingError::Consumption(code)
    }
}
