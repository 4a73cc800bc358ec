//! Findings: each tenant's own, in words that name nobody else, and all of them for those who see all.

use crate::fixture::{Fixture, START, claims, tenant};
use anyhow::Result;
use gpuledger_api::token::Role;
use gpuledger_storage::findings::{FindingRow, replace};
use serde_json::{Value, json};

fn row(kind: &str, subject: &str, detail: &str, open: bool) -> FindingRow {
    FindingRow {
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        since_us: START.as_micros(),
        until_us: (!open).then(|| START.plus(5).as_micros()),
        detail: detail.to_owned(),
    }
}

async fn with_findings() -> Result<Fixture> {
    let fixture = Fixture::new().await?;
    let rows = [
        row("contested", "acme-1", "acme-1 clashes with umbra-1", false),
        row("gap", "n1", "node n1: windows 3 to 4 never came", true),
        row("idle_allocation", "umbra-2", "umbra-2 was not used", true),
    ];
    let told = [
        ("acme".to_owned(), row("contested", "acme-1", "slices clash", false)),
        ("umbra".to_owned(), rows[2].clone()),
    ];
    let mut tx = fixture.writer.begin().await?;
    replace(&mut tx, &rows, &told, START.plus(60_000_000).as_micros()).await?;
    tx.commit().await?;
    Ok(fixture)
}

fn subjects(page: &Value) -> Vec<&str> {
    page["findings"].as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tenant_reads_its_own_and_as_another_it_reads_theirs() -> Result<()> {
    let fixture = with_findings().await?;
    let own = fixture.get_as(&tenant("acme"), "/v1/findings").await?.json();
    let expected = json!({
        "as_of": "2026-10-01T00:01:00Z", "next_cursor": null,
        "findings": [{
            "kind": "contested", "severity": "critical", "subject": "acme-1", "since": "2026-10-01T00:00:00Z",
            "until": "2026-10-01T00:00:00.000005Z", "detail": "slices clash",
        }],
    });
    assert_eq!(own, expected);
    let wrong = fixture.get_as(&tenant("umbra"), "/v1/findings").await?.json();
    assert_eq!(subjects(&wrong), ["umbra-2"]);
    for path in ["/v1/findings?subject=acme-1", "/v1/findings?kind=contested", "/v1/findings?subject=n1"] {
        assert_eq!(subjects(&fixture.get_as(&tenant("umbra"), path).await?.json()), [""; 0], "{path}");
    }
    assert_eq!(fixture.get_as(&tenant("umbra"), "/v1/findings?tenant=acme").await?.status, 403);
    assert_eq!(subjects(&fixture.get_as(&tenant("nobody"), "/v1/findings").await?.json()), [""; 0]);
    fixture.end().await
}

#[tokio::test]
async fn who_sees_all_sees_all_of_them_or_what_a_tenant_is_told() -> Result<()> {
    let fixture = with_findings().await?;
    for role in [Role::Finance, Role::Platform, Role::Auditor, Role::Admin] {
        let all = fixture.get_as(&claims(role), "/v1/findings").await?.json();
        assert_eq!(subjects(&all), ["acme-1", "n1", "umbra-2"], "{role}");
        assert_eq!(all["findings"][0]["detail"], "acme-1 clashes with umbra-1");
        let told = fixture.get_as(&claims(role), "/v1/findings?tenant=acme").await?.json();
        assert_eq!(told["findings"][0]["detail"], "slices clash");
        let open = fixture.get_as(&claims(role), "/v1/findings?status=open").await?.json();
        assert_eq!(subjects(&open), ["n1", "umbra-2"]);
    }
    fixture.end().await
}

#[tokio::test]
async fn pages_follow_each_other_and_a_cursor_is_its_own_querys() -> Result<()> {
    let fixture = with_findings().await?;
    let admin = claims(Role::Admin);
    let (mut seen, mut path) = (Vec::new(), "/v1/findings?limit=1".to_owned());
    loop {
        let page = fixture.get_as(&admin, &path).await?.json();
        seen.extend(subjects(&page).iter().map(ToString::to_string));
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(
            fixture.get_as(&tenant("acme"), &format!("/v1/findings?cursor={next}")).await?.status,
            400
        );
        assert_eq!(
            fixture.get_as(&admin, &format!("/v1/findings?status=open&cursor={next}")).await?.status,
            400
        );
        path = format!("/v1/findings?limit=1&cursor={next}");
    }
    assert_eq!(seen, ["acme-1", "n1", "umbra-2"]);
    for bad in ["kind=nonsense", "status=closed", "limit=0", "subject=", "tenant=*", "colour=red"] {
        assert_eq!(fixture.get_as(&admin, &format!("/v1/findings?{bad}")).await?.status, 400, "{bad}");
    }
    fixture.end().await
}

#[tokio::test]
async fn before_they_were_ever_derived_there_are_none_and_no_horizon() -> Result<()> {
    let fixture = Fixture::new().await?;
    let none = fixture.get_as(&claims(Role::Admin), "/v1/findings").await?.json();
    assert_eq!(none, json!({"as_of": null, "findings": [], "next_cursor": null}));
    fixture.end().await
}
