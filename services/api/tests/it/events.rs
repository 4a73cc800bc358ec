//! `POST /v1/events`: what goes into the inbox, and what is told the sender.

use crate::client::Request;
use crate::fixture::{Fixture, NOW, claims};
use anyhow::Result;
use gpuledger_api::token::{Claims, Role};
use gpuledger_storage::inbox::{Item, take};
use gpuledger_wire::decode_structured;
use serde_json::{Value, json};

fn inventory(node: &str, id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": format!("/nodes/{node}/collector"), "type": "gpuledger.node.inventory.v1",
        "time": "2026-10-01T00:00:00Z", "data": {"node": node, "boot_id": "b", "gpus": []},
    })
}

async fn taken(fixture: &Fixture) -> Result<Vec<Item>> {
    let mut tx = fixture.writer.begin().await?;
    let items = take(&mut tx, 1_000).await?;
    tx.commit().await?;
    Ok(items)
}

#[tokio::test]
async fn an_event_goes_into_the_inbox_as_canonical_json() -> Result<()> {
    let fixture = Fixture::new().await?;
    let response = fixture.send_as(&claims(Role::Node), &Request::event(&inventory("n1", "1"))).await?;
    assert_eq!(response.status, 202);
    assert_eq!(response.json(), json!({"accepted": 1, "not_entitled": [], "refused": []}));
    let items = taken(&fixture).await?;
    assert_eq!(items.len(), 1);
    let item = &items[0];
    assert_eq!(
        (item.principal.as_str(), &item.refusal, item.received_at_us),
        ("node-1", &None, NOW.as_micros())
    );
    assert_eq!(item.nodes, Some(vec!["n1".to_owned()]), "the ledger checks GPUs against it");
    let event = decode_structured(&item.body).unwrap();
    assert_eq!((event.id.as_str(), event.canonical_bytes()), ("1", item.body.clone()));
    assert!(taken(&fixture).await?.is_empty());
    fixture.end().await
}

#[tokio::test]
async fn what_the_token_does_not_allow_is_kept_with_its_reason() -> Result<()> {
    let fixture = Fixture::new().await?;
    let node = claims(Role::Node);
    let cases = [
        (inventory("n2", "1"), "source /nodes/n2/collector is not under /nodes/n1, which the token is for"),
        (
            json!({"source": "/nodes/n11/x"}),
            "source /nodes/n11/x is not under /nodes/n1, which the token is for",
        ),
        (json!({"data": {"node": "n2", "boot_id": "b", "gpus": []}}), "node n2 is none of the token's nodes"),
        (
            json!({"type": "gpuledger.node.decommissioned.v1", "data": {"node": "n1"}}),
            "gpuledger.node.decommissioned.v1 is not for role node",
        ),
    ];
    for (changes, why) in cases {
        let mut event = inventory("n1", "1");
        event.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let response = fixture.send_as(&node, &Request::event(&event)).await?;
        assert_eq!(response.status, 202, "nothing is dropped in silence");
        let expected = json!({"accepted": 0, "not_entitled": [{"index": 0, "detail": why}], "refused": []});
        assert_eq!(response.json(), expected);
        assert_eq!(taken(&fixture).await?[0].refusal.as_deref(), Some(why));
    }
    let stranger = Claims { source: Some("/nodes/n2".to_owned()), nodes: vec!["n2".to_owned()], ..node };
    let response = fixture.send_as(&stranger, &Request::event(&inventory("n2", "2"))).await?;
    assert_eq!(response.json()["accepted"], 1, "n2 speaks for itself");
    fixture.end().await
}

#[tokio::test]
async fn a_batch_goes_on_after_a_bad_element_and_names_it() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut untyped = inventory("n1", "3");
    untyped["data"]["gpus"] = json!([{"uuid": ""}]);
    let elements =
        [inventory("n1", "1"), json!("nothing"), inventory("n2", "2"), untyped, inventory("n1", "4")];
    let response = fixture.send_as(&claims(Role::Node), &Request::batch(&elements)).await?;
    assert_eq!(response.status, 202);
    let answer = response.json();
    assert_eq!(answer["accepted"], 2);
    assert_eq!(answer["not_entitled"][0]["index"], 2);
    let refused: Vec<(&Value, &Value)> =
        answer["refused"].as_array().unwrap().iter().map(|one| (&one["index"], &one["field"])).collect();
    assert_eq!(refused, [(&json!(1), &json!("event")), (&json!(3), &json!("data.gpus[0].uuid"))]);
    let items = taken(&fixture).await?;
    let ids: Vec<String> = items.iter().map(|item| decode_structured(&item.body).unwrap().id).collect();
    assert_eq!(ids, ["1", "2", "4"], "in the order of the batch");
    assert_eq!(items.iter().map(|item| item.refusal.is_some()).collect::<Vec<_>>(), [false, true, false]);
    let empty = fixture.send_as(&claims(Role::Node), &Request::batch(&[])).await?;
    assert_eq!((empty.status, &empty.json()["accepted"]), (202, &json!(0)));
    fixture.end().await
}

#[tokio::test]
async fn what_is_no_event_is_refused_with_its_field() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut bad = inventory("n1", "1");
    bad["time"] = json!("yesterday");
    let response = fixture.send_as(&claims(Role::Node), &Request::event(&bad)).await?;
    assert_eq!(response.status, 422);
    let problem = response.json();
    assert_eq!(problem["type"], "urn:gpuledger:problem:bad-event");
    assert_eq!(problem["errors"][0]["field"], "time");
    let post = |media: &str, body: Vec<u8>| {
        Request::new("POST", "/v1/events").header("content-type", media).body(body)
    };
    let (one, batch) = ("application/cloudevents+json", "application/cloudevents-batch+json");
    for (request, status) in [
        (post(one, b"{".to_vec()), 422),
        (post(one, Vec::new()), 422),
        (post(batch, b"{}".to_vec()), 422),
        (post("application/json", b"{}".to_vec()), 415),
        (post(&format!("{one}; charset=utf-8"), inventory("n1", "9").to_string().into_bytes()), 202),
        (post(one, vec![b' '; (1 << 20) + 1]), 413),
        (post(batch, vec![b' '; (16 << 20) + 1]), 413),
    ] {
        let response = fixture.send_as(&claims(Role::Node), &request).await?;
        assert_eq!(response.status, status, "{}", response.text());
        let media = if status == 202 { "application/json" } else { "application/problem+json" };
        assert_eq!(response.header("content-type"), Some(media));
    }
    assert_eq!(taken(&fixture).await?.len(), 1);
    fixture.end().await
}

#[tokio::test]
async fn an_oversized_event_spoils_only_itself() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut large = inventory("n1", "1");
    large["data"]["padding"] = json!("x".repeat(1 << 20));
    let response =
        fixture.send_as(&claims(Role::Node), &Request::batch(&[large, inventory("n1", "2")])).await?;
    assert_eq!((response.status, &response.json()["accepted"]), (202, &json!(1)));
    assert_eq!(response.json()["refused"][0]["index"], 0);
    fixture.end().await
}
