//! The document is the code, the code answers as the document says.

use crate::authorization::table;
use crate::client::Request;
use crate::fixture::{Fixture, claims};
use anyhow::{Context, Result};
use gpuledger_api::token::Role;
use gpuledger_api::{openapi, openapi_json};
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");

#[test]
fn the_committed_document_is_the_codes() -> Result<()> {
    let written = openapi_json()?;
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(FILE, &written)?;
    }
    let committed = std::fs::read_to_string(FILE).with_context(|| FILE.to_owned())?;
    assert!(committed == written, "schemas/openapi.json is old: run the test with UPDATE_SCHEMAS=1");
    assert!(written.starts_with("{\n  \"openapi\": \"3.1."), "{}", &written[..40]);
    Ok(())
}

/// Checks a value against a schema of the document.
fn check(document: &Value, schema: &Value, value: &Value) -> Result<()> {
    let mut whole = schema.as_object().context("a schema")?.clone();
    whole.insert("components".to_owned(), document["components"].clone());
    let validator = jsonschema::validator_for(&Value::Object(whole))?;
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    anyhow::ensure!(faults.is_empty(), "{faults:?} in {value}");
    Ok(())
}

#[tokio::test]
async fn answers_are_as_the_document_says() -> Result<()> {
    let fixture = Fixture::new().await?;
    let document = serde_json::to_value(openapi())?;
    for row in table() {
        let (method, path) = row.operation.split_once(' ').unwrap();
        let responses = &document["paths"][path][method]["responses"];
        let good = fixture.send_as(&claims(Role::Admin), &row.request).await?;
        // Notes, proofs and tiles are texts and bytes.
        let schema = &responses[row.status.to_string()]["content"]["application/json"]["schema"];
        if schema.is_object() {
            check(&document, schema, &good.json()).with_context(|| row.operation)?;
        }
        let bad = fixture.send(&row.request).await?;
        let schema = &responses["401"]["content"]["application/problem+json"]["schema"];
        check(&document, schema, &bad.json()).with_context(|| row.operation)?;
        for status in ["401", "403", "429", "503"] {
            assert!(responses[status].is_object(), "{} does not say {status}", row.operation);
        }
    }
    fixture.end().await
}

#[tokio::test]
async fn both_forms_are_served_to_everyone() -> Result<()> {
    let fixture = Fixture::new().await?;
    let machine = fixture.send(&Request::get("/openapi.json")).await?;
    assert_eq!((machine.status, machine.text()), (200, openapi_json()?));
    let page = fixture.send(&Request::get("/docs")).await?;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("/v1/invoices/{id}/export"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    fixture.end().await
}

#[test]
fn every_event_type_of_the_example_is_known() -> Result<()> {
    let document = serde_json::to_value(openapi())?;
    let content = &document["paths"]["/v1/events"]["post"]["requestBody"]["content"];
    let example = &content["application/cloudevents+json"]["example"];
    assert_ne!(example, &json!(null));
    assert!(gpuledger_wire::decode_structured(example.to_string().as_bytes()).is_ok());
    assert!(content["application/cloudevents-batch+json"]["schema"]["type"] == "array");
    Ok(())
}
