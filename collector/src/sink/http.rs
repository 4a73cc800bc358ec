//! `POST /v1/events`, for small sites: as exact as Kafka. An event has arrived when the answer says so, item by item.

mod answer;
mod client;

pub use client::HttpSettings;

use super::{Sent, Sink, SinkError, Stopped, Taken};
use answer::Answer;
use client::Client;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Sends to the HTTP interface.
#[derive(Debug)]
pub struct HttpSink {
    client: Client,
}

impl HttpSink {
    /// Makes the sink. It connects on first use.
    ///
    /// # Errors
    /// No address, or files with token or certificates that cannot be read.
    pub fn new(settings: HttpSettings) -> Result<Self, SinkError> {
        Client::new(settings).map(|client| Self { client })
    }
}

impl Sink for HttpSink {
    async fn send(&mut self, events: Vec<Vec<u8>>) -> Sent {
        let mut client = self.client.clone();
        let (tell, told) = oneshot::channel();
        // Not on the runtime's threads: a request that hangs must not hold up its end.
        let spawned = thread::Builder::new().name("http-sink".to_owned()).spawn(move || {
            let sent = deliver(&mut client, &events);
            if tell.send((client, sent)).is_err() {
                tracing::debug!("an answer came after the time to wait for it was over");
            }
        });
        if let Err(error) = spawned {
            return Sent::until(Vec::new(), format!("start a thread: {error}"));
        }
        match told.await {
            Ok((client, sent)) => {
                self.client = client;
                sent
            }
            Err(_) => Sent::until(Vec::new(), "the thread that sends has ended without an answer"),
        }
    }

    async fn close(self, _deadline: Duration) {}
}

/// Sends a batch; where the service will not have it whole, its halves.
fn deliver(client: &mut Client, events: &[Vec<u8>]) -> Sent {
    match client.post(events) {
        Answer::Taken(taken) => Sent::all(taken),
        Answer::Later { why, wait } => Sent { taken: Vec::new(), stopped: Some(Stopped { why, wait }) },
        Answer::NotLikeThis(why) if events.len() < 2 => Sent::all(vec![Taken::Refused(why)]),
        Answer::NotLikeThis(_) => {
            let (first, second) = events.split_at(events.len() / 2);
            let mut sent = deliver(client, first);
            if sent.stopped.is_none() {
                let rest = deliver(client, second);
                sent.taken.extend(rest.taken);
                sent.stopped = rest.stopped;
            }
            sent
        }
    }
}
