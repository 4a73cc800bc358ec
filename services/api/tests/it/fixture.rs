//! A migrated database with the rows of two tenants, and the service before it.

use crate::client::{Request, Response};
use anyhow::{Context, Result, ensure};
use gpuledger_api::token::{Claims, Role as TokenRole, SigningKey, generate_ed25519_pem, mint};
use gpuledger_api::{ApiSettings, RateLimit, Running, serve};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::documents::{DocumentRow, insert_draft, issue};
use gpuledger_storage::objects::{NewObject, apply};
use gpuledger_storage::spans::{AllocationRow, SpanRow, replace_allocations, replace_spans};
use gpuledger_storage::{Db, Role, connect, migrate, state};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_trail::keys::Seal;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// 2026-10-01T00:00:00Z.
pub(crate) const START: Instant = Instant::from_micros(1_790_812_800_000_000);
/// The clock of the service.
pub(crate) const NOW: Instant = START.plus(48 * HOUR_US);
/// The window of all usage.
pub(crate) const WINDOW: &str = "from=2026-10-01T00:00:00Z&to=2026-10-02T00:00:00Z";

/// The running service and its database.
pub(crate) struct Fixture {
    url: String,
    pub(crate) writer: Db,
    pub(crate) api: Db,
    /// The private key.
    pub(crate) pem: String,
    key: SigningKey,
    pub(crate) running: Running,
    shutdown: CancellationToken,
}

impl Fixture {
    pub(crate) async fn new() -> Result<Self> {
        Self::with(RateLimit::default()).await
    }

    pub(crate) async fn with(rate: RateLimit) -> Result<Self> {
        let url = script("fresh-db", None)?;
        let owner = connect(&url, Role::Owner).await?;
        migrate(&owner).await?;
        owner.close().await;
        let writer = connect(&url, Role::Writer).await?;
        fill(&writer).await?;
        crate::audit::fill_log(&writer).await?;
        let api = connect(&url, Role::Api).await?;
        let pem = generate_ed25519_pem()?;
        let key = SigningKey::from_pem(pem.as_bytes())?;
        let settings = ApiSettings {
            bind: "127.0.0.1:0".to_owned(),
            admin_bind: Some("127.0.0.1:0".to_owned()),
            db: api.clone(),
            key: key.verify_key()?,
            seal: Seal::default(),
            now: Arc::new(|| NOW),
            rate,
            workers: Some(1),
            health: Health::default(),
            metrics: Metrics::default(),
        };
        let shutdown = CancellationToken::new();
        let running = serve(settings, shutdown.clone()).await?;
        Ok(Self { url, writer, api, pem, key, running, shutdown })
    }

    pub(crate) async fn send(&self, request: &Request) -> Result<Response> {
        request.send(self.running.api).await
    }

    /// A request of a principal.
    pub(crate) async fn send_as(&self, claims: &Claims, request: &Request) -> Result<Response> {
        self.send(&request.clone().token(&self.token(claims))).await
    }

    pub(crate) async fn get_as(&self, claims: &Claims, path: &str) -> Result<Response> {
        self.send_as(claims, &Request::get(path)).await
    }

    pub(crate) fn token(&self, claims: &Claims) -> String {
        mint(claims, &self.key, NOW, Duration::from_hours(1)).unwrap()
    }

    /// Stops the service and drops the database; a failed test leaves it for a look.
    pub(crate) async fn end(self) -> Result<()> {
        self.shutdown.cancel();
        self.running.finished().await?;
        self.writer.close().await;
        self.api.close().await;
        script("drop-db", Some(&self.url)).map(drop)
    }
}

/// The principal of a role, with the claims that go with it.
pub(crate) fn claims(role: TokenRole) -> Claims {
    let mut claims = Claims {
        subject: format!("{role}-1"),
        role,
        tenant: None,
        source: None,
        nodes: Vec::new(),
        pools: Vec::new(),
    };
    match role {
        TokenRole::Tenant => claims.tenant = Some("acme".to_owned()),
        TokenRole::Node => {
            claims.source = Some("/nodes/n1".to_owned());
            claims.nodes = vec!["n1".to_owned()];
        }
        TokenRole::Allocator => {
            claims.source = Some("/allocators/slurm-1".to_owned());
            claims.nodes = vec!["n1".to_owned(), "n2".to_owned()];
        }
        TokenRole::Gateway => {
            claims.source = Some("/gateways/chat".to_owned());
            claims.pools = vec!["chat".to_owned()];
        }
        TokenRole::Platform => claims.source = Some("/platform".to_owned()),
        TokenRole::Finance | TokenRole::Auditor | TokenRole::Admin => {}
    }
    claims
}

/// A tenant's principal.
pub(crate) fn tenant(name: &str) -> Claims {
    Claims { subject: format!("user-of-{name}"), tenant: Some(name.to_owned()), ..claims(TokenRole::Tenant) }
}

fn script(verb: &str, url: Option<&str>) -> Result<String> {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh"));
    command.arg(verb);
    if let Some(url) = url {
        command.env("DATABASE_URL", url);
    }
    let output = command.output().context("running postgres.sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "postgres.sh {verb} failed: {said}");
    Ok(String::from_utf8(output.stdout)?.lines().last().unwrap_or_default().to_owned())
}

/// Two tenants that differ in nothing but their names and the length of their holds.
async fn fill(writer: &Db) -> Result<()> {
    let mut tx = writer.begin().await?;
    let zoned = NewObject {
        kind: "Tenant".to_owned(),
        id: "acme".to_owned(),
        body: r#"{"kind":"Tenant","id":"acme","time_zone":"Europe/Berlin"}"#.to_owned(),
    };
    apply(&mut tx, &zoned, 0, "admin").await?;
    for (tenant, hours) in [("acme", 2), ("umbra", 3)] {
        let names: Vec<String> = (1..=3).map(|number| format!("{tenant}-{number}")).collect();
        let spans: Vec<SpanRow> = names.iter().map(|name| span(tenant, name, hours)).collect();
        replace_spans(&mut tx, &names, &[], &spans).await?;
        let rows: Vec<AllocationRow> = names.iter().map(|name| allocation(tenant, name, hours)).collect();
        replace_allocations(&mut tx, &names, &rows).await?;
        for status in ["issued", "draft"] {
            document(&mut tx, tenant, status).await?;
        }
    }
    state::advance_horizon(&mut tx, START.plus(24 * HOUR_US).as_micros(), "1").await?;
    Ok(tx.commit().await?)
}

pub(crate) fn span(tenant: &str, allocation: &str, hours: i64) -> SpanRow {
    SpanRow {
        tenant: tenant.to_owned(),
        project: Some("vision".to_owned()),
        allocation: allocation.to_owned(),
        unit: 0,
        count: 1,
        sku: "h100".to_owned(),
        class: "on_demand".to_owned(),
        gpu: None,
        node: None,
        // From 21:30 UTC on: half of acme's hour is October 2 in Berlin.
        start_us: START.plus(22 * HOUR_US - HOUR_US / 2).as_micros(),
        end_us: START.plus(22 * HOUR_US - HOUR_US / 2 + hours * HOUR_US / 2).as_micros(),
        since_us: None,
        weights: Vec::new(),
        position: 0,
        compute_slices: None,
        memory_slices: None,
        gpu_compute_slices: None,
        gpu_memory_slices: None,
        weight: "1".to_owned(),
        held: true,
        state: None,
        memory_start: None,
        slurm_job: None,
        pod_uid: None,
        before_us: 0,
        after_us: 0,
        alone: true,
    }
}

fn allocation(tenant: &str, id: &str, hours: i64) -> AllocationRow {
    let span = span(tenant, id, hours);
    AllocationRow {
        allocation: id.to_owned(),
        tenant: tenant.to_owned(),
        project: span.project,
        class: span.class,
        start_us: span.start_us,
        end_us: Some(span.end_us),
        end_kind: "completed".to_owned(),
        runtime: format!(r#"{{"slurm_job":"job-{id}","pod_uid":"pod-{id}"}}"#),
        labels: r#"{"team":"perception"}"#.to_owned(),
        source: "/allocators/slurm-1".to_owned(),
    }
}

async fn document(tx: &mut gpuledger_storage::PgConnection, tenant: &str, status: &str) -> Result<()> {
    let id = format!("{tenant}-{status}");
    let body = format!(r#"{{"id":"{id}","status":"{status}","tenant":"{tenant}","total":"4.80"}}"#);
    let row = DocumentRow {
        id: id.clone(),
        number: None,
        kind: "invoice".to_owned(),
        status: "draft".to_owned(),
        seller: "cloud".to_owned(),
        series: "A".to_owned(),
        customer: format!("{tenant}-ag"),
        tenant: tenant.to_owned(),
        period: if status == "draft" { "2026-10".to_owned() } else { "2026-09".to_owned() },
        attempt: 1,
        body: body.clone(),
        created_at_us: START.as_micros(),
        issued_at_us: None,
        paid_at_us: None,
    };
    insert_draft(tx, &row).await?;
    if status == "issued" {
        issue(tx, &id, &format!("2026-{tenant}"), &body, START.as_micros()).await?;
    }
    Ok(())
}
