//! One thread a device: a call into the driver that hangs holds its own device, never the others.
//!
//! A call into C cannot be ended from outside. A lane that does not answer in time is left alone until it does; it gets no new order
//! meanwhile, and what it says late is still worth reading, because every reading carries its own stamps.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// What became of an order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<R> {
    /// The report.
    Done(R),
    /// Nothing was ordered.
    Idle,
    /// No report yet; the order is this old.
    Late(Duration),
    /// The thread is gone.
    Ended,
}

/// A thread that carries out one order at a time.
#[derive(Debug)]
pub(crate) struct Lane<O, R> {
    orders: SyncSender<O>,
    reports: Receiver<R>,
    ordered: Option<Instant>,
}

impl<O: Send + 'static, R: Send + 'static> Lane<O, R> {
    /// Starts the thread. It ends when the lane is dropped and its present order, if any, is done: nobody waits for it.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(crate) fn start(name: &str, mut work: impl FnMut(O) -> R + Send + 'static) -> io::Result<Self> {
        let (orders, inbox) = sync_channel(1);
        let (outbox, reports) = sync_channel(1);
        thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(move || {
            for order in inbox {
                if outbox.send(work(order)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { orders, reports, ordered: None })
    }

    /// Gives an order, unless the last one is still being carried out. That the thread is gone comes out as the answer.
    pub(crate) fn order(&mut self, order: O) {
        if self.ordered.is_none() {
            drop(self.orders.try_send(order));
            self.ordered = Some(Instant::now());
        }
    }

    /// Whether an order is being carried out.
    pub(crate) fn is_busy(&self) -> bool {
        self.ordered.is_some()
    }

    /// Waits for the report until an instant.
    pub(crate) fn answer(&mut self, until: Instant) -> Answer<R> {
        let Some(ordered) = self.ordered else { return Answer::Idle };
        match self.reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(report) => {
                self.ordered = None;
                Answer::Done(report)
            }
            Err(RecvTimeoutError::Timeout) => Answer::Late(ordered.elapsed()),
            Err(RecvTimeoutError::Disconnected) => Answer::Ended,
        }
    }
}

/// Carries out all work at the same time, each in a lane of its own, and waits until the deadline. None: it did not come back by then,
/// or it panicked; its thread is left behind.
///
/// # Errors
/// The system starts no thread.
pub(crate) fn together<K, W, R>(
    works: impl IntoIterator<Item = (K, W)>,
    deadline: Duration,
) -> io::Result<Vec<(K, Option<R>)>>
where
    W: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let mut lanes = Vec::new();
    for (key, work) in works {
        let mut lane = Lane::start("call", |work: W| work())?;
        lane.order(work);
        lanes.push((key, lane));
    }
    let until = Instant::now() + deadline;
    let answer = |mut lane: Lane<W, R>| match lane.answer(until) {
        Answer::Done(report) => Some(report),
        Answer::Idle | Answer::Late(_) | Answer::Ended => None,
    };
    Ok(lanes.into_iter().map(|(key, lane)| (key, answer(lane))).collect())
}

/// Carries out one work. None: as in [`together`].
///
/// # Errors
/// The system starts no thread.
pub(crate) fn within<R: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Option<R>> {
    Ok(together([((), work)], deadline)?.into_iter().find_map(|(_, answer)| answer))
}

/// Enough for the calls into the driver; the default of 2 MiB a thread counts against the memory of a node with many devices.
const STACK_BYTES: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn an_order_is_carried_out() {
        let mut lane = Lane::start("double", |n: u32| n * 2).unwrap();
        assert_eq!(lane.answer(soon()), Answer::Idle);
        lane.order(21);
        assert_eq!(lane.answer(soon()), Answer::Done(42));
        assert!(!lane.is_busy());
    }

    #[test]
    fn a_lane_that_hangs_gets_no_new_order_and_is_heard_when_it_comes_back() {
        let (let_go, gate) = channel::<()>();
        let mut lane = Lane::start("hangs", move |n: u32| {
            gate.recv().unwrap();
            n
        })
        .unwrap();
        lane.order(1);
        assert!(matches!(lane.answer(Instant::now()), Answer::Late(_)));
        lane.order(2);
        let_go.send(()).unwrap();
        assert_eq!(lane.answer(soon()), Answer::Done(1));
        assert_eq!(lane.answer(soon()), Answer::Idle, "the order given meanwhile was not kept");
    }

    #[test]
    fn a_thread_that_ends_is_seen() {
        let mut lane = Lane::start("ends", |n: u32| {
            assert_eq!(n, 0, "this thread ends with a panic");
            n
        })
        .unwrap();
        lane.order(1);
        assert_eq!(lane.answer(soon()), Answer::Ended);
    }

    #[test]
    fn of_several_works_those_that_hang_are_left_behind() {
        let (_never, gate) = channel::<()>();
        let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
        let work = |what: &'static str| {
            let gate = std::sync::Arc::clone(&gate);
            (what, move || match what {
                "hangs" => gate.lock().unwrap().recv().map_or(1, |()| 2),
                "works" => 3,
                _ => panic!("this thread ends with a panic"),
            })
        };
        let answers = together(["hangs", "panics", "works"].map(work), Duration::from_millis(500)).unwrap();
        assert_eq!(answers, [("hangs", None), ("panics", None), ("works", Some(3))]);
        assert_eq!(within(Duration::from_secs(10), || 4).unwrap(), Some(4));
    }
}
