//! The state behind the mutex. Nothing here waits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Order;
use super::forming::{Forming, Ready};
use crate::consumer::batch::Message;
use crate::consumer::settings::BatchLimits;
use crate::consumer::start::Start;
use crate::error::MessagingError;
use crate::identity::{Partition, TopicIdentity};

/// A partition that is ours.
#[derive(Debug)]
pub(super) struct Held {
    identity: TopicIdentity,
    /// What the database holds once all before `next` is stored; `None`: no row yet.
    stored: Option<i64>,
    /// Offset to read next.
    pub(super) next: i64,
}

/// A batch the caller works on.
#[derive(Debug)]
pub(super) struct Open {
    partitions: Vec<Partition>,
    withdrawn: CancellationToken,
}

/// Everything shared.
#[derive(Debug)]
pub(super) struct State {
    pub(super) limits: BatchLimits,
    queue_limit: usize,
    /// Counts changes of the assignment.
    pub(super) epoch: u64,
    pub(super) assigned: BTreeMap<Partition, Held>,
    pub(super) forming: Forming,
    queue: VecDeque<Ready>,
    pub(super) open: BTreeMap<u64, Open>,
    opened: u64,
    pub(super) rewind: bool,
    pub(super) stop: bool,
    failure: Option<MessagingError>,
}

impl State {
    pub(super) fn new(limits: BatchLimits, queue_limit: usize) -> Self {
        Self {
            limits,
            queue_limit,
            epoch: 0,
            assigned: BTreeMap::new(),
            forming: Forming::default(),
            queue: VecDeque::new(),
            open: BTreeMap::new(),
            opened: 0,
            rewind: false,
            stop: false,
            failure: None,
        }
    }

    pub(super) fn order(&self) -> Order {
        match (self.stop, self.rewind) {
            (true, _) => Order::Stop,
            (false, true) => Order::Rewind,
            (false, false) => Order::Read,
        }
    }

    /// The next batch or the end, for the caller; `None` while there is neither.
    pub(super) fn take(&mut self) -> Option<Result<(Ready, u64, CancellationToken), MessagingError>> {
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        if self.stop {
            return Some(Err(MessagingError::Stopped));
        }
        let ready = self.queue.pop_front()?;
        self.opened += 1;
        let withdrawn = CancellationToken::new();
        let partitions = ready.spans.iter().map(|span| span.partition.clone()).collect();
        self.open.insert(self.opened, Open { partitions, withdrawn: withdrawn.clone() });
        Some(Ok((ready, self.opened, withdrawn)))
    }

    pub(super) fn push(&mut self, message: Message, now: Instant) {
        // A message that was on its way when its partition went, or that was read before a rewind.
        let Some(held) = self.assigned.get_mut(&message.partition) else { return };
        if message.offset < held.next {
            return;
        }
        if message.offset > held.next {
            // Markers of transactions and compaction leave such holes; in our own topics there are neither.
            let (partition, expected, found) = (&message.partition, held.next, message.offset);
            tracing::warn!(%partition, expected, found, "offsets are not contiguous");
        }
        held.next = message.offset + 1;
        let expected = held.stored.replace(held.next);
        self.forming.push(message, &held.identity, expected, now);
    }

    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.queue_limit
    }

    /// Queues the forming batch, unless an order has made it worthless.
    pub(super) fn enqueue(&mut self) {
        let ready = self.forming.ready(&self.limits);
        if self.order() == Order::Read && !ready.messages.is_empty() {
            self.queue.push_back(ready);
        }
    }

    pub(super) fn assign(&mut self, starts: Vec<Start>) {
        self.epoch += 1;
        for start in starts {
            let held = Held { identity: start.identity, stored: start.stored, next: start.next };
            self.assigned.insert(start.partition, held);
        }
    }

    /// Takes partitions out of everything that has not reached the caller.
    pub(super) fn forget(&mut self, partitions: &[Partition]) {
        self.epoch += 1;
        self.assigned.retain(|partition, _| !partitions.contains(partition));
        self.forming.forget(partitions);
        self.queue.retain_mut(|ready| ready.forget(partitions));
    }

    pub(super) fn is_open(&self, partitions: &[Partition]) -> bool {
        self.open.values().any(|open| open.holds(partitions))
    }

    pub(super) fn withdraw(&mut self, partitions: &[Partition]) {
        for open in self.open.values().filter(|open| open.holds(partitions)) {
            open.withdrawn.cancel();
        }
    }

    /// Drops what was read ahead and withdraws every open batch: their fences could not hold any more.
    pub(super) fn ask_rewind(&mut self) {
        self.rewind = true;
        self.forming = Forming::default();
        self.queue.clear();
        for open in self.open.values() {
            open.withdrawn.cancel();
        }
    }

    /// The positions of a rewind are in place; what was read until then is not wanted.
    pub(super) fn rewound(&mut self) {
        self.rewind = false;
        self.forming = Forming::default();
    }

    pub(super) fn fail(&mut self, error: MessagingError) {
        self.stop = true;
        // The first failure is the cause, later ones follow from it.
        if self.failure.is_none() {
            self.failure = Some(error);
        }
    }
}

impl Open {
    fn holds(&self, partitions: &[Partition]) -> bool {
        self.partitions.iter().any(|held| partitions.contains(held))
    }
}
