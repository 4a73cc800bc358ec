//! Signals: a tenant reads those that concern it, and nobody's besides.

use crate::fixture::{Fixture, START, claims, tenant};
use anyhow::Result;
use gpuledger_api::token::Role;
use gpuledger_storage::signals::{NewSignal, published, raise};
use serde_json::{Value, json};

fn signal(name: &str, tenant: &str, action: &str) -> NewSignal {
    NewSignal {
        signal: name.to_owned(),
        cause: format!("because of {name}"),
        tenant: tenant.to_owned(),
        action: action.to_owned(),
        gpu: Some("GPU-1".to_owned()),
        slices: Some("0-3".to_owned()),
        since_us: START.as_micros(),
        event: Vec::new(),
        raised_at_us: START.plus(1).as_micros(),
        due_at_us: START.plus(2).as_micros(),
    }
}

async fn with_signals() -> Result<Fixture> {
    let fixture = Fixture::new().await?;
    let rows = [
        signal("s-1", "acme", "quarantine"),
        signal("s-2", "umbra", "quarantine"),
        signal("s-3", "acme", "release_quarantine"),
    ];
    let mut tx = fixture.writer.begin().await?;
    raise(&mut tx, &rows).await?;
    published(&mut tx, "s-1", START.plus(3).as_micros()).await?;
    tx.commit().await?;
    Ok(fixture)
}

fn names(page: &Value) -> Vec<&str> {
    page["signals"].as_array().unwrap().iter().map(|one| one["signal"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tenant_reads_its_own_and_as_another_it_reads_theirs() -> Result<()> {
    let fixture = with_signals().await?;
    let own = fixture.get_as(&tenant("acme"), "/v1/signals").await?.json();
    assert_eq!(names(&own), ["s-1", "s-3"]);
    let first = json!({
        "signal": "s-1", "action": "quarantine", "tenant": "acme", "gpu": "GPU-1", "slices": "0-3", "state": "published",
        "since": "2026-10-01T00:00:00Z", "raised_at": "2026-10-01T00:00:00.000001Z", "published_at": "2026-10-01T00:00:00.000003Z",
        "answered_at": null, "lifted_at": null,
    });
    assert_eq!(own["signals"][0], first);
    assert_eq!(names(&fixture.get_as(&tenant("umbra"), "/v1/signals").await?.json()), ["s-2"]);
    assert_eq!(names(&fixture.get_as(&tenant("nobody"), "/v1/signals").await?.json()), [""; 0]);
    assert_eq!(fixture.get_as(&tenant("umbra"), "/v1/signals?tenant=acme").await?.status, 403);
    fixture.end().await
}

#[tokio::test]
async fn who_sees_all_chooses_and_reads_page_by_page() -> Result<()> {
    let fixture = with_signals().await?;
    let admin = claims(Role::Admin);
    for (query, expected) in [
        ("", &["s-1", "s-2", "s-3"][..]),
        ("?tenant=umbra", &["s-2"]),
        ("?action=quarantine", &["s-1", "s-2"]),
        ("?gpu=GPU-2", &[]),
    ] {
        let page = fixture.get_as(&admin, &format!("/v1/signals{query}")).await?.json();
        assert_eq!(names(&page), expected, "{query}");
    }
    let page = fixture.get_as(&admin, "/v1/signals?limit=2").await?.json();
    let next = page["next_cursor"].as_str().unwrap();
    let rest = fixture.get_as(&admin, &format!("/v1/signals?limit=2&cursor={next}")).await?.json();
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["s-3"], &Value::Null));
    for (claims, path) in [
        (&tenant("acme"), format!("/v1/signals?cursor={next}")),
        (&admin, format!("/v1/signals?action=quarantine&cursor={next}")),
        (&admin, "/v1/signals?action=nonsense".to_owned()),
        (&admin, "/v1/signals?limit=0".to_owned()),
        (&admin, "/v1/signals?colour=red".to_owned()),
    ] {
        assert_eq!(fixture.get_as(claims, &path).await?.status, 400, "{path}");
    }
    fixture.end().await
}
