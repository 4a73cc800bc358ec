//! The API of the demo: on a free port, with development tokens, and requests to itself.

use super::screen::Screen;
use anyhow::{Context, Result, ensure};
use gpuledger_api::token::{Claims, Role as TokenRole, SigningKey, generate_ed25519_pem, mint};
use gpuledger_api::{ApiSettings, Clock, RateLimit, Running, serve};
use gpuledger_domain::time::Window;
use gpuledger_storage::{Role, connect};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::shutdown::Shutdown;
use gpuledger_trail::keys::Seal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a token is good: longer than the built-in day, whose hours the API's clock follows.
const TOKEN_TTL: Duration = Duration::from_hours(48);
/// How long the demo waits for its own answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running API.
pub(crate) struct Address {
    running: Running,
    shutdown: Shutdown,
    key: SigningKey,
    clock: Clock,
}

impl Address {
    /// Starts it.
    ///
    /// # Errors
    /// The database, or the API does not start.
    pub(crate) async fn open(database: &str, clock: Clock) -> Result<Self> {
        let pem = generate_ed25519_pem()?;
        let key = SigningKey::from_pem(pem.as_bytes())?;
        let shutdown = Shutdown::default();
        let settings = ApiSettings {
            bind: "127.0.0.1:0".to_owned(),
            admin_bind: None,
            db: connect(database, Role::Api).await?,
            key: key.verify_key()?,
            seal: Seal::default(),
            now: Clock::clone(&clock),
            rate: RateLimit::default(),
            workers: Some(2),
            health: Health::default(),
            metrics: Metrics::new(env!("CARGO_PKG_VERSION"))?,
        };
        let running = serve(settings, shutdown.token()).await?;
        Ok(Self { running, shutdown, key, clock })
    }

    /// Where it answers.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.running.api)
    }

    /// A token for one node's collector.
    ///
    /// # Errors
    /// The key does not sign.
    pub(crate) fn node_token(&self, node: &str) -> Result<String> {
        self.token(Claims {
            subject: format!("collector@{node}"),
            role: TokenRole::Node,
            tenant: None,
            source: Some(format!("/nodes/{node}")),
            nodes: vec![node.to_owned()],
            pools: Vec::new(),
        })
    }

    /// A token for an allocator of these nodes.
    ///
    /// # Errors
    /// The key does not sign.
    pub(crate) fn allocator_token(&self, source: &str, nodes: Vec<String>) -> Result<String> {
        self.token(Claims {
            subject: "allocator".to_owned(),
            role: TokenRole::Allocator,
            tenant: None,
            source: Some(source.to_owned()),
            nodes,
            pools: Vec::new(),
        })
    }

    fn token(&self, claims: Claims) -> Result<String> {
        Ok(mint(&claims, &self.key, (self.clock)(), TOKEN_TTL)?)
    }

    /// Sends a batch of events, as one JSON list.
    ///
    /// # Errors
    /// It does not take all of them.
    pub(crate) async fn post(&self, token: &str, batch: Vec<u8>) -> Result<()> {
        let (address, token) = (self.running.api, token.to_owned());
        let head = format!(
            "POST /v1/events HTTP/1.0\r\ncontent-type: application/cloudevents-batch+json\r\ncontent-length: {}\r\n",
            batch.len()
        );
        let answer =
            tokio::task::spawn_blocking(move || ask(address, &head, &token, &batch, " 202 ")).await??;
        let refused = |list: &str| answer[list].as_array().is_none_or(|list| !list.is_empty());
        ensure!(
            !refused("refused") && !refused("not_entitled"),
            "the demo's own API refuses events: {answer}"
        );
        Ok(())
    }

    /// Prints the address, a command that asks it for one tenant's usage, and what it answers.
    ///
    /// # Errors
    /// It does not answer, or with an error.
    pub(crate) async fn print(&self, screen: Screen, tenant: &str, window: Window) -> Result<()> {
        let address = self.running.api;
        let token = self.token(Claims {
            subject: tenant.to_owned(),
            role: TokenRole::Tenant,
            tenant: Some(tenant.to_owned()),
            source: None,
            nodes: Vec::new(),
            pools: Vec::new(),
        })?;
        let path = format!("/v1/usage?from={}&to={}&group_by=project", window.start(), window.end());
        screen.heading("The API", &format!("http://{address}, documented at http://{address}/docs"));
        screen.line(&format!("curl -H 'authorization: Bearer {token}' \\\n     'http://{address}{path}'"));
        let head = format!("GET {path} HTTP/1.0\r\n");
        let answer = tokio::task::spawn_blocking(move || ask(address, &head, &token, &[], " 200 ")).await??;
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
fn ask(address: SocketAddr, head: &str, token: &str, body: &[u8], wanted: &str) -> Result<serde_json::Value> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).context("the demo's own API")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "{head}host: {address}\r\nauthorization: Bearer {token}\r\n\r\n")?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the demo's own API")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the demo's own API gave no answer")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.contains(wanted), "the demo's own API answers {status}: {body}");
    Ok(serde_json::from_str(body)?)
}
