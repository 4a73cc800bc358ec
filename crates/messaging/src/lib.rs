//! The Kafka room: topics, producing without loss, consuming with offsets that live in the database.
//!
//! Nothing outside this crate speaks Kafka. What a consumer of a topic must do is short:
//!
//! ```text
//! let mut consumer = Consumer::start(&kafka, settings, offsets_from_the_database)?;
//! loop {
//!     let batch = consumer.next().await?;
//!     match apply(&batch) {              // one transaction: effects, and every span's offset behind its fence
//!         Ok(()) => drop(batch),         // the batch is finished: a rebalance may now move its partitions
//!         Err(_) => consumer.rewind(batch), // read again from what the database says
//!     }
//! }
//! ```
//!
//! Offsets are never committed to Kafka. A stored offset carries the ids of its cluster and topic, and one that does
//! not fit the live topic stops the consumer with an error: it never resets.

mod client;
mod consumer;
mod error;
mod identity;
mod producer;
mod publish;
mod settings;
mod topics;

pub use consumer::{
    Batch, BatchLimits, Consumer, ConsumerSettings, Message, OffsetCheck, OffsetSource, OffsetsError,
    OffsetsFuture, Span, StoredOffset, check_offsets,
};
pub use error::MessagingError;
pub use identity::{Partition, TopicIdentity};
pub use producer::{Delivered, Producer, ProducerSettings, Record};
pub use publish::PublishStopped;
pub use settings::{KafkaSettings, Sasl, SaslMechanism, Security, Tls};
pub use topics::{
    Replication, Topic, TopicSpec, Watermarks, check_topics, ensure_topics, manifest, watermarks,
};
