//! Starting and stopping the service.

use crate::admin::serve_admin;
use crate::limit::{Limiter, RateLimit};
use crate::middleware::around;
use crate::routes::configure;
use crate::state::{Clock, State};
use crate::token::VerifyKey;
use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use actix_web::{App, HttpServer};
use gpuledger_storage::{Db, Role, StorageError};
use gpuledger_telemetry::health::{Health, Part};
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::names::HTTP_REQUESTS;
use gpuledger_trail::keys::Seal;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Seconds that open requests may take at the end.
const GRACE_SECONDS: u64 = 10;
/// How often the database is asked whether it is there.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// What the service needs.
#[derive(Clone)]
pub struct ApiSettings {
    /// Address of the API, such as `127.0.0.1:8080`; port 0: any free one.
    pub bind: String,
    /// Address of health and metrics; none: another part of the process serves them.
    pub admin_bind: Option<String>,
    /// Connections of [`Role::Api`].
    pub db: Db,
    /// Verifies tokens.
    pub key: VerifyKey,
    /// Opens keys of subjects, for who may open commitments of the audit log.
    pub seal: Seal,
    /// The clock.
    pub now: Clock,
    /// How much a principal may ask for.
    pub rate: RateLimit,
    /// Threads that answer; none: as many as there are processors.
    pub workers: Option<usize>,
    /// Health of the process; the API reports as its part `api`.
    pub health: Health,
    /// Metrics of the process.
    pub metrics: Metrics,
}

impl fmt::Debug for ApiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiSettings")
            .field("bind", &self.bind)
            .field("admin_bind", &self.admin_bind)
            .finish_non_exhaustive()
    }
}

/// Why the service does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The address is taken or none of this machine.
    #[error("cannot listen on {bind}: {source}")]
    Bind {
        /// Address as configured.
        bind: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The connections are of another role, under which row security does not hold.
    #[error("the API needs database connections of role Api, got {0:?}")]
    Role(Role),
    /// A metric was registered before.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The server broke off.
    #[error("the server broke off: {0}")]
    Server(std::io::Error),
    /// A task of the server ended early.
    #[error("a task of the server ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// A running service.
#[derive(Debug)]
pub struct Running {
    /// Where the API listens.
    pub api: SocketAddr,
    /// Where health and metrics are.
    pub admin: Option<SocketAddr>,
    servers: Vec<JoinHandle<Result<(), ApiError>>>,
}

impl Running {
    /// Completes when the servers have ended after the word, with their open requests answered.
    ///
    /// # Errors
    /// A server broke off by itself.
    pub async fn finished(self) -> Result<(), ApiError> {
        for server in self.servers {
            server.await??;
        }
        Ok(())
    }
}

/// Starts the service on the calling Tokio runtime; it runs until the word.
///
/// # Errors
/// [`ApiError`] where it cannot start.
pub async fn serve(settings: ApiSettings, shutdown: CancellationToken) -> Result<Running, ApiError> {
    if settings.db.role() != Role::Api {
        return Err(ApiError::Role(settings.db.role()));
    }
    let part = settings.health.part("api");
    let requests = settings.metrics.durations(HTTP_REQUESTS)?;
    let state = Data::new(State {
        db: settings.db.clone(),
        key: settings.key,
        seal: settings.seal,
        now: settings.now,
        limiter: Limiter::new(settings.rate),
        requests,
    });
    let app = move || App::new().app_data(state.clone()).configure(configure).wrap(from_fn(around));
    let mut server = HttpServer::new(app).shutdown_timeout(GRACE_SECONDS).disable_signals();
    if let Some(workers) = settings.workers {
        server = server.workers(workers.max(1));
    }
    let (socket, api) = listener(&settings.bind)?;
    let server = server.listen(socket).map_err(ApiError::Server)?.run();
    let mut servers = vec![run(server, shutdown.clone())];
    let mut admin = None;
    if let Some(bind) = &settings.admin_bind {
        let (address, running) = serve_admin(bind, settings.health, settings.metrics, shutdown.clone())?;
        admin = Some(address);
        servers.push(running);
    }
    probe(&settings.db, &part).await;
    tokio::spawn(watch(settings.db, part, shutdown));
    tracing::info!(%api, admin = admin.map(|address| address.to_string()), "the API listens");
    Ok(Running { api, admin, servers })
}

/// Binds an address.
pub(crate) fn listener(bind: &str) -> Result<(TcpListener, SocketAddr), ApiError> {
    let failed = |source| ApiError::Bind { bind: bind.to_owned(), source };
    let listener = TcpListener::bind(bind).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Lets a server run, and ends it at the word.
pub(crate) fn run(server: Server, shutdown: CancellationToken) -> JoinHandle<Result<(), ApiError>> {
    let handle = server.handle();
    tokio::spawn(async move {
        shutdown.cancelled().await;
        handle.stop(true).await;
    });
    tokio::spawn(async move { server.await.map_err(ApiError::Server) })
}

/// Reports whether the database is there, until the word.
async fn watch(db: Db, part: Part, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(PROBE_EVERY) => probe(&db, &part).await,
        }
    }
}

async fn probe(db: &Db, part: &Part) {
    match ask(db).await {
        Ok(()) => part.ready(),
        Err(error) => part.waiting(error),
    }
}

async fn ask(db: &Db) -> Result<(), StorageError> {
    let mut tx = db.snapshot().await?;
    gpuledger_storage::state::load(&mut tx).await?;
    tx.commit().await
}
