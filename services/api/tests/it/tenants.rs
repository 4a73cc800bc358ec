//! A tenant sees its own rows: by path, by parameter, by cursor, in the query and under it.

use crate::client::Request;
use crate::fixture::{Fixture, WINDOW, claims, tenant};
use anyhow::Result;
use gpuledger_api::token::{Claims, Role};
use gpuledger_storage::Scope;
use gpuledger_storage::pages::{
    AllocationQuery, DocumentQuery, allocation, allocations, document, documents,
};
use gpuledger_storage::spans::{SpanFilter, load_spans};
use serde_json::Value;
use std::collections::BTreeSet;

/// Values of one member of all rows.
fn values(rows: &Value, member: &str) -> BTreeSet<String> {
    rows.as_array().unwrap().iter().map(|row| row[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_hold_the_rows_of_the_token() -> Result<()> {
    let fixture = Fixture::new().await?;
    let lists = [
        (format!("/v1/usage?{WINDOW}&group_by=tenant,allocation"), "rows"),
        ("/v1/allocations?".to_owned(), "allocations"),
        ("/v1/invoices?".to_owned(), "invoices"),
    ];
    for (path, member) in &lists {
        for name in ["acme", "umbra"] {
            let own = fixture.get_as(&tenant(name), path).await?.json();
            assert_eq!(values(&own[member], "tenant"), BTreeSet::from([name.to_owned()]), "{path}");
            let same = fixture.get_as(&tenant(name), &format!("{path}&tenant={name}")).await?.json();
            assert_eq!(own, same, "naming oneself changes nothing");
        }
        let other = fixture.get_as(&tenant("acme"), &format!("{path}&tenant=umbra")).await?;
        assert_eq!(other.status, 403, "{path}");
        let nobody = fixture.get_as(&tenant("nobody"), path).await?.json();
        assert_eq!(nobody[member], Value::Array(Vec::new()), "{path}");
        for role in [Role::Finance, Role::Platform, Role::Auditor, Role::Admin] {
            let all = fixture.get_as(&claims(role), path).await?.json();
            assert_eq!(values(&all[member], "tenant").len(), 2, "{path} as {role}");
            let one = fixture.get_as(&claims(role), &format!("{path}&tenant=umbra")).await?.json();
            assert_eq!(
                values(&one[member], "tenant"),
                BTreeSet::from(["umbra".to_owned()]),
                "{path} as {role}"
            );
        }
        let narrowed = Claims { tenant: Some("acme".to_owned()), ..claims(Role::Finance) };
        let own = fixture.get_as(&narrowed, path).await?.json();
        assert_eq!(values(&own[member], "tenant"), BTreeSet::from(["acme".to_owned()]), "{path}");
    }
    fixture.end().await
}

#[tokio::test]
async fn anothers_row_is_not_found_and_looks_like_none() -> Result<()> {
    let fixture = Fixture::new().await?;
    for (own, other, missing) in [
        ("/v1/allocations/acme-1", "/v1/allocations/umbra-1", "/v1/allocations/umbra-9"),
        ("/v1/invoices/acme-issued", "/v1/invoices/umbra-issued", "/v1/invoices/umbra-9"),
        (
            "/v1/invoices/acme-issued/export",
            "/v1/invoices/umbra-issued/export",
            "/v1/invoices/umbra-9/export",
        ),
        ("/v1/invoices/acme-draft", "/v1/invoices/umbra-draft", "/v1/invoices/%2A"),
    ] {
        assert_eq!(fixture.get_as(&tenant("acme"), own).await?.status, 200, "{own}");
        let (hidden, missing) =
            (fixture.get_as(&tenant("acme"), other).await?, fixture.get_as(&tenant("acme"), missing).await?);
        assert_eq!((hidden.status, missing.status), (404, 404), "{other}");
        assert_eq!(hidden.json()["type"], missing.json()["type"]);
        assert_eq!(fixture.get_as(&tenant("umbra"), other).await?.status, 200, "{other}");
        assert_eq!(fixture.get_as(&claims(Role::Auditor), other).await?.status, 200, "{other}");
    }
    fixture.end().await
}

#[tokio::test]
async fn filters_do_not_reach_another_tenants_rows() -> Result<()> {
    let fixture = Fixture::new().await?;
    for filter in ["slurm_job=job-umbra-1", "pod_uid=pod-umbra-1"] {
        let path = format!("/v1/allocations?{filter}");
        let hidden = fixture.get_as(&tenant("acme"), &path).await?.json();
        assert_eq!(hidden["allocations"], Value::Array(Vec::new()), "{filter}");
        let shown = fixture.get_as(&tenant("umbra"), &path).await?.json();
        assert_eq!(values(&shown["allocations"], "id"), BTreeSet::from(["umbra-1".to_owned()]), "{filter}");
    }
    fixture.end().await
}

#[tokio::test]
async fn a_cursor_of_another_tenant_is_refused() -> Result<()> {
    let fixture = Fixture::new().await?;
    for path in [
        format!("/v1/usage?{WINDOW}&group_by=allocation&limit=1"),
        "/v1/allocations?limit=1".to_owned(),
        "/v1/invoices?limit=1".to_owned(),
    ] {
        let page = fixture.get_as(&tenant("umbra"), &path).await?.json();
        let next = format!("{path}&cursor={}", page["next_cursor"].as_str().unwrap());
        assert_eq!(fixture.get_as(&tenant("umbra"), &next).await?.status, 200, "{path}");
        let other = fixture.get_as(&tenant("acme"), &next).await?;
        assert_eq!(
            (other.status, &other.json()["type"]),
            (400, &Value::from("urn:gpuledger:problem:bad-cursor")),
            "{path}"
        );
        assert_eq!(fixture.get_as(&claims(Role::Admin), &next).await?.status, 400, "{path}");
    }
    fixture.end().await
}

/// Bound twice: a query that forgets the tenant is held by row security, a scope that is too wide by the query.
#[tokio::test]
async fn row_security_and_the_query_hold_each_by_itself() -> Result<()> {
    let fixture = Fixture::new().await?;
    let cases = [
        (Scope::Tenant("acme"), None, "acme"),
        (Scope::All, Some("acme"), "acme"),
        (Scope::Tenant("umbra"), Some("acme"), ""),
    ];
    for (scope, tenant, expected) in cases {
        let mut tx = fixture.api.snapshot_of(scope).await?;
        let span = SpanFilter { from_us: i64::MIN, to_us: i64::MAX, tenant, project: None, allocation: None };
        let query = AllocationQuery {
            tenant,
            project: None,
            slurm_job: None,
            pod_uid: None,
            from_us: i64::MIN,
            to_us: i64::MAX,
            after: None,
            limit: 100,
        };
        let heads = DocumentQuery { tenant, period: None, status: None, after: None, limit: 100 };
        let mut owners: BTreeSet<String> =
            load_spans(&mut tx, &span).await?.into_iter().map(|row| row.tenant).collect();
        owners.extend(allocations(&mut tx, &query).await?.into_iter().map(|row| row.tenant));
        owners.extend(documents(&mut tx, &heads).await?.into_iter().map(|row| row.tenant));
        owners.extend(allocation(&mut tx, "umbra-1", tenant).await?.map(|row| row.tenant));
        owners.extend(document(&mut tx, "umbra-issued", tenant).await?.map(|row| row.tenant));
        tx.commit().await?;
        let expected: BTreeSet<String> =
            [expected].into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        assert_eq!(owners, expected, "{scope:?} {tenant:?}");
    }
    fixture.end().await
}

#[tokio::test]
async fn a_wildcard_is_no_tenant() -> Result<()> {
    let fixture = Fixture::new().await?;
    let star = Request::get("/v1/allocations?tenant=*");
    assert_eq!(fixture.send_as(&tenant("acme"), &star).await?.status, 400);
    // Storage refuses it as a scope, too.
    assert!(fixture.api.snapshot_of(Scope::Tenant("*")).await.is_err());
    assert_eq!(fixture.send_as(&claims(Role::Admin), &star).await?.status, 400);
    fixture.end().await
}
