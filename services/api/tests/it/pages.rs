//! Lists page by page, usage in its groups, documents in their bytes.

use crate::client::Request;
use crate::fixture::{Fixture, WINDOW, claims, tenant};
use anyhow::Result;
use gpuledger_api::token::{Claims, Role};
use serde_json::{Value, json};

/// All rows of a list, page by page, and how many pages it took.
async fn walk(fixture: &Fixture, who: &Claims, path: &str, member: &str) -> Result<(Vec<Value>, usize)> {
    let (mut rows, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = fixture.get_as(who, &format!("{path}{cursor}")).await?.json();
        rows.extend(page[member].as_array().unwrap().iter().cloned());
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok((rows, pages)),
        }
    }
}

#[tokio::test]
async fn pages_make_up_the_list() -> Result<()> {
    let fixture = Fixture::new().await?;
    let admin = claims(Role::Admin);
    for (path, member, count) in [
        (format!("/v1/usage?{WINDOW}&group_by=allocation"), "rows", 6),
        (format!("/v1/usage?{WINDOW}&group_by=node,allocation"), "rows", 6),
        ("/v1/allocations?".to_owned(), "allocations", 6),
        ("/v1/invoices?".to_owned(), "invoices", 4),
    ] {
        let (whole, pages) = walk(&fixture, &admin, &path, member).await?;
        assert_eq!((whole.len(), pages), (count, 1), "{path}");
        for limit in [1, 2, count] {
            let (rows, pages) = walk(&fixture, &admin, &format!("{path}&limit={limit}"), member).await?;
            assert_eq!(rows, whole, "{path} by {limit}");
            assert_eq!(pages, count.div_ceil(limit), "{path} by {limit}");
        }
    }
    fixture.end().await
}

#[tokio::test]
async fn a_cursor_stays_with_its_query() -> Result<()> {
    let fixture = Fixture::new().await?;
    let acme = tenant("acme");
    let page = fixture.get_as(&acme, "/v1/allocations?limit=1").await?.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let ok = fixture.get_as(&acme, &format!("/v1/allocations?limit=2&cursor={cursor}")).await?;
    assert_eq!(ok.status, 200, "the size of the page may change");
    for other in [
        format!("/v1/allocations?cursor={cursor}&project=vision"),
        format!("/v1/allocations?cursor={cursor}&from=2026-10-01T00:00:00Z"),
        format!("/v1/invoices?cursor={cursor}"),
        format!("/v1/usage?{WINDOW}&cursor={cursor}"),
        "/v1/allocations?cursor=00".to_owned(),
        "/v1/allocations?cursor=".to_owned(),
    ] {
        assert_eq!(fixture.get_as(&acme, &other).await?.status, 400, "{other}");
    }
    fixture.end().await
}

#[tokio::test]
async fn usage_is_exact_and_in_the_tenants_zone() -> Result<()> {
    let fixture = Fixture::new().await?;
    let usage =
        fixture.get_as(&tenant("acme"), &format!("/v1/usage?{WINDOW}&group_by=day,label.team")).await?.json();
    assert_eq!(usage["as_of"], "2026-10-02T00:00:00Z");
    let row = |day: &str| {
        json!({
            "day": day, "label.team": "perception", "allocated_us": "5400000000", "unit_seconds": "5400", "gpu_seconds": "5400",
            "compute_slice_us": null, "memory_slice_us": null, "sm_active_us": null, "quality": "allocation_only",
            "covered_us": "0", "memory_byte_us": null, "energy_mj": null,
        })
    };
    assert_eq!(
        usage["rows"],
        json!([row("2026-10-01"), row("2026-10-02")]),
        "three half hours on either side of midnight"
    );
    let total = fixture.get_as(&tenant("acme"), &format!("/v1/usage?{WINDOW}&group_by=")).await?.json();
    assert_eq!(total["rows"].as_array().unwrap().len(), 1);
    assert_eq!(total["rows"][0]["unit_seconds"], "10800");
    let utc = fixture.get_as(&tenant("umbra"), &format!("/v1/usage?{WINDOW}&group_by=day")).await?.json();
    assert_eq!(utc["rows"].as_array().unwrap().len(), 1, "umbra has no zone, so its days are UTC's");
    let cut = "/v1/usage?from=2026-10-01T21:30:00Z&to=2026-10-01T21:30:00.000001Z&project=vision";
    let cut = fixture.get_as(&tenant("acme"), cut).await?.json();
    assert_eq!(cut["rows"][0]["unit_seconds"], "0.000003");
    let none = fixture.get_as(&tenant("acme"), &format!("/v1/usage?{WINDOW}&project=speech")).await?.json();
    assert_eq!(none["rows"], json!([]));
    fixture.end().await
}

#[tokio::test]
async fn allocations_are_found_by_job_pod_and_time() -> Result<()> {
    let fixture = Fixture::new().await?;
    let acme = tenant("acme");
    let ids = |page: &Value| -> Vec<String> {
        page["allocations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    for (query, expected) in [
        ("slurm_job=job-acme-2", &["acme-2"][..]),
        ("pod_uid=pod-acme-3", &["acme-3"]),
        ("slurm_job=job-acme-2&pod_uid=pod-acme-3", &[]),
        ("to=2026-10-01T21:30:00Z", &[]),
        ("from=2026-10-01T22:30:00Z", &[]),
        ("from=2026-10-01T22:29:59.999999Z&to=2026-10-01T23:00:00Z", &["acme-1", "acme-2", "acme-3"]),
    ] {
        let page = fixture.get_as(&acme, &format!("/v1/allocations?{query}")).await?.json();
        assert_eq!(ids(&page), expected, "{query}");
    }
    let one = fixture.get_as(&acme, "/v1/allocations/acme-1").await?.json();
    let expected = json!({
        "id": "acme-1", "tenant": "acme", "project": "vision", "class": "on_demand", "start": "2026-10-01T21:30:00Z",
        "end": "2026-10-01T22:30:00Z", "state": "completed", "runtime": {"slurm_job": "job-acme-1", "pod_uid": "pod-acme-1"},
        "labels": {"team": "perception"}, "source": "/allocators/slurm-1",
    });
    assert_eq!(one, expected);
    fixture.end().await
}

#[tokio::test]
async fn a_document_is_its_frozen_bytes_and_is_sent_once() -> Result<()> {
    let fixture = Fixture::new().await?;
    let acme = tenant("acme");
    let path = "/v1/invoices/acme-issued";
    let first = fixture.get_as(&acme, path).await?;
    assert_eq!(first.text(), r#"{"id":"acme-issued","status":"issued","tenant":"acme","total":"4.80"}"#);
    let tag = first.header("etag").unwrap().to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let again = fixture.send_as(&acme, &Request::get(path).header("if-none-match", &known)).await?;
        assert_eq!(
            (again.status, again.body.len(), again.header("etag")),
            (304, 0, Some(tag.as_str())),
            "{known}"
        );
    }
    let other = fixture.send_as(&acme, &Request::get(path).header("if-none-match", "\"x\"")).await?;
    assert_eq!(other.status, 200);
    let file = fixture.get_as(&acme, &format!("{path}/export")).await?;
    assert_eq!(file.body, first.body);
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"2026-acme.json\""));

    let mut tx = fixture.writer.begin().await?;
    assert!(gpuledger_storage::documents::pay(&mut tx, "acme-issued", 1).await?);
    tx.commit().await?;
    let paid = fixture.send_as(&acme, &Request::get(path).header("if-none-match", &tag)).await?;
    assert_eq!((paid.status, &paid.json()["status"]), (200, &json!("paid")));
    let listed = fixture.get_as(&acme, "/v1/invoices?status=paid&period=2026-09").await?.json();
    assert_eq!(listed["invoices"][0]["id"], "acme-issued");
    fixture.end().await
}
