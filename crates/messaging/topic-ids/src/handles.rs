//! Owners of librdkafka's objects: each frees what it holds exactly once, on every path out of a function.

use std::ffi::{CString, c_char};
use std::ptr;

use rdkafka::bindings as rd;

use crate::TopicIdError;

/// A private queue: answers arrive here and not among another poller's events.
pub(crate) struct Queue(pub(crate) *mut rd::rd_kafka_queue_t);

impl Queue {
    pub(crate) fn new(client: *mut rd::rd_kafka_t) -> Self {
        // SAFETY: the caller holds the client; the queue keeps its own reference to it.
        Self(unsafe { rd::rd_kafka_queue_new(client) })
    }

    /// Waits for one event.
    pub(crate) fn poll(&self, timeout_ms: i32) -> Result<Event, TopicIdError> {
        // SAFETY: the queue is a valid handle until it is dropped.
        let event = unsafe { rd::rd_kafka_queue_poll(self.0, timeout_ms) };
        if event.is_null() {
            let timed_out = rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__TIMED_OUT;
            return Err(TopicIdError::Request(timed_out.into()));
        }
        Ok(Event(event))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed only here.
        unsafe { rd::rd_kafka_queue_destroy(self.0) };
    }
}

/// An answer, with everything it points to.
pub(crate) struct Event(pub(crate) *mut rd::rd_kafka_event_t);

impl Event {
    /// The error of the request as a whole, if any.
    pub(crate) fn error(&self) -> Result<(), TopicIdError> {
        // SAFETY: the event is a valid handle until it is dropped.
        let code = unsafe { rd::rd_kafka_event_error(self.0) };
        match code {
            rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            _ => Err(TopicIdError::Request(code.into())),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: polled from a queue, freed only here.
        unsafe { rd::rd_kafka_event_destroy(self.0) };
    }
}

/// Options of one request.
pub(crate) struct Options(pub(crate) *mut rd::rd_kafka_AdminOptions_t);

impl Options {
    pub(crate) fn for_describe_topics(
        client: *mut rd::rd_kafka_t,
        timeout_ms: i32,
    ) -> Result<Self, TopicIdError> {
        let operation = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        // SAFETY: the caller holds the client.
        let options = Self(unsafe { rd::rd_kafka_AdminOptions_new(client, operation) });
        // SAFETY: a null buffer of length zero is how librdkafka is told that no error text is wanted.
        let code = unsafe {
            rd::rd_kafka_AdminOptions_set_request_timeout(options.0, timeout_ms, ptr::null_mut(), 0)
        };
        match code {
            rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(options),
            _ => Err(TopicIdError::Request(code.into())),
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made in `for_describe_topics`, freed only here.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.0) };
    }
}

/// The topic names of a request.
pub(crate) struct Collection(pub(crate) *mut rd::rd_kafka_TopicCollection_t);

impl Collection {
    pub(crate) fn new(names: &[CString]) -> Self {
        let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: the pointers are valid for the call, which copies the names.
        Self(unsafe { rd::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()) })
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed only here.
        unsafe { rd::rd_kafka_TopicCollection_destroy(self.0) };
    }
}
