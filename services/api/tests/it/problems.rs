//! Every error has one shape (RFC 9457), whoever makes it.

use crate::client::{Request, Response};
use crate::fixture::{Fixture, WINDOW, claims};
use anyhow::Result;
use gpuledger_api::token::Role;

fn is_problem(response: &Response, status: u16, slug: &str, instance: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{instance}");
    let problem = response.json();
    assert_eq!(problem["type"], format!("urn:gpuledger:problem:{slug}"));
    assert_eq!(problem["status"], status);
    assert_eq!(problem["instance"], instance);
    assert_eq!(problem["request_id"].as_str(), response.header("x-request-id"));
    assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()));
    assert_eq!(response.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() -> Result<()> {
    let fixture = Fixture::new().await?;
    for path in ["/", "/v1", "/v1/nothing", "/v1/usage/", "/v1/invoices/a/b/c"] {
        is_problem(&fixture.send(&Request::get(path)).await?, 404, "not-found", path);
    }
    for (method, path, allow) in [
        ("DELETE", "/v1/usage", "GET"),
        ("GET", "/v1/events", "POST"),
        ("PUT", "/v1/invoices/x", "GET"),
        ("POST", "/docs", "GET"),
    ] {
        let response = fixture.send(&Request::new(method, path)).await?;
        is_problem(&response, 405, "method-not-allowed", path);
        assert_eq!(response.header("allow"), Some(allow));
    }
    fixture.end().await
}

#[tokio::test]
async fn all_faults_of_the_parameters_are_named_at_once() -> Result<()> {
    let fixture = Fixture::new().await?;
    let admin = claims(Role::Admin);
    let path = "/v1/usage";
    let query = "from=yesterday&group_by=tenant,colour,tenant&weight=heavy&limit=0&tenant=";
    let response = fixture.get_as(&admin, &format!("{path}?{query}")).await?;
    is_problem(&response, 400, "bad-parameter", path);
    let problem = response.json();
    let named: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["parameter"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["from", "to", "group_by", "group_by", "weight", "limit", "tenant"]);
    for query in [
        format!("{WINDOW}&groupby=tenant"),
        format!("{WINDOW}&{WINDOW}"),
        format!("{WINDOW}&limit=-1"),
        format!("{WINDOW}&limit=10001"),
        format!("{WINDOW}&group_by=,"),
        format!("{WINDOW}&group_by=label."),
        "from=2026-10-01T00:00:00Z&to=2026-10-01T00:00:00Z".to_owned(),
        "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z&group_by=hour".to_owned(),
        format!("{WINDOW}&tenant=a%00b"),
    ] {
        is_problem(&fixture.get_as(&admin, &format!("{path}?{query}")).await?, 400, "bad-parameter", path);
    }
    for path in ["/v1/allocations/a%00", "/v1/invoices/%0A", "/v1/invoices/x/export?format=pdf"] {
        let response = fixture.get_as(&admin, path).await?;
        is_problem(&response, 400, "bad-parameter", path.split('?').next().unwrap());
    }
    fixture.end().await
}

#[tokio::test]
async fn a_request_keeps_a_harmless_id_and_gets_one_else() -> Result<()> {
    let fixture = Fixture::new().await?;
    let with = |id: &str| Request::get("/nothing").header("x-request-id", id);
    let kept = fixture.send(&with("order-66_a.b")).await?;
    assert_eq!(kept.header("x-request-id"), Some("order-66_a.b"));
    for odd in ["a b", "a\"b", &"x".repeat(65)] {
        let replaced = fixture.send(&with(odd)).await?;
        let id = replaced.header("x-request-id").unwrap();
        assert!(id != odd && id.len() == 36, "{id}");
    }
    fixture.end().await
}
