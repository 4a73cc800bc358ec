//! Kafka topic ids.
//!
//! A topic that was deleted and made again under the same name is another topic: offsets stored for the old one mean
//! nothing in it. Kafka tells them apart by a topic id, librdkafka can ask for it (`DescribeTopics`), `rdkafka` does
//! not wrap that call. This crate does, and holds nothing else, so that the rest of the room can forbid unsafe code.

mod handles;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, NulError, c_char};
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;

use handles::{Collection, Event, Options, Queue};

/// The id a broker older than Kafka 2.8 reports: sixteen zero bytes.
const ZERO: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// Why the ids could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TopicIdError {
    /// A topic name with a NUL byte inside.
    #[error("topic name holds a zero byte: {0}")]
    Name(#[from] NulError),
    /// The timeout does not fit in the milliseconds C takes (24 days).
    #[error("timeout of {0:?} is longer than librdkafka can wait")]
    Timeout(Duration),
    /// The request as a whole failed: broker out of reach, not authorised, timed out.
    #[error("describe topics failed: {0}")]
    Request(RDKafkaErrorCode),
    /// The broker answered for this topic with an error, most often that it does not exist.
    #[error("describe topic {topic}: {code}")]
    Topic {
        /// Topic asked for.
        topic: String,
        /// The broker's answer.
        code: RDKafkaErrorCode,
    },
    /// The broker does not know topic ids.
    #[error("topic {0} has no id: the broker must be Kafka 2.8 or newer")]
    Unsupported(String),
    /// The answer lacks a topic that was asked for, or is not a `DescribeTopics` answer at all.
    #[error("the broker's answer does not describe {0}")]
    Missing(String),
}

/// Ids of the topics, by name, in the base64 form Kafka's own tools print. Blocks for up to `timeout`.
///
/// # Errors
/// [`TopicIdError`] when any of the topics could not be described.
pub fn topic_ids<C: ClientContext>(
    client: &Client<C>,
    topics: &[&str],
    timeout: Duration,
) -> Result<BTreeMap<String, String>, TopicIdError> {
    let millis = i32::try_from(timeout.as_millis()).map_err(|_| TopicIdError::Timeout(timeout))?;
    let names = topics.iter().map(|name| CString::new(*name)).collect::<Result<Vec<_>, _>>()?;
    let queue = Queue::new(client.native_ptr());
    let options = Options::for_describe_topics(client.native_ptr(), millis)?;
    let collection = Collection::new(&names);
    // SAFETY: the client outlives this call, the three handles live to the end of this function, and librdkafka copies
    // what it needs of options and collection before it returns.
    unsafe { rd::rd_kafka_DescribeTopics(client.native_ptr(), collection.0, options.0, queue.0) };
    // The request has its own timeout; one second more lets its answer, rather than ours, be the one that reports it.
    let event = queue.poll(millis.saturating_add(1000))?;
    let found = read(&event)?;
    match topics.iter().find(|name| !found.contains_key(**name)) {
        Some(missing) => Err(TopicIdError::Missing((*missing).to_owned())),
        None => Ok(found),
    }
}

fn read(event: &Event) -> Result<BTreeMap<String, String>, TopicIdError> {
    event.error()?;
    // SAFETY: the event is a valid handle until `event` is dropped, and so is the result inside it.
    let result = unsafe { rd::rd_kafka_event_DescribeTopics_result(event.0) };
    if result.is_null() {
        return Err(TopicIdError::Missing("any topic".to_owned()));
    }
    let mut count = 0;
    // SAFETY: `result` is not null and lives as long as the event.
    let first = unsafe { rd::rd_kafka_DescribeTopics_result_topics(result, &raw mut count) };
    if first.is_null() || count == 0 {
        return Ok(BTreeMap::new());
    }
    // SAFETY: librdkafka returns an array of `count` pointers that lives as long as the event.
    let descriptions = unsafe { std::slice::from_raw_parts(first, count) };
    descriptions.iter().map(|description| read_one(*description)).collect()
}

fn read_one(description: *const rd::rd_kafka_TopicDescription_t) -> Result<(String, String), TopicIdError> {
    // SAFETY: the description lives as long as the event its caller holds.
    let name = text(unsafe { rd::rd_kafka_TopicDescription_name(description) });
    // SAFETY: as above.
    let error = unsafe { rd::rd_kafka_TopicDescription_error(description) };
    if !error.is_null() {
        // SAFETY: not null, and owned by the description.
        let code = unsafe { rd::rd_kafka_error_code(error) };
        if code != rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(TopicIdError::Topic { topic: name, code: code.into() });
        }
    }
    // SAFETY: as for the name.
    let uuid = unsafe { rd::rd_kafka_TopicDescription_topic_id(description) };
    if uuid.is_null() {
        return Err(TopicIdError::Unsupported(name));
    }
    // SAFETY: not null, and owned by the description; the text is kept inside the id itself.
    let id = text(unsafe { rd::rd_kafka_Uuid_base64str(uuid) });
    if id.is_empty() || id == ZERO { Err(TopicIdError::Unsupported(name)) } else { Ok((name, id)) }
}

/// Copies a C string; null becomes empty.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: librdkafka's strings end in NUL and live as long as the object its caller still holds.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
