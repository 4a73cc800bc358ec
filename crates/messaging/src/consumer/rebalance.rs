//! What happens when the group moves partitions. Called by the library on the consumer's thread, inside `poll`.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, RebalanceProtocol};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use super::hand_off::{HandOff, Order};
use super::start::{Finder, Start};
use crate::client;
use crate::error::MessagingError;
use crate::identity::Partition;

/// The consumer's callbacks.
pub(super) struct Context {
    hand_off: Arc<HandOff>,
    finder: Finder,
    revoke_timeout: Duration,
}

impl Context {
    pub(super) fn new(hand_off: Arc<HandOff>, finder: Finder, revoke_timeout: Duration) -> Self {
        Self { hand_off, finder, revoke_timeout }
    }

    /// Starts of the partitions, from the caller's stored offsets.
    pub(super) fn starts(
        &self,
        consumer: &BaseConsumer<Self>,
        partitions: &[Partition],
    ) -> Result<Vec<Start>, MessagingError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        self.finder.find(consumer.client(), partitions, || self.hand_off.order() != Order::Stop)
    }

    /// Assigns once, with the offsets of the database: assigning first and seeking after would ask the group for
    /// offsets it does not have.
    fn assign(&self, consumer: &BaseConsumer<Self>, list: &mut TopicPartitionList) {
        let partitions = partitions(list);
        tracing::info!(count = partitions.len(), partitions = %names(&partitions), "partitions assigned");
        let taken = self.starts(consumer, &partitions).and_then(|starts| {
            place(list, &starts)?;
            self.hand_off.assign(starts);
            Ok(())
        });
        if let Err(fault) = taken {
            // The thread ends after this callback. The library still wants its answer first.
            self.hand_off.fail(fault);
        }
        if let Err(fault) = consumer.incremental_assign(list) {
            self.hand_off.fail(MessagingError::kafka("take the assigned partitions")(fault));
        }
    }

    fn revoke(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let partitions = partitions(list);
        let lost = consumer.assignment_lost();
        tracing::info!(count = partitions.len(), partitions = %names(&partitions), lost, "partitions revoked");
        // What is lost may be another member's already: there is nothing to wait for.
        self.hand_off.revoke(&partitions, if lost { Duration::ZERO } else { self.revoke_timeout });
        let given = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
            RebalanceProtocol::None | RebalanceProtocol::Eager => consumer.unassign(),
        };
        if let Err(fault) = given {
            self.hand_off.fail(MessagingError::kafka("give up the revoked partitions")(fault));
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        client::Logging.error(error, reason);
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            fail::fail_point!("messaging::assign", |_| stay("messaging::assign"));
            self.assign(consumer, list);
        } else {
            fail::fail_point!("messaging::revoke", |_| stay("messaging::revoke"));
            self.revoke(consumer, list);
        }
    }
}

/// With `NAME=return` in `FAILPOINTS` the process stays inside the rebalance until it is killed, as a power cut would.
#[cfg(feature = "failpoints")]
fn stay(name: &'static str) {
    tracing::warn!(point = name, "held at a failpoint until it is killed");
    loop {
        std::thread::park();
    }
}

/// Writes the starts into the library's list.
pub(super) fn place(list: &mut TopicPartitionList, starts: &[Start]) -> Result<(), MessagingError> {
    for start in starts {
        let Partition { topic, partition } = &start.partition;
        list.set_partition_offset(topic, *partition, Offset::Offset(start.next))
            .map_err(MessagingError::kafka(format!("start {} at {}", start.partition, start.next)))?;
    }
    Ok(())
}

fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    let elements = list.elements();
    elements.iter().map(|e| Partition { topic: e.topic().into(), partition: e.partition() }).collect()
}

fn names(partitions: &[Partition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
