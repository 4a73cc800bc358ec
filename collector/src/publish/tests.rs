//! The publisher against a sink that does what the test says.

use super::*;
use crate::spool::testing::{folder, node, window};
use crate::spool::{SpoolSettings, Sync};
use gpuledger_wire::bodies::TelemetryWindow;
use gpuledger_wire::{EventData, decode_structured};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const STEP_US: i64 = 10_000_000;
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What the sink does with one batch.
enum Deed {
    /// Takes all of it.
    Take,
    /// Takes so many, then stops.
    Stop(usize, Option<Duration>),
    /// Takes so many, refuses the next for ever.
    Refuse(usize),
    /// Never answers.
    Hang,
}

#[derive(Clone, Default)]
struct Fake {
    script: Arc<Mutex<VecDeque<Deed>>>,
    /// When each batch came.
    batches: Arc<Mutex<Vec<Instant>>>,
    /// What is stored.
    stored: Arc<Mutex<Vec<TelemetryWindow>>>,
}

impl Fake {
    fn will(deeds: impl IntoIterator<Item = Deed>) -> Self {
        let fake = Self::default();
        fake.script.lock().unwrap().extend(deeds);
        fake
    }

    fn sequences(&self) -> Vec<i64> {
        self.stored.lock().unwrap().iter().map(|window| window.sequence.get()).collect()
    }
}

impl Sink for Fake {
    async fn send(&mut self, events: Vec<Vec<u8>>) -> Sent {
        let read: Vec<_> = events.iter().map(|event| decode_structured(event).unwrap()).collect();
        self.batches.lock().unwrap().push(Instant::now());
        let deed = self.script.lock().unwrap().pop_front().unwrap_or(Deed::Take);
        let mut taken = vec![Taken::Stored; events.len()];
        let mut stopped = None;
        match deed {
            Deed::Take => {}
            Deed::Stop(after, wait) => {
                taken.truncate(after);
                stopped = Some(Stopped { why: "away".to_owned(), wait });
            }
            Deed::Refuse(nth) => {
                taken.truncate(nth);
                taken.push(Taken::Refused("never".to_owned()));
            }
            Deed::Hang => std::future::pending::<()>().await,
        }
        let count = taken.iter().filter(|fate| **fate == Taken::Stored).count();
        let windows = read.into_iter().take(count).filter_map(|event| match event.data {
            EventData::TelemetryWindow(window) => Some(window),
            _ => None,
        });
        self.stored.lock().unwrap().extend(windows);
        Sent { taken, stopped }
    }

    async fn close(self, _deadline: Duration) {}
}

/// A spool with so many windows, and a publisher of it.
fn publisher(
    windows: i64,
    sink: Fake,
    settings: PublishSettings,
) -> (tempfile::TempDir, Spool, Publisher<Fake>) {
    let folder = folder();
    let spool =
        SpoolSettings { folder: folder.path().join("spool"), sync: Sync::Never, ..SpoolSettings::default() };
    let spool = Spool::open(spool, node()).unwrap();
    keep(&spool, 0, windows);
    let publisher = Publisher::new(spool.clone(), sink, settings);
    (folder, spool, publisher)
}

fn keep(spool: &Spool, from: i64, to: i64) {
    for n in from..to {
        spool.append_window(window(n * STEP_US, (n + 1) * STEP_US)).unwrap();
    }
}

fn quick() -> PublishSettings {
    PublishSettings { batch_records: 4, backfill_per_second: 0, ..PublishSettings::default() }
}

/// Runs until everything is sent.
async fn drain(publisher: Publisher<Fake>) -> Drained {
    let stop = CancellationToken::new();
    stop.cancel();
    tokio::time::timeout(PATIENCE, publisher.run(stop)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_is_sent_in_order_and_forgotten() {
    let sink = Fake::default();
    let (_folder, spool, publisher) = publisher(10, sink.clone(), quick());
    assert_eq!(drain(publisher).await, Drained { left: 0 });
    assert_eq!(sink.sequences(), (0..10).collect::<Vec<_>>());
    assert_eq!(spool.status().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn what_did_not_arrive_is_sent_again_before_what_follows() {
    let sink = Fake::will([Deed::Stop(0, None), Deed::Stop(2, None), Deed::Stop(0, None)]);
    let (_folder, _spool, publisher) = publisher(6, sink.clone(), quick());
    let watch = publisher.watch();
    assert_eq!(drain(publisher).await, Drained { left: 0 });
    assert_eq!(sink.sequences(), (0..6).collect::<Vec<_>>());
    let status = watch.status();
    assert_eq!((status.arrived, status.failures, status.failures_in_a_row, status.stuck), (6, 3, 0, None));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_asks_for_time_gets_it() {
    let sink = Fake::will([Deed::Stop(0, Some(Duration::from_secs(90)))]);
    let settings = PublishSettings { drain_ms: 600_000, ..quick() };
    let (_folder, _spool, publisher) = publisher(1, sink.clone(), settings);
    drain(publisher).await;
    let batches = sink.batches.lock().unwrap();
    assert!(batches[1] - batches[0] >= Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_refused_window_makes_way_and_its_time_is_told_under_its_sequence() {
    let sink = Fake::will([Deed::Refuse(1)]);
    let (_folder, spool, publisher) = publisher(4, sink.clone(), quick());
    assert_eq!(drain(publisher).await, Drained { left: 0 });
    assert_eq!(sink.sequences(), [0, 1, 2, 3], "no hole");
    let stored = sink.stored.lock().unwrap();
    assert_eq!(stored[1].gaps[0].reason.as_str(), "refused");
    assert_eq!((stored[1].start, stored[1].end), (stored[0].end, stored[2].start));
    assert_eq!(spool.status().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_refuses_everything_does_not_stop_the_rest() {
    let sink = Fake::will((0..4).map(|_| Deed::Refuse(0)));
    let (_folder, spool, publisher) =
        publisher(2, sink.clone(), PublishSettings { batch_records: 1, ..quick() });
    assert_eq!(drain(publisher).await, Drained { left: 0 });
    assert_eq!(sink.sequences(), Vec::<i64>::new());
    assert_eq!(spool.status().refused, 4, "both windows and both gaps");
}

#[tokio::test(start_paused = true)]
async fn what_has_piled_up_is_sent_at_the_set_rate() {
    let sink = Fake::default();
    let settings =
        PublishSettings { batch_records: 10, backfill_per_second: 10, ..PublishSettings::default() };
    let (_folder, spool, publisher) = publisher(100, sink.clone(), settings);
    let start = Instant::now();
    let stop = CancellationToken::new();
    let running = tokio::spawn(publisher.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let sent = sink.stored.lock().unwrap().len();
    assert!((50..=60).contains(&sent), "{sent} windows in 5 seconds");
    while spool.status().waiting > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(start.elapsed() >= Duration::from_secs(9), "{:?}", start.elapsed());
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_drain_is_not_slowed_and_has_an_end() {
    let sink = Fake::will([Deed::Take, Deed::Hang]);
    let settings = PublishSettings {
        batch_records: 10,
        backfill_per_second: 1,
        drain_ms: 7_000,
        ..PublishSettings::default()
    };
    let (_folder, _spool, publisher) = publisher(30, sink.clone(), settings);
    let start = Instant::now();
    assert_eq!(drain(publisher).await, Drained { left: 20 });
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn new_windows_are_sent_as_they_come() {
    let sink = Fake::default();
    let (_folder, spool, publisher) = publisher(0, sink.clone(), PublishSettings::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(publisher.run(stop.clone()));
    for n in 0..5 {
        keep(&spool, n, n + 1);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(sink.sequences().len(), usize::try_from(n + 1).unwrap());
    }
    stop.cancel();
    assert_eq!(running.await.unwrap(), Drained { left: 0 });
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_a_sink_loses_nothing_and_asks_seldom() {
    let sink = Fake::will((0..10_000).map(|_| Deed::Stop(0, None)));
    let (_folder, spool, publisher) = publisher(0, sink.clone(), PublishSettings::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(publisher.run(stop.clone()));
    for n in 0..360 {
        keep(&spool, n, n + 1);
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let asked = sink.batches.lock().unwrap().len();
    assert!((60..=140).contains(&asked), "{asked} tries in an hour, one a minute at the end");
    sink.script.lock().unwrap().clear();
    while spool.status().waiting > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(sink.sequences(), (0..360).collect::<Vec<_>>());
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_is_not_waited_out_when_the_process_is_to_end() {
    let sink = Fake::will((0..12).map(|_| Deed::Stop(0, None)));
    let (_folder, _spool, publisher) = publisher(3, sink.clone(), PublishSettings::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(publisher.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(250)).await;
    sink.script.lock().unwrap().clear();
    let end = Instant::now();
    stop.cancel();
    assert_eq!(running.await.unwrap(), Drained { left: 0 });
    assert_eq!(end.elapsed(), Duration::ZERO);
}
