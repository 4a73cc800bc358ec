//! The ledger as a service: it consumes from Kafka where there is one, drains the inbox, settles what telemetry touched, and moves the horizon
//! with the clock.

use crate::batch::Tally;
use crate::consume::{Clock, consume};
use crate::error::LedgerError;
use crate::{horizon, inbox, parking};
use gpuledger_messaging::{ConsumerSettings, KafkaSettings};
use gpuledger_storage::Db;
use gpuledger_storage::inbox::Listener;
use gpuledger_telemetry::health::{Health, Part};
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::names::{LEDGER_FACTS, LEDGER_HORIZON, LEDGER_PARKED, LEDGER_WINDOWS};
use gpuledger_telemetry::shutdown::Shutdown;
use prometheus::{IntCounterVec, IntGauge};
use std::time::{Duration, Instant};

/// How often the inbox is looked at even where no notice came.
const INBOX_EVERY: Duration = Duration::from_millis(500);
/// How often what telemetry touched is settled.
const SETTLE_EVERY: Duration = Duration::from_secs(1);
/// Settling holds every lock, so it rests so many times as long as it took: batches get the rest of the time.
const SETTLE_REST: u32 = 4;
/// How often the horizon follows the clock.
const HORIZON_EVERY: Duration = Duration::from_secs(30);
/// Pause after a failure that may pass.
const FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// What the role needs.
pub struct LedgerSettings {
    /// Connections of the writer.
    pub db: Db,
    /// Kafka and the consumer's place in its group; none: events come by HTTP only.
    pub kafka: Option<(KafkaSettings, ConsumerSettings)>,
    /// The server clock.
    pub clock: Clock,
    /// Health of the process.
    pub health: Health,
    /// Metrics of the process.
    pub metrics: Metrics,
}

/// Starts the role's tasks; they end when `shutdown` begins.
///
/// # Errors
/// A metric was registered before.
pub fn serve(settings: LedgerSettings, shutdown: &Shutdown) -> Result<(), prometheus::Error> {
    let counters = Counters::new(&settings.metrics)?;
    let LedgerSettings { db, kafka, clock, health, metrics: _ } = settings;
    if let Some((kafka, consumer)) = kafka {
        let (db, clock, counters) = (db.clone(), Clock::clone(&clock), counters.clone());
        let (part, token, end) = (health.part("kafka"), shutdown.token(), shutdown.clone());
        shutdown.spawn("kafka consumer", async move {
            part.ready();
            let told = |tally| counters.add(tally);
            if let Err(error) = consume(&db, &kafka, consumer, clock, token, told).await {
                // Without its consumer the process is of no use: it ends, and whoever runs it starts it again.
                tracing::error!(%error, "the consumer ended");
                part.waiting(error);
                end.begin();
            }
        });
    }
    let ledger = Ticking { db, clock, counters, part: health.part("ledger") };
    shutdown.spawn("inbox", ledger.clone().drain_inbox(shutdown.clone()));
    shutdown.spawn("settling", ledger.clone().settle(shutdown.clone()));
    shutdown.spawn("horizon", ledger.follow_clock(shutdown.clone()));
    Ok(())
}

#[derive(Clone)]
struct Counters {
    facts: IntCounterVec,
    windows: IntCounterVec,
    horizon: IntGauge,
    parked: IntGauge,
}

impl Counters {
    fn new(metrics: &Metrics) -> Result<Self, prometheus::Error> {
        Ok(Self {
            facts: metrics.counters(LEDGER_FACTS)?,
            windows: metrics.counters(LEDGER_WINDOWS)?,
            horizon: metrics.gauge(LEDGER_HORIZON)?,
            parked: metrics.gauge(LEDGER_PARKED)?,
        })
    }

    fn add(&self, tally: Tally) {
        let facts = [("accepted", tally.accepted), ("repeated", tally.repeated), ("parked", tally.parked)];
        for (outcome, count) in facts {
            self.facts.with_label_values(&[outcome]).inc_by(count);
        }
        self.windows.with_label_values(&["accepted"]).inc_by(tally.windows);
    }
}

#[derive(Clone)]
struct Ticking {
    db: Db,
    clock: Clock,
    counters: Counters,
    part: Part,
}

impl Ticking {
    async fn drain_inbox(self, shutdown: Shutdown) {
        let mut listener = Listener::new(&self.db).await.ok();
        loop {
            match inbox::drain(&self.db, (self.clock)()).await {
                Ok(Some(tally)) => self.counters.add(tally),
                Ok(None) => {
                    tokio::select! {
                        () = shutdown.begun() => return,
                        () = self.notice(&mut listener) => {}
                    }
                }
                Err(error) => {
                    if self.failed(&error, &shutdown).await {
                        return;
                    }
                }
            }
            if shutdown.token().is_cancelled() {
                return;
            }
        }
    }

    /// Waits for a notice that something lies in the inbox. It only wakes early: it may be lost, so the wait is short in any case.
    async fn notice(&self, listener: &mut Option<Listener>) {
        let heard = match listener {
            Some(listener) => listener.wait(INBOX_EVERY).await.is_ok(),
            None => false,
        };
        if !heard {
            tokio::time::sleep(INBOX_EVERY).await;
            *listener = Listener::new(&self.db).await.ok();
        }
    }

    async fn settle(self, shutdown: Shutdown) {
        let mut pause = SETTLE_EVERY;
        while !ended(&shutdown, pause).await {
            let began = Instant::now();
            if let Err(error) = horizon::settle_touched(&self.db).await
                && self.failed(&error, &shutdown).await
            {
                return;
            }
            pause = SETTLE_EVERY.max(began.elapsed() * SETTLE_REST);
        }
    }

    async fn follow_clock(self, shutdown: Shutdown) {
        loop {
            let now = (self.clock)();
            match self.one_tick(now).await {
                Ok(()) => self.part.ready(),
                Err(error) => {
                    self.failed(&error, &shutdown).await;
                }
            }
            if ended(&shutdown, HORIZON_EVERY).await {
                return;
            }
        }
    }

    async fn one_tick(&self, now: gpuledger_domain::time::Instant) -> Result<(), LedgerError> {
        horizon::accept_clock(&self.db, now).await?;
        self.counters.add(parking::retry_due(&self.db, now).await?);
        let horizon = horizon::advance(&self.db, now).await?;
        self.counters.horizon.set(horizon.as_micros() / 1_000_000);
        self.counters.parked.set(parking::count_open(&self.db).await?);
        Ok(())
    }

    /// Reports a failure and waits a little; true where the service ends meanwhile.
    async fn failed(&self, error: &LedgerError, shutdown: &Shutdown) -> bool {
        tracing::warn!(%error, "the ledger tries again");
        self.part.waiting(error);
        ended(shutdown, FAILURE_PAUSE).await
    }
}

async fn ended(shutdown: &Shutdown, pause: Duration) -> bool {
    let token = shutdown.token();
    tokio::select! {
        () = token.cancelled() => true,
        () = tokio::time::sleep(pause) => false,
    }
}
