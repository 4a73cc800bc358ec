//! The log as a role of `serve`: what waits gets its leaf each second, the log says each minute that it lives, heads are published, and witnesses are asked beside it.

use crate::error::AuditError;
use crate::publish::Publisher;
use crate::sequencer::{ROUND_LEAVES_MAX, Round, Sequencer};
use crate::socket::Signing;
use crate::witness::Witnesses;
use gpuledger_domain::time::{Instant, MINUTE_US};
use gpuledger_storage::Db;
use gpuledger_telemetry::health::{Health, Part};
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::names::{AUDIT_FAILURES, AUDIT_SIZE};
use gpuledger_telemetry::shutdown::Shutdown;
use gpuledger_trail::keys::Seal;
use prometheus::{IntCounterVec, IntGauge};
use std::sync::Arc;
use std::time::Duration;

/// How often what waits is sequenced and published. Ten times within the ten seconds that publishing may take.
const EVERY: Duration = Duration::from_secs(1);
/// How often witnesses are asked; a minute is what a cosignature may take.
const WITNESS_EVERY: Duration = Duration::from_secs(15);
/// Pause after a failure that may pass.
const FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// The server clock.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What the role needs.
pub struct AuditSettings {
    /// Connections of the writer.
    pub db: Db,
    /// Seals keys of subjects.
    pub seal: Seal,
    /// The way to the signer.
    pub signing: Signing,
    /// Witnesses, or none.
    pub witnesses: Witnesses,
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
pub fn serve(settings: AuditSettings, shutdown: &Shutdown) -> Result<(), prometheus::Error> {
    let AuditSettings { db, seal, signing, witnesses, clock, health, metrics } = settings;
    let failures = metrics.counters(AUDIT_FAILURES)?;
    let watch =
        |name| Watch { part: health.part(name), failures: failures.clone(), shutdown: shutdown.clone() };
    let sequencer = Sequencer::new(db.clone(), seal);
    shutdown.spawn("audit sequencer", append(sequencer, Arc::clone(&clock), watch("audit sequencer")));
    let publisher = Publisher::new(db.clone(), signing);
    let (size, publishing) = (metrics.gauge(AUDIT_SIZE)?, watch("audit publisher"));
    shutdown.spawn("audit publisher", publish(publisher, Arc::clone(&clock), size, publishing));
    if !witnesses.is_empty() {
        shutdown.spawn("witnesses", ask(witnesses, db, clock, shutdown.clone()));
    }
    Ok(())
}

/// Where a task says how it fares.
struct Watch {
    part: Part,
    failures: IntCounterVec,
    shutdown: Shutdown,
}

impl Watch {
    /// Waits for the next round; true where the service ends meanwhile. A refusal to sign is for a person to look at: the log says it, a metric counts
    /// it, and nothing else stops; not even this process is taken out of service for it.
    async fn rest(&self, done: &Result<Duration, AuditError>) -> bool {
        let pause = match done {
            Ok(pause) => {
                self.part.ready();
                *pause
            }
            Err(error) => {
                tracing::error!(%error, "the audit log does not go on");
                self.failures.with_label_values(&[word(error)]).inc();
                match word(error) {
                    "storage" => self.part.waiting(error),
                    _ => self.part.ready(),
                }
                FAILURE_PAUSE
            }
        };
        ended(&self.shutdown, pause).await
    }
}

/// What waits gets its leaf, and each minute one says that the log lives.
async fn append(mut sequencer: Sequencer, clock: Clock, watch: Watch) {
    let mut beaten = None;
    loop {
        let done = append_once(&mut sequencer, &mut beaten, clock()).await;
        if watch.rest(&done).await {
            return;
        }
    }
}

async fn append_once(
    sequencer: &mut Sequencer,
    beaten: &mut Option<Instant>,
    now: Instant,
) -> Result<Duration, AuditError> {
    let round = sequencer.drain(now).await?;
    if beaten.is_none_or(|last: Instant| now.as_micros() - last.as_micros() >= MINUTE_US) {
        sequencer.beat(now).await?;
        *beaten = Some(now);
    }
    let is_behind = matches!(round, Round::Appended(leaves) if leaves >= ROUND_LEAVES_MAX);
    Ok(if is_behind { Duration::ZERO } else { EVERY })
}

/// Beside the sequencer, so that a long backlog is published piece by piece.
async fn publish(mut publisher: Publisher, clock: Clock, size: IntGauge, watch: Watch) {
    loop {
        let done = publisher.publish(clock()).await;
        if let Ok(leaves) = &done {
            size.set(i64::try_from(*leaves).unwrap_or(i64::MAX));
        }
        if watch.rest(&done.map(|_| EVERY)).await {
            return;
        }
    }
}

fn word(error: &AuditError) -> &'static str {
    match error {
        AuditError::Rehash { .. } | AuditError::Behind { .. } | AuditError::Rewritten { .. } => "refused",
        AuditError::Signer(_) => "signer",
        AuditError::Storage(_) | AuditError::Stored(_) | AuditError::BrokenOff => "storage",
        AuditError::Keys(_) | AuditError::NotErased(_) => "keys",
    }
}

async fn ask(mut witnesses: Witnesses, db: Db, clock: Clock, shutdown: Shutdown) {
    while !ended(&shutdown, WITNESS_EVERY).await {
        if let Err(error) = witnesses.show(&db, clock()).await {
            tracing::warn!(%error, "witnesses could not be asked");
        }
    }
}

async fn ended(shutdown: &Shutdown, pause: Duration) -> bool {
    let token = shutdown.token();
    tokio::select! {
        () = token.cancelled() => true,
        () = tokio::time::sleep(pause) => false,
    }
}
