//! The ledger's intake while the day is lived: what comes is taken in, by the code of `gpuledger serve`. Nothing is posted before the horizon
//! is set, when the day is over: until then each batch would post hours that the next one changes.

use super::way::Way;
use anyhow::{Result, ensure};
use gpuledger_api::Clock;
use gpuledger_ledger::batch::Tally;
use gpuledger_ledger::consume::consume;
use gpuledger_ledger::{LedgerError, inbox};
use gpuledger_storage::Db;
use gpuledger_telemetry::shutdown::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long the inbox gathers what comes before it is looked at again: fewer and larger transactions.
const REST: Duration = Duration::from_millis(1_000);
/// How often it is asked whether everything has been read.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long the ledger may take to read what was sent, once everything is sent.
const PATIENCE: Duration = Duration::from_secs(180);

/// The task that takes in.
pub(crate) struct Intake {
    db: Db,
    way: Way,
    task: JoinHandle<Result<(), LedgerError>>,
    shutdown: Shutdown,
    tally: Arc<Mutex<Tally>>,
}

impl Intake {
    /// Starts it.
    pub(crate) fn start(db: &Db, way: &Way, clock: Clock) -> Self {
        let (shutdown, tally) = (Shutdown::default(), Arc::new(Mutex::new(Tally::default())));
        let sum = Arc::clone(&tally);
        let told = move |more| *sum.lock().unwrap_or_else(PoisonError::into_inner) += more;
        let (own, token, stop) = (db.clone(), shutdown.token(), shutdown.clone());
        let task = match way.consumed() {
            Some((kafka, settings)) => shutdown.spawn("kafka consumer", async move {
                consume(&own, &kafka, settings, clock, token, told).await
            }),
            None => shutdown.spawn("inbox", async move { drain(&own, clock, stop, told).await }),
        };
        Self { db: db.clone(), way: way.clone(), task, shutdown, tally }
    }

    /// What has come so far.
    pub(crate) fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what is still on its way, once everything is sent, and ends. Says what came.
    ///
    /// # Errors
    /// The brokers, the database, or a way that does not become empty.
    pub(crate) async fn end(self, tell: impl Fn(Tally)) -> Result<Tally> {
        let begun = Instant::now();
        loop {
            let unread = self.way.unread(&self.db).await?;
            if unread.is_empty() || self.task.is_finished() {
                break;
            }
            ensure!(begun.elapsed() < PATIENCE, "the ledger does not read on: {}", unread.join(", "));
            tell(self.tally());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.shutdown.begin();
        self.task.await??;
        Ok(*self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes from the inbox until told to end, and then what is left.
async fn drain(
    db: &Db,
    clock: Clock,
    stop: Shutdown,
    mut told: impl FnMut(Tally),
) -> Result<(), LedgerError> {
    loop {
        let is_last = stop.token().is_cancelled();
        while let Some(tally) = inbox::drain(db, clock()).await? {
            told(tally);
        }
        if is_last {
            return Ok(());
        }
        tokio::select! {
            () = stop.begun() => {}
            () = tokio::time::sleep(REST) => {}
        }
    }
}
