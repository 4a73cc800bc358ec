//! The ledger as a service: it consumes from Kafka where there is one, drains the inbox, settles what telemetry touched, and moves the horizon
//! with the clock.

mod quiet;

use crate::archive::{self, Kept, Policy};
use crate::batch::Tally;
use crate::consume::{Clock, consume};
use crate::error::LedgerError;
use crate::measured;
use crate::pack::{self, Schedule};
use crate::progress::Progress;
use crate::{horizon, inbox, parking, residue, unsettled};
use gpuledger_archive::ArchiveSettings;
use gpuledger_messaging::{ConsumerSettings, KafkaSettings};
use gpuledger_storage::Db;
use gpuledger_storage::inbox::Listener;
use gpuledger_telemetry::health::{Health, Part};
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::names::{
    LEDGER_FACTS, LEDGER_HORIZON, LEDGER_PARKED, LEDGER_UNARCHIVED, LEDGER_WINDOWS,
};
use gpuledger_telemetry::shutdown::Shutdown;
use prometheus::{IntCounterVec, IntGauge};
use quiet::Quiet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the inbox is looked at even where no notice came.
const INBOX_EVERY: Duration = Duration::from_millis(500);
/// How often what telemetry touched is settled.
const SETTLE_EVERY: Duration = Duration::from_secs(1);
/// While nodes catch up, their silences change with each batch: settling waits until none does, but no longer than this.
const SETTLE_LONGEST: Duration = Duration::from_secs(30);
/// Settling holds every lock, so it rests so many times as long as it took: batches get the rest of the time.
const SETTLE_REST: u32 = 4;
/// While a backlog comes in, its facts wait, but no longer than this. Its consumer settles them once it is in.
const BACKLOG_LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked whether an hour of telemetry is to be packed.
const PACK_EVERY: Duration = Duration::from_millis(250);
/// How often partitions are made ahead, telemetry that is due is archived, and old telemetry is let go.
const KEEP_EVERY: Duration = Duration::from_secs(300);
/// How often signals that are due are looked for.
const SIGNALS_EVERY: Duration = Duration::from_millis(500);
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
    /// Where telemetry is archived, when, and how long it stays.
    pub keeping: (ArchiveSettings, Policy),
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
    let LedgerSettings { db, kafka, keeping, clock, health, metrics: _ } = settings;
    let outlet = kafka.as_ref().map(|(kafka, _)| kafka.clone());
    if let Some((kafka, consumer)) = kafka {
        let reading = Reading {
            db: db.clone(),
            clock: Clock::clone(&clock),
            kafka: kafka.clone(),
            group: consumer.group.clone(),
            topics: consumer.topics.clone(),
        };
        shutdown.spawn("progress", reading.follow(shutdown.clone()));
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
    shutdown.spawn("backlog", ledger.clone().settle_backlog(shutdown.clone()));
    shutdown.spawn("packing", ledger.clone().pack(shutdown.clone()));
    shutdown.spawn("signals", ledger.clone().signal(outlet, shutdown.clone()));
    shutdown.spawn("keeping", ledger.clone().keep(keeping, shutdown.clone()));
    shutdown.spawn("horizon", ledger.follow_clock(shutdown.clone()));
    Ok(())
}

#[derive(Clone)]
struct Counters {
    facts: IntCounterVec,
    windows: IntCounterVec,
    horizon: IntGauge,
    parked: IntGauge,
    unarchived: IntGauge,
    /// Silences that changed since the process began.
    silences: Arc<AtomicU64>,
}

impl Counters {
    fn new(metrics: &Metrics) -> Result<Self, prometheus::Error> {
        Ok(Self {
            facts: metrics.counters(LEDGER_FACTS)?,
            windows: metrics.counters(LEDGER_WINDOWS)?,
            horizon: metrics.gauge(LEDGER_HORIZON)?,
            parked: metrics.gauge(LEDGER_PARKED)?,
            unarchived: metrics.gauge(LEDGER_UNARCHIVED)?,
            silences: Arc::default(),
        })
    }

    fn add(&self, tally: Tally) {
        let facts = [("accepted", tally.accepted), ("repeated", tally.repeated), ("parked", tally.parked)];
        for (outcome, count) in facts {
            self.facts.with_label_values(&[outcome]).inc_by(count);
        }
        self.windows.with_label_values(&["accepted"]).inc_by(tally.windows);
        self.silences.fetch_add(tally.silences, Ordering::Relaxed);
    }
}

/// What is read of Kafka.
struct Reading {
    db: Db,
    clock: Clock,
    kafka: KafkaSettings,
    group: String,
    topics: Vec<String>,
}

impl Reading {
    /// Notes how far the partitions are read, as often as the horizon moves.
    async fn follow(self, shutdown: Shutdown) {
        let mut progress = Progress::default();
        loop {
            let of = (&self.kafka, self.topics.as_slice());
            if let Err(error) = progress.note(&self.db, of, &self.group, (self.clock)()).await {
                tracing::warn!(%error, "how far the partitions are read is not known now");
            }
            if ended(&shutdown, HORIZON_EVERY).await {
                return;
            }
        }
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
        let (mut pause, mut quiet) = (SETTLE_EVERY, Quiet::within(SETTLE_LONGEST));
        while !ended(&shutdown, pause).await {
            let began = Instant::now();
            if !quiet.has_come(self.counters.silences.load(Ordering::Relaxed), began) {
                pause = SETTLE_EVERY;
                continue;
            }
            if let Err(error) = horizon::settle_touched(&self.db).await
                && self.failed(&error, &shutdown).await
            {
                return;
            }
            pause = SETTLE_EVERY.max(began.elapsed() * SETTLE_REST);
        }
    }

    /// Settles what waits in a backlog that does not end, or was left by a process that did.
    async fn settle_backlog(self, shutdown: Shutdown) {
        while !ended(&shutdown, BACKLOG_LONGEST).await {
            let settled = async {
                while unsettled::settle_some(&self.db, unsettled::AT_ONCE).await?
                    && !shutdown.token().is_cancelled()
                {}
                Ok(())
            };
            if let Err(error) = settled.await
                && self.failed(&error, &shutdown).await
            {
                return;
            }
        }
    }

    /// Alarms violations and publishes signals that are due.
    async fn signal(self, kafka: Option<KafkaSettings>, shutdown: Shutdown) {
        let producer = loop {
            match kafka.as_ref().map(residue::producer).transpose() {
                Ok(producer) => break producer,
                Err(error) => {
                    if self.failed(&error, &shutdown).await {
                        return;
                    }
                }
            }
        };
        let outlet = kafka.as_ref().zip(producer.as_ref());
        while !ended(&shutdown, SIGNALS_EVERY).await {
            if let Err(error) = residue::publish(&self.db, outlet, (self.clock)()).await
                && self.failed(&error, &shutdown).await
            {
                return;
            }
        }
    }

    async fn pack(self, shutdown: Shutdown) {
        while let Err(error) = pack::begin(&self.db).await {
            if self.failed(&error, &shutdown).await {
                return;
            }
        }
        let mut schedule = Schedule::default();
        while !ended(&shutdown, PACK_EVERY).await {
            let packed = async {
                pack::due(&self.db, &mut schedule, (self.clock)()).await?;
                measured::settle(&self.db).await
            };
            if let Err(error) = packed.await
                && self.failed(&error, &shutdown).await
            {
                return;
            }
        }
    }

    /// An archive out of reach holds nobody up: telemetry stays in the database until it is back, and the log and a metric say so.
    async fn keep(self, (place, policy): (ArchiveSettings, Policy), shutdown: Shutdown) {
        loop {
            let now = (self.clock)();
            if let Err(error) = self.keep_once(&place, policy, now).await {
                tracing::warn!(%error, archive = place.url, "telemetry waits in the database");
            }
            match archive::unarchived_hours(&self.db, policy, now).await {
                Ok(hours) => self.counters.unarchived.set(hours),
                Err(error) => tracing::warn!(%error, "cannot count the hours to be archived"),
            }
            if ended(&shutdown, KEEP_EVERY).await {
                return;
            }
        }
    }

    async fn keep_once(
        &self,
        place: &ArchiveSettings,
        policy: Policy,
        now: gpuledger_domain::time::Instant,
    ) -> Result<(), LedgerError> {
        archive::make_ahead(&self.db, now).await?;
        let kept = archive::maintain(&self.db, place, policy, now).await?;
        if kept != Kept::default() {
            tracing::info!(
                files = kept.files,
                windows = kept.windows,
                orphans = kept.orphans,
                dropped = kept.dropped.join(" "),
                stay = kept.stay.join(" "),
                "telemetry was kept in order"
            );
        }
        Ok(())
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
