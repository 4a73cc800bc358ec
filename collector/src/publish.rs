//! The publisher: takes records from the spool in order, sends them, and lets go of what has arrived.
//!
//! One batch is on its way at a time, so the order of a node holds: a batch that got stuck is sent again before anything behind
//! it. What has piled up is sent at a bounded rate, so that a thousand nodes that come back do not storm the brokers, and
//! a broker that is away is asked with growing pauses.

mod pace;
mod settings;
mod status;
#[cfg(test)]
mod tests;

pub use settings::PublishSettings;
pub use status::{PublishStatus, PublishWatch};

use crate::sink::{Sent, Sink, Stopped, Taken};
use crate::spool::points::point;
use crate::spool::{Outgoing, Reader, Spool};
use pace::{Backoff, Bucket};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a sink may take to let go of its connections.
const CLOSE: Duration = Duration::from_secs(2);

/// Sends what the spool keeps. It does small blocking reads and writes of files: run it on a runtime, or a thread, of its own.
#[derive(Debug)]
pub struct Publisher<S> {
    spool: Spool,
    sink: S,
    settings: PublishSettings,
    watch: PublishWatch,
}

/// How a publisher ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Records that stay in the spool for the next start.
    pub left: u64,
}

impl<S: Sink> Publisher<S> {
    /// Sends what `spool` keeps to `sink`.
    pub fn new(spool: Spool, sink: S, settings: PublishSettings) -> Self {
        Self { spool, sink, settings, watch: PublishWatch::default() }
    }

    /// How it goes, from outside.
    pub fn watch(&self) -> PublishWatch {
        self.watch.clone()
    }

    /// Runs until `stop`, then sends what is left, for up to the drain's time. Cancel `stop` after the last record was appended.
    pub async fn run(mut self, stop: CancellationToken) -> Drained {
        let drain = self.settings.drain();
        tokio::select! {
            () = self.deliver(&stop) => {}
            () = drain_is_over(&stop, drain) => {}
        }
        self.sink.close(CLOSE).await;
        Drained { left: self.spool.status().waiting }
    }

    /// Sends until `stop` and nothing is left.
    async fn deliver(&mut self, stop: &CancellationToken) {
        let mut reader = self.spool.reader();
        let mut backoff = Backoff::new(&self.settings);
        let mut bucket = Bucket::new(self.settings.backfill_per_second, Instant::now());
        loop {
            let batch = self.next_batch(&mut reader);
            let stopped = match batch {
                Ok(batch) if batch.is_empty() => {
                    if stop.is_cancelled() {
                        return;
                    }
                    tokio::select! {
                        () = self.spool.changed() => {}
                        () = stop.cancelled() => {}
                    }
                    continue;
                }
                Ok(batch) => {
                    let due = bucket.take(batch.len(), Instant::now());
                    wait_until(due, stop).await;
                    self.send(batch).await
                }
                Err(stopped) => Some(stopped),
            };
            match stopped {
                None => backoff.reset(),
                Some(stopped) => {
                    let pause = backoff.next(stopped.wait);
                    self.watch.stuck(&stopped.why, pause);
                    if stop.is_cancelled() {
                        // The drain's time bounds it.
                        sleep(pause).await;
                    } else if !wait_until(Instant::now() + pause, stop).await {
                        // One more try before the end, without waiting out a long pause.
                        backoff.reset();
                    }
                    reader = self.spool.reader();
                }
            }
        }
    }

    fn next_batch(&self, reader: &mut Reader) -> Result<Vec<Outgoing>, Stopped> {
        let stopped = |why: crate::spool::SpoolError| Stopped { why: why.to_string(), wait: None };
        reader.next(self.settings.records(), self.settings.bytes()).map_err(stopped)
    }

    /// Sends a batch to its end, unless the sink stops: why it did.
    async fn send(&mut self, mut batch: Vec<Outgoing>) -> Option<Stopped> {
        while !batch.is_empty() {
            let events = batch.iter().map(|outgoing| outgoing.event.clone()).collect();
            point("publish::before-send");
            let Sent { taken, stopped } = self.sink.send(events).await;
            point("publish::after-send");
            if taken.is_empty() {
                return Some(
                    stopped
                        .unwrap_or_else(|| Stopped { why: "the sink took nothing".to_owned(), wait: None }),
                );
            }
            batch = self.settle(batch, taken);
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    /// Lets go of what arrived. What is still to be sent: in place of a refused window its gap, and all behind it.
    fn settle(&self, batch: Vec<Outgoing>, taken: Vec<Taken>) -> Vec<Outgoing> {
        let mut arrived = None;
        let mut fates = taken.into_iter();
        let mut rest = batch.into_iter();
        for outgoing in rest.by_ref() {
            let Some(fate) = fates.next() else {
                return self.acknowledge(arrived, std::iter::once(outgoing).chain(rest).collect());
            };
            match fate {
                Taken::Stored => self.watch.arrived(),
                Taken::NotEntitled(why) => self.watch.not_entitled(&why),
                Taken::Refused(why) => {
                    if let Some(instead) = self.spool.set_aside(&outgoing, &why) {
                        // What lies behind it may have arrived already; it is sent again, in order.
                        return self.acknowledge(arrived, std::iter::once(instead).chain(rest).collect());
                    }
                }
            }
            arrived = Some(outgoing.after);
        }
        self.acknowledge(arrived, Vec::new())
    }

    fn acknowledge(&self, arrived: Option<crate::spool::Place>, rest: Vec<Outgoing>) -> Vec<Outgoing> {
        if let Some(place) = arrived {
            point("publish::before-acknowledge");
            self.spool.acknowledge(place);
        }
        rest
    }
}

/// Waits for its turn, but not once the process is to end. Whether it came.
async fn wait_until(due: Instant, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = sleep_until(due) => true,
        () = stop.cancelled() => false,
    }
}

async fn drain_is_over(stop: &CancellationToken, drain: Duration) {
    stop.cancelled().await;
    sleep(drain).await;
}
