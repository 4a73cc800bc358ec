//! What operators see: limits, health, metrics, start and stop.

use crate::client::Request;
use crate::fixture::{Fixture, NOW, claims};
use anyhow::{Context, Result};
use gpuledger_api::token::Role;
use gpuledger_api::{ApiError, ApiSettings, RateLimit, serve};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_trail::keys::Seal;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_principal_is_held_to_its_rate() -> Result<()> {
    let fixture = Fixture::with(RateLimit { requests: 2, window: Duration::from_hours(1) }).await?;
    let (one, other) = (claims(Role::Auditor), claims(Role::Admin));
    let first = fixture.get_as(&one, "/v1/allocations").await?;
    assert_eq!(first.header("ratelimit-policy"), Some("\"default\";q=2;w=3600"));
    assert!(first.header("ratelimit").unwrap().starts_with("\"default\";r=1;t="));
    assert_eq!(fixture.get_as(&one, "/v1/allocations").await?.status, 200);
    let refused = fixture.get_as(&one, "/v1/allocations").await?;
    assert_eq!(
        (refused.status, &refused.json()["type"]),
        (429, &"urn:gpuledger:problem:too-many-requests".into())
    );
    let wait: u64 = refused.header("retry-after").context("how long to wait")?.parse()?;
    assert!((1..=1_800).contains(&wait), "{wait}");
    assert_eq!(fixture.get_as(&other, "/v1/allocations").await?.status, 200, "others have their own");
    let anonymous = fixture.send(&Request::get("/v1/allocations")).await?;
    assert_eq!((anonymous.status, anonymous.header("ratelimit")), (401, None));
    fixture.end().await
}

#[tokio::test]
async fn the_admin_port_tells_health_and_metrics() -> Result<()> {
    let fixture = Fixture::new().await?;
    let admin = fixture.running.admin.context("an admin port")?;
    for path in ["/healthz", "/readyz"] {
        let response = Request::get(path).send(admin).await?;
        assert_eq!((response.status, response.text().as_str()), (200, "ok\n"), "{path}");
    }
    fixture.get_as(&claims(Role::Admin), "/v1/allocations/acme-1").await?;
    fixture.send(&Request::get("/anything/at/all")).await?;
    let metrics = Request::get("/metrics").send(admin).await?;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let name = "gpuledger_http_request_duration_seconds_count";
    for line in [
        format!("{name}{{method=\"GET\",route=\"/v1/allocations/{{id}}\",status=\"200\"}} 1"),
        format!("{name}{{method=\"GET\",route=\"unmatched\",status=\"404\"}} 1"),
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line} is not in\n{}", metrics.text());
    }
    let hidden = fixture.send(&Request::get("/metrics")).await?;
    assert_eq!(hidden.status, 404, "not on the public port");
    fixture.end().await
}

#[tokio::test]
async fn it_starts_under_its_own_role_only_and_names_a_taken_address() -> Result<()> {
    let fixture = Fixture::new().await?;
    let settings = |db: &gpuledger_storage::Db, bind: String| ApiSettings {
        bind,
        admin_bind: None,
        db: db.clone(),
        key: gpuledger_api::token::VerifyKey::from_pem(fixture.pem.as_bytes()).unwrap(),
        seal: Seal::default(),
        now: Arc::new(|| NOW),
        rate: RateLimit::default(),
        workers: Some(1),
        health: Health::default(),
        metrics: Metrics::default(),
    };
    let word = CancellationToken::new();
    let writer = serve(settings(&fixture.writer, "127.0.0.1:0".to_owned()), word.clone()).await;
    assert!(matches!(writer, Err(ApiError::Role(_))), "the ledger's role bypasses row security");
    let taken = fixture.running.api.to_string();
    let twice = serve(settings(&fixture.api, taken.clone()), word.clone()).await;
    assert!(matches!(&twice, Err(ApiError::Bind { bind, .. }) if *bind == taken), "{twice:?}");
    let second = serve(settings(&fixture.api, "127.0.0.1:0".to_owned()), word.clone()).await?;
    assert!(second.admin.is_none());
    word.cancel();
    let address = second.api;
    second.finished().await?;
    assert!(Request::get("/docs").send(address).await.is_err(), "it is gone");
    fixture.end().await
}

#[tokio::test]
async fn a_database_out_of_reach_is_said_and_not_hidden() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture.api.close().await;
    let response = fixture.get_as(&claims(Role::Admin), "/v1/allocations").await?;
    assert_eq!((response.status, response.header("retry-after")), (503, Some("5")));
    assert!(!response.text().contains("pool"), "no inner words: {}", response.text());
    fixture.end().await
}
