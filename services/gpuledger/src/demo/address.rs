//! The API of the demo: on a free port, with a development token for one tenant, and one request to itself.

use super::screen::Screen;
use anyhow::{Context, Result, ensure};
use gpuledger_api::token::{Claims, Role as TokenRole, SigningKey, generate_ed25519_pem, mint};
use gpuledger_api::{ApiSettings, Clock, RateLimit, Running, serve};
use gpuledger_domain::time::Window;
use gpuledger_storage::{Role, connect};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::shutdown::Shutdown;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the token is good.
const TOKEN_TTL: Duration = Duration::from_hours(12);
/// How long the demo waits for its own answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running API.
pub(crate) struct Address {
    running: Running,
    shutdown: Shutdown,
    path: String,
    token: String,
}

impl Address {
    /// Starts it for one tenant's questions about a window.
    ///
    /// # Errors
    /// The database, or the API does not start.
    pub(crate) async fn open(database: &str, clock: Clock, tenant: &str, window: Window) -> Result<Self> {
        let pem = generate_ed25519_pem()?;
        let key = SigningKey::from_pem(pem.as_bytes())?;
        let claims = Claims {
            subject: tenant.to_owned(),
            role: TokenRole::Tenant,
            tenant: Some(tenant.to_owned()),
            source: None,
            nodes: Vec::new(),
            pools: Vec::new(),
        };
        let token = mint(&claims, &key, clock(), TOKEN_TTL)?;
        let shutdown = Shutdown::default();
        let settings = ApiSettings {
            bind: "127.0.0.1:0".to_owned(),
            admin_bind: None,
            db: connect(database, Role::Api).await?,
            key: key.verify_key()?,
            now: clock,
            rate: RateLimit::default(),
            workers: Some(2),
            health: Health::default(),
            metrics: Metrics::new(env!("CARGO_PKG_VERSION"))?,
        };
        let running = serve(settings, shutdown.token()).await?;
        let path = format!("/v1/usage?from={}&to={}&group_by=project", window.start(), window.end());
        Ok(Self { running, shutdown, path, token })
    }

    /// Prints the address, a command that asks it, and what it answers.
    ///
    /// # Errors
    /// It does not answer, or with an error.
    pub(crate) async fn print(&self, screen: Screen, tenant: &str) -> Result<()> {
        let address = self.running.api;
        screen.heading("The API", &format!("http://{address}, documented at http://{address}/docs"));
        screen.line(&format!(
            "curl -H 'authorization: Bearer {}' \\\n     'http://{address}{}'",
            self.token, self.path
        ));
        let (path, token) = (self.path.clone(), self.token.clone());
        let answer = tokio::task::spawn_blocking(move || get(address, &path, &token)).await??;
        screen.note(&format!("answers, for {tenant} alone, as its token and row security say:"));
        screen.lines(&serde_json::to_string_pretty(&answer)?);
        Ok(())
    }

    /// Waits for Ctrl-C.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(crate) async fn wait(&self) -> Result<()> {
        self.shutdown.on_signals().context("signals")?;
        self.shutdown.begun().await;
        Ok(())
    }

    /// Stops it.
    ///
    /// # Errors
    /// It broke off before.
    pub(crate) async fn close(self) -> Result<()> {
        self.shutdown.begin();
        Ok(self.running.finished().await?)
    }
}

/// One request over a plain connection. HTTP/1.0: the answer ends where the connection does.
fn get(address: SocketAddr, path: &str, token: &str) -> Result<serde_json::Value> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).context("the demo's own API")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the demo's own API")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the demo's own API gave no answer")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.contains(" 200 "), "the demo's own API answers {status}: {body}");
    Ok(serde_json::from_str(body)?)
}
