//! A batch while it grows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::consumer::batch::{Message, Span};
use crate::consumer::settings::BatchLimits;
use crate::identity::{Partition, TopicIdentity};

/// Longest the thread waits for a message before it looks for orders again.
const IDLE: Duration = Duration::from_millis(50);

/// Messages and what they cover.
#[derive(Debug, Default)]
pub(super) struct Forming {
    messages: Vec<Message>,
    spans: BTreeMap<Partition, Span>,
    bytes: usize,
    since: Option<Instant>,
}

/// A batch ready for the caller.
#[derive(Debug)]
pub(in crate::consumer) struct Ready {
    pub(in crate::consumer) messages: Vec<Message>,
    pub(in crate::consumer) spans: Vec<Span>,
    /// It reached a limit before its time was over: more waits behind it.
    pub(in crate::consumer) is_full: bool,
}

impl Forming {
    /// Adds a message. `expected` is what the database holds of its partition before it.
    pub(super) fn push(
        &mut self,
        message: Message,
        identity: &TopicIdentity,
        expected: Option<i64>,
        now: Instant,
    ) {
        self.since.get_or_insert(now);
        self.bytes += message.size();
        let next = message.offset + 1;
        match self.spans.get_mut(&message.partition) {
            Some(span) => span.next = next,
            None => {
                let partition = message.partition.clone();
                let span = Span { partition: partition.clone(), identity: identity.clone(), expected, next };
                self.spans.insert(partition, span);
            }
        }
        self.messages.push(message);
    }

    /// `None` when the batch must be handed over, else how long that can wait.
    pub(super) fn due_in(&self, limits: &BatchLimits, now: Instant) -> Option<Duration> {
        let Some(since) = self.since else { return Some(IDLE) };
        if self.is_full(limits) {
            return None;
        }
        let left = limits.wait.saturating_sub(now.saturating_duration_since(since));
        (!left.is_zero()).then(|| left.min(IDLE))
    }

    fn is_full(&self, limits: &BatchLimits) -> bool {
        self.messages.len() >= limits.messages || self.bytes >= limits.bytes
    }

    /// Empties the batch into one that can be handed over.
    pub(super) fn ready(&mut self, limits: &BatchLimits) -> Ready {
        let is_full = self.is_full(limits);
        let formed = std::mem::take(self);
        Ready { messages: formed.messages, spans: formed.spans.into_values().collect(), is_full }
    }

    pub(super) fn forget(&mut self, partitions: &[Partition]) {
        self.messages.retain(|message| !partitions.contains(&message.partition));
        self.spans.retain(|partition, _| !partitions.contains(partition));
        self.bytes = self.messages.iter().map(Message::size).sum();
        if self.messages.is_empty() {
            self.since = None;
        }
    }
}

impl Ready {
    /// Takes partitions out; false when nothing is left.
    pub(super) fn forget(&mut self, partitions: &[Partition]) -> bool {
        self.messages.retain(|message| !partitions.contains(&message.partition));
        self.spans.retain(|span| !partitions.contains(&span.partition));
        !self.messages.is_empty()
    }
}
