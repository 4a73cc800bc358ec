//! Facts on their way into the log: the chain of a slice from grant to release to scrub to the next grant (L-5).

use crate::log::{Fixture, NOW};
use anyhow::{Context, Result};
use gpuledger_storage::facts::{Indexed, NewFact, insert_facts};
use gpuledger_storage::{Role, Scope, audit_log, connect};
use gpuledger_trail::leaf::Leaf;
use serde_json::{Value, json};

fn fact(id: &str, kind: &str, data: Value, subject: &str) -> NewFact {
    let kind = format!("gpuledger.{kind}.v1");
    NewFact {
        source: "/s".to_owned(),
        id: id.to_owned(),
        at_us: NOW.as_micros(),
        received_at_us: NOW.as_micros(),
        rule_set: "1".to_owned(),
        digest: [0; 32],
        body: gpuledger_wire::canonical_json(
            &json!({ "id": id, "source": "/s", "type": kind, "data": data }),
        ),
        kind,
        subjects: vec![subject.to_owned()],
        indexed: Indexed::default(),
    }
}

fn mig(start: u8) -> Value {
    json!([{ "gpu": "GPU-1", "mig": { "profile": "3g.40gb", "placement": { "start": start, "size": 4 } } }])
}

#[tokio::test]
async fn release_scrub_and_next_grant_are_one_chain_and_the_release_is_its_tenants_l_5() -> Result<()> {
    let fixture = Fixture::new().await?;
    let placement = json!({ "start": 4, "size": 4 });
    let facts = [
        fact(
            "0",
            "allocation.granted",
            json!({ "allocation": "a", "tenant": "acme", "units": mig(4) }),
            "alloc:a",
        ),
        fact(
            "1",
            "allocation.granted",
            json!({ "allocation": "b", "tenant": "umbra", "units": mig(0) }),
            "alloc:b",
        ),
        fact("2", "allocation.released", json!({ "allocation": "a" }), "alloc:a"),
        fact(
            "3",
            "scrub.finished",
            json!({ "scrub": "s", "gpu": "GPU-1", "placement": placement, "operator": "bob" }),
            "gpu:GPU-1",
        ),
        fact(
            "4",
            "allocation.granted",
            json!({ "allocation": "c", "tenant": "zeta", "units": mig(4) }),
            "alloc:c",
        ),
    ];
    for one in facts {
        let mut tx = fixture.db.begin().await?;
        insert_facts(&mut tx, &[one]).await?;
        tx.commit().await?;
        fixture.sequencer().drain(NOW).await?;
    }
    let mut tx = fixture.db.snapshot().await?;
    let mut chain = Vec::new();
    let mut next = Some(4);
    while let Some(index) = next {
        let row = audit_log::leaf(&mut tx, index).await?.context("a leaf")?;
        assert!(!String::from_utf8_lossy(&row.leaf).contains("bob"));
        let leaf = Leaf::parse(&row.leaf).context("one of ours")?;
        let link = leaf.body["links"][0].clone();
        assert_eq!((link["start"].as_str(), link["size"].as_str()), (Some("4"), Some("4")));
        chain.push(leaf.kind.trim_start_matches("gpuledger.").to_owned());
        next = link["prev"].as_str().map(str::parse).transpose()?;
    }
    let wanted =
        ["allocation.granted.v1", "scrub.finished.v1", "allocation.released.v1", "allocation.granted.v1"];
    assert_eq!(chain, wanted, "and nothing of the other half of the GPU");
    assert_eq!(audit_log::index_of_event(&mut tx, "/s", "3").await?, Some(3));
    drop(tx);
    let api = connect(&fixture.url, Role::Api).await?;
    for (tenant, sees) in [("acme", [0, 2]), ("umbra", [1, 1]), ("zeta", [4, 4])] {
        let mut tx = api.snapshot_of(Scope::Tenant(tenant)).await?;
        for index in 0..5 {
            let seen = audit_log::leaf(&mut tx, index).await?.is_some();
            assert_eq!(seen, sees.contains(&index), "{tenant} and leaf {index}");
        }
    }
    let mut unscoped = api.begin().await?;
    assert!(audit_log::leaf(&mut unscoped, 0).await?.is_none(), "without a scope nothing is seen");
    drop(unscoped);
    api.close().await;
    fixture.end().await
}
