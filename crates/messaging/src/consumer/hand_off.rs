//! What the consumer's thread and its caller share: the forming batch, the queue, the open batches, the positions.
//!
//! One mutex guards all of it, because a revocation must take a partition out of every stage at once. It is held for
//! moments only and never across a wait, except on its own condition variable.

mod forming;
mod state;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::batch::{Batch, Lease, Message};
use super::settings::ConsumerSettings;
use super::start::Start;
use crate::error::MessagingError;
use crate::identity::Partition;
use state::State;

/// What the caller wants of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Go on.
    Read,
    /// Read again from the stored offsets.
    Rewind,
    /// End: the caller asked, or something failed.
    Stop,
}

/// What became of the forming batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// Nothing to hand over yet; look again after this time at the latest.
    Later(Duration),
    /// It is in the queue, or there was an order that overrules it.
    Taken,
    /// The caller is behind and the queue stayed full.
    Full,
}

/// The shared part of a consumer.
pub(super) struct HandOff {
    state: Mutex<State>,
    /// Wakes the thread: room in the queue, a finished batch, an order.
    thread: Condvar,
    /// Wakes the caller: a batch or an end.
    caller: Notify,
}

impl fmt::Debug for HandOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOff").finish_non_exhaustive()
    }
}

impl HandOff {
    pub(super) fn new(settings: &ConsumerSettings) -> Self {
        Self {
            state: Mutex::new(State::new(settings.batch.clone(), settings.queued_batches.max(1))),
            thread: Condvar::new(),
            caller: Notify::new(),
        }
    }

    /// A panic elsewhere leaves the state as consistent as it was: every change to it is made in one piece.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- the caller's side ---

    pub(super) async fn next(this: &Arc<Self>) -> Result<Batch, MessagingError> {
        loop {
            // Made before the look, so that a wake-up in between is not lost.
            let woken = this.caller.notified();
            if let Some(batch) = this.lock().take() {
                this.thread.notify_all();
                let (ready, number, withdrawn) = batch?;
                let lease = Lease { number, withdrawn, hand_off: this.clone() };
                return Ok(Batch {
                    messages: ready.messages,
                    spans: ready.spans,
                    is_full: ready.is_full,
                    lease,
                });
            }
            woken.await;
        }
    }

    pub(super) fn finish(&self, number: u64) {
        self.lock().open.remove(&number);
        self.thread.notify_all();
    }

    pub(super) fn rewind(&self) {
        self.lock().ask_rewind();
        self.thread.notify_all();
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.thread.notify_all();
    }

    pub(super) fn positions(&self) -> BTreeMap<Partition, i64> {
        self.lock().assigned.iter().map(|(partition, held)| (partition.clone(), held.next)).collect()
    }

    // --- the thread's side ---

    pub(super) fn order(&self) -> Order {
        self.lock().order()
    }

    /// Adds a message to the forming batch, unless it is not ours or was read before.
    pub(super) fn push(&self, message: Message) {
        self.lock().push(message, Instant::now());
    }

    /// Hands the forming batch over if it is due, waiting up to `wait` for room in the queue.
    pub(super) fn offer(&self, wait: Duration) -> Offered {
        let mut state = self.lock();
        if let Some(left) = state.forming.due_in(&state.limits, Instant::now()) {
            return Offered::Later(left);
        }
        let until = Instant::now() + wait;
        while !state.has_room() && state.order() == Order::Read {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Offered::Full;
            }
            state = self.thread.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.enqueue();
        drop(state);
        self.caller.notify_one();
        Offered::Taken
    }

    /// Takes partitions into the assignment, or moves those that are in it.
    pub(super) fn assign(&self, starts: Vec<Start>) {
        self.lock().assign(starts);
    }

    /// The rewind is done: its positions are in place.
    pub(super) fn rewound(&self) {
        self.lock().rewound();
    }

    /// Changes with every change of the assignment.
    pub(super) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    pub(super) fn assigned(&self) -> Vec<Partition> {
        self.lock().assigned.keys().cloned().collect()
    }

    /// Takes partitions out of every stage. Waits up to `wait` for open batches that hold some of them to be finished;
    /// tells those that are not that they are withdrawn.
    pub(super) fn revoke(&self, partitions: &[Partition], wait: Duration) {
        let mut state = self.lock();
        state.forget(partitions);
        let until = Instant::now() + wait;
        while state.is_open(partitions) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tracing::warn!(?wait, "open batches hold revoked partitions and are withdrawn");
                state.withdraw(partitions);
                break;
            }
            state = self.thread.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the consumer with an error, which the caller gets at its next call.
    pub(super) fn fail(&self, error: MessagingError) {
        self.lock().fail(error);
        self.thread.notify_all();
        self.caller.notify_one();
    }
}

#[cfg(test)]
mod tests;
