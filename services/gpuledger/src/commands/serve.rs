//! The services in one process, until stopped.

use super::audit::keys;
use super::backup::must_fit;
use super::writer;
use crate::clock::now;
use crate::findings::keep_fresh;
use crate::outcome::{OutOfReach, Outcome, Usage};
use crate::settings::Settings;
use anyhow::{Context, Result};
use gpuledger_api::token::{SigningKey, VerifyKey, generate_ed25519_pem, write_key_file};
use gpuledger_api::{ApiSettings, RateLimit, serve as serve_api, serve_admin};
use gpuledger_audit::serve::{AuditSettings, serve as serve_audit};
use gpuledger_audit::witness::Witnesses;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::serve::{LedgerSettings, serve as serve_ledger};
use gpuledger_messaging::{ConsumerSettings, KafkaSettings, MessagingError, Topic, ensure_topics, manifest};
use gpuledger_storage::{Role, audit_log, connect};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::logs::{LogFormat, init};
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::shutdown::Shutdown;
use gpuledger_telemetry::terminal::say;
use gpuledger_trail::sealed::must_seal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long tasks may take to end.
const DEADLINE: Duration = Duration::from_secs(25);

/// How long a cluster may take to come up before the service gives up.
const KAFKA_PATIENCE: Duration = Duration::from_secs(60);
const KAFKA_PAUSE: Duration = Duration::from_secs(1);

/// Runs the roles until a signal.
pub(crate) async fn run(settings: &Settings, only: &[String]) -> Result<Outcome> {
    init(if settings.log_json { LogFormat::Json } else { LogFormat::Human }, &settings.log)
        .map_err(|e| Usage(e.to_string()))?;
    let wanted = |role: &str| only.is_empty() || only.iter().any(|word| word == role);
    let (shutdown, health) = (Shutdown::default(), Health::default());
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"))?;
    shutdown.on_signals().context("signals")?;
    if wanted("ledger") {
        start_ledger(settings, &shutdown, &health, &metrics).await?;
    }
    if wanted("audit") {
        start_audit(settings, &shutdown, &health, &metrics).await?;
    }
    let running =
        if wanted("api") { Some(start_api(settings, &shutdown, &health, &metrics).await?) } else { None };
    if running.is_some() {
        start_findings(settings, &shutdown).await?;
    }
    let (admin, serving) = serve_admin(&settings.admin_bind, health, metrics, shutdown.token())?;
    if let Some(running) = &running {
        say(&format!("api      http://{}", running.api));
    }
    say(&format!("health   http://{admin}/readyz"));
    say(&format!("metrics  http://{admin}/metrics"));
    shutdown.begun().await;
    let clean = shutdown.wait(DEADLINE).await;
    if let Some(running) = running {
        running.finished().await?;
    }
    serving.await??;
    clean?;
    Ok(Outcome::Done)
}

/// The machine's clock at each call; a test's instant stays what it is.
fn clock() -> Result<Arc<dyn Fn() -> Instant + Send + Sync>> {
    let first = now()?;
    Ok(Arc::new(move || now().unwrap_or(first)))
}

async fn start_ledger(
    settings: &Settings,
    shutdown: &Shutdown,
    health: &Health,
    metrics: &Metrics,
) -> Result<()> {
    let db = writer(settings).await?;
    // Before anything is taken in: an event that names a person would stop it later.
    must_seal(&mut db.begin().await?).await?;
    let kafka = match settings.kafka() {
        None => None,
        Some(kafka) => {
            // Before topics are made: on an empty cluster a restored database must not find its own names.
            reach(shutdown, async || must_fit(&db, &kafka, settings).await).await?;
            reach(shutdown, async || have_topics(settings, &kafka).await)
                .await
                .map_err(|error| OutOfReach(error.to_string()))?;
            let topics =
                [Topic::Facts, Topic::Telemetry, Topic::Work, Topic::Signals].map(|topic| kafka.topic(topic));
            let mut consumer =
                ConsumerSettings::new(&settings.kafka_group, &settings.kafka_instance, topics.to_vec());
            consumer.session_timeout = Duration::from_secs(settings.kafka_session_seconds);
            Some((kafka, consumer))
        }
    };
    let ledger = LedgerSettings {
        db,
        kafka,
        keeping: (settings.archive(), settings.keeping()),
        clock: clock()?,
        health: health.clone(),
        metrics: metrics.clone(),
    };
    Ok(serve_ledger(ledger, shutdown)?)
}

/// Asks the cluster, again and again while it is out of reach: a service and its broker may be started, or restarted, at the same moment.
async fn reach(shutdown: &Shutdown, ask: impl AsyncFn() -> Result<()>) -> Result<()> {
    let deadline = tokio::time::Instant::now() + KAFKA_PATIENCE;
    loop {
        let Err(error) = ask().await else { return Ok(()) };
        let is_over = tokio::time::Instant::now() >= deadline || shutdown.token().is_cancelled();
        if is_over || !is_passing(&error) {
            return Err(error);
        }
        tracing::warn!(%error, "waiting for Kafka");
        tokio::time::sleep(KAFKA_PAUSE).await;
    }
}

fn is_passing(error: &anyhow::Error) -> bool {
    let away = |cause: &MessagingError| cause.is_out_of_reach();
    error.chain().any(|cause| cause.is::<OutOfReach>() || cause.downcast_ref().is_some_and(away))
}

async fn have_topics(settings: &Settings, kafka: &KafkaSettings) -> Result<()> {
    Ok(ensure_topics(kafka, &manifest(kafka), settings.kafka_replication).await?)
}

async fn start_audit(
    settings: &Settings,
    shutdown: &Shutdown,
    health: &Health,
    metrics: &Metrics,
) -> Result<()> {
    let db = writer(settings).await?;
    let published = audit_log::latest_checkpoint(&mut *db.snapshot().await?).await?;
    let audit = AuditSettings {
        seal: keys::seal(settings)?,
        signing: keys::signing(settings, published.is_some())?,
        witnesses: Witnesses::new(&settings.audit_witnesses).map_err(|error| Usage(error.to_string()))?,
        clock: clock()?,
        health: health.clone(),
        metrics: metrics.clone(),
        db,
    };
    Ok(serve_audit(audit, shutdown)?)
}

async fn start_api(
    settings: &Settings,
    shutdown: &Shutdown,
    health: &Health,
    metrics: &Metrics,
) -> Result<gpuledger_api::Running> {
    let url = settings.api_database_url.as_deref().map_or_else(|| settings.database_url(), Ok)?;
    let api = ApiSettings {
        bind: settings.api_bind.clone(),
        admin_bind: None,
        db: connect(url, Role::Api).await?,
        key: verify_key(&settings.jwt_key_file)?,
        seal: keys::seal(settings)?,
        now: clock()?,
        rate: RateLimit::default(),
        workers: None,
        health: health.clone(),
        metrics: metrics.clone(),
    };
    Ok(serve_api(api, shutdown.token()).await?)
}

/// Findings are derived from all facts, which the API's role may not read: this takes the writer's login, where it is given.
async fn start_findings(settings: &Settings, shutdown: &Shutdown) -> Result<()> {
    if settings.findings_minutes > 0 && settings.database_url().is_ok() {
        let every = Duration::from_secs(60 * u64::from(settings.findings_minutes));
        shutdown.spawn("findings", keep_fresh(writer(settings).await?, every, shutdown.clone()));
    }
    Ok(())
}

/// The key tokens are verified with: the public key of the file, or the public part of its private key.
fn verify_key(path: &Path) -> Result<VerifyKey> {
    let pem = read_or_make(path)?;
    let key = VerifyKey::from_pem(pem.as_bytes())
        .or_else(|_| SigningKey::from_pem(pem.as_bytes()).and_then(|key| key.verify_key()));
    key.map_err(|error| Usage(format!("{}: {error}", path.display())).into())
}

/// Reads the key file; one that is not there is made, for development, readable by its owner alone.
pub(crate) fn read_or_make(path: &Path) -> Result<String> {
    if !path.exists() {
        let pem = generate_ed25519_pem()?;
        write_key_file(path, &pem)?;
        gpuledger_telemetry::terminal::say_err(&format!("made a development key in {}", path.display()));
    }
    Ok(std::fs::read_to_string(path).map_err(|error| Usage(format!("{}: {error}", path.display())))?)
}
