use crate::horizon::{advance, settle_touched};
use crate::incoming::Incoming;
use crate::testing::{Database, apply, at, event, inventory, now};
use crate::verify::verify;
use gpuledger_domain::time::Instant;
use serde_json::json;

fn window(sequence: u32, end: Instant) -> Incoming {
    let data = json!({"node": "n1", "boot_id": "b", "stream": "s", "sequence": sequence, "start": end.plus(-10_000_000).to_string(),
                      "end": end.to_string(), "units": [], "processes": [], "gaps": []});
    event("telemetry.window", &format!("w-{sequence}"), end, &data)
}

/// A hold that only a lease has ended; then its node is heard past the edge of the hour, and before that is settled the release comes.
#[tokio::test]
async fn a_release_finds_the_hold_that_stands_and_not_the_one_that_waits_to_be_settled_a_7() {
    let database = Database::new().await;
    let grant = json!({"allocation": "a", "tenant": "acme", "units": [{"gpu": "GPU-0"}], "mode": "exclusive", "class": "on_demand"});
    apply(&database, vec![inventory(), event("allocation.granted", "a-granted", at(0, 10), &grant)], false)
        .await;
    advance(&database.db, now()).await.unwrap();
    apply(&database, vec![window(1, at(1, 1))], false).await;
    let release = event("allocation.released", "a-released", at(1, 20), &json!({"allocation": "a"}));
    apply(&database, vec![release], false).await;
    let verdict = verify(&database.db).await.unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    settle_touched(&database.db).await.unwrap();
    let verdict = verify(&database.db).await.unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    database.drop().await;
}
