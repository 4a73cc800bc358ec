//! Who may call what: every operation of the OpenAPI document with every role, without a token, and with forged ones.

use crate::client::Request;
use crate::fixture::{Fixture, NOW, WINDOW, claims};
use anyhow::Result;
use gpuledger_api::openapi;
use gpuledger_api::token::{AUDIENCE, ISSUER, Role, generate_ed25519_pem};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Roles that read.
const READERS: &[Role] = &[Role::Tenant, Role::Finance, Role::Platform, Role::Auditor, Role::Admin];
/// Roles that read tiles.
const AUDITORS: &[Role] = &[Role::Auditor, Role::Admin];
/// Roles that read leaves; a tenant those that name it.
const LEAVES: &[Role] = &[Role::Tenant, Role::Auditor, Role::Admin];
/// Roles that send events.
const SENDERS: &[Role] = &[Role::Platform, Role::Allocator, Role::Gateway, Role::Node, Role::Admin];

/// One operation, a request to it, who is let in, and what they get.
pub(crate) struct Row {
    pub(crate) operation: &'static str,
    pub(crate) request: Request,
    allowed: &'static [Role],
    pub(crate) status: u16,
}

/// The table: one row an operation.
pub(crate) fn table() -> Vec<Row> {
    let get =
        |operation, path: &str| Row { operation, request: Request::get(path), allowed: READERS, status: 200 };
    let event = json!({
        "specversion": "1.0", "id": "r-1", "source": "/allocators/slurm-1", "type": "gpuledger.allocation.released.v1",
        "time": "2026-10-01T03:00:00Z", "data": {"allocation": "acme-1"},
    });
    let log =
        |operation, path: &str, allowed| Row { operation, request: Request::get(path), allowed, status: 200 };
    vec![
        log("get /tile/{path}", "/tile/0/000.p/2", AUDITORS),
        log("get /v1/audit/records/{index}", "/v1/audit/records/0", LEAVES),
        log("get /v1/audit/proof", "/v1/audit/proof?index=0", LEAVES),
        Row { operation: "post /v1/events", request: Request::event(&event), allowed: SENDERS, status: 202 },
        get("get /v1/usage", &format!("/v1/usage?{WINDOW}")),
        get("get /v1/allocations", "/v1/allocations"),
        get("get /v1/allocations/{id}", "/v1/allocations/acme-1"),
        get("get /v1/findings", "/v1/findings"),
        get("get /v1/signals", "/v1/signals"),
        get("get /v1/invoices", "/v1/invoices"),
        get("get /v1/invoices/{id}", "/v1/invoices/acme-issued"),
        get("get /v1/invoices/{id}/export", "/v1/invoices/acme-issued/export?format=json"),
    ]
}

#[test]
fn the_table_has_every_operation_of_the_document() -> Result<()> {
    let document = serde_json::to_value(openapi())?;
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    let tested: BTreeSet<String> = table().iter().map(|row| row.operation.to_owned()).collect();
    // The checkpoint is for everybody.
    let documented: BTreeSet<String> =
        documented.into_iter().filter(|name| name != "get /checkpoint").collect();
    assert_eq!(documented, tested);
    for methods in paths.iter().filter(|(path, _)| *path != "/checkpoint").map(|(_, methods)| methods) {
        for (_, operation) in methods.as_object().unwrap() {
            assert_eq!(operation["security"], json!([{"bearer": []}]), "{}", operation["operationId"]);
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_operation_lets_in_its_roles_and_no_others() -> Result<()> {
    let fixture = Fixture::new().await?;
    for row in table() {
        for role in Role::ALL {
            let response = fixture.send_as(&claims(role), &row.request).await?;
            let expected = if row.allowed.contains(&role) { row.status } else { 403 };
            assert_eq!(response.status, expected, "{} as {role}: {}", row.operation, response.text());
        }
    }
    fixture.end().await
}

#[tokio::test]
async fn no_operation_answers_without_a_token() -> Result<()> {
    let fixture = Fixture::new().await?;
    let good = fixture.token(&claims(Role::Admin));
    for row in table() {
        let none = fixture.send(&row.request).await?;
        assert_eq!(none.status, 401, "{}", row.operation);
        assert_eq!(none.header("www-authenticate"), Some("Bearer realm=\"gpuledger\""));
        for scheme in [format!("Basic {good}"), good.clone(), "Bearer".to_owned(), "Bearer ".to_owned()] {
            let response = fixture.send(&row.request.clone().header("authorization", &scheme)).await?;
            assert_eq!(response.status, 401, "{} with {scheme}", row.operation);
        }
        let twice = row.request.clone().token(&good).token(&good);
        assert_eq!(fixture.send(&twice).await?.status, 401, "{}", row.operation);
    }
    fixture.end().await
}

#[tokio::test]
async fn no_operation_takes_a_forged_token() -> Result<()> {
    let fixture = Fixture::new().await?;
    let forged = forgeries(&fixture)?;
    for row in table() {
        for (name, token) in &forged {
            let response = fixture.send(&row.request.clone().token(token)).await?;
            assert_eq!(response.status, 401, "{} with a token {name}", row.operation);
            let challenge = response.header("www-authenticate").unwrap_or_default();
            assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
            assert_eq!(response.header("content-type"), Some("application/problem+json"));
        }
    }
    fixture.end().await
}

/// Tokens of an admin that must not be taken, by what is wrong with them.
fn forgeries(fixture: &Fixture) -> Result<Vec<(&'static str, String)>> {
    let now = NOW.as_micros() / 1_000_000;
    let body =
        json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "x", "exp": now + 60, "nbf": now, "role": "admin"});
    let pem = generate_ed25519_pem()?;
    let stranger = EncodingKey::from_ed_pem(pem.as_bytes())?;
    let ed = Header { typ: Some("at+jwt".to_owned()), ..Header::new(Algorithm::EdDSA) };
    let key = EncodingKey::from_ed_pem(fixture.pem.as_bytes())?;
    let own = |change: fn(&mut Value, i64)| {
        let mut body = body.clone();
        change(&mut body, now);
        encode(&ed, &body, &key)
    };
    let valid = own(|_, _| {})?;
    let (head, signature) = valid.rsplit_once('.').unwrap();
    // {"alg":"none"} in front of the same claims.
    let none = format!("eyJhbGciOiJub25lIn0.{}.", head.split_once('.').unwrap().1);
    let hmac = encode(&Header::new(Algorithm::HS256), &body, &EncodingKey::from_secret(&public(&key)?)?)?;
    let moved = own(|body, _| body["sub"] = json!("y"))?;
    let moved = format!("{}.{signature}", moved.rsplit_once('.').unwrap().0);
    Ok(vec![
        ("without a signature", none),
        ("signed by HMAC with the public key", hmac),
        ("signed by a stranger", encode(&ed, &body, &stranger)?),
        ("with the signature of another", moved),
        ("that is expired", own(|body, now| body["exp"] = json!(now - 6))?),
        ("from the future", own(|body, now| body["nbf"] = json!(now + 60))?),
        ("for another audience", own(|body, _| body["aud"] = json!("grafana"))?),
        ("of another issuer", own(|body, _| body["iss"] = json!("someone"))?),
        ("without a role", own(|body, _| drop(body.as_object_mut().unwrap().remove("role")))?),
        ("without an end", own(|body, _| drop(body.as_object_mut().unwrap().remove("exp")))?),
        ("of another type", encode(&Header { typ: Some("dpop+jwt".to_owned()), ..ed.clone() }, &body, &key)?),
        ("that is none", "nonsense".to_owned()),
        ("that is too long", "a".repeat(9_000)),
    ])
}

fn public(key: &EncodingKey) -> Result<Vec<u8>> {
    let jwk = Jwk::from_encoding_key(key, Algorithm::EdDSA)?;
    Ok(DecodingKey::from_jwk(&jwk)?.try_get_as_bytes()?.to_vec())
}
