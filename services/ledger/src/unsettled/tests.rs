use super::*;
use crate::balance::{BalanceRow, balance};
use crate::horizon::{advance, derive_anew};
use crate::incoming::Incoming;
use crate::testing::{Database, apply, at, event, inventory, now};
use crate::verify::verify;
use gpuledger_books::Books;
use gpuledger_domain::time::{HOUR_US, Window};
use gpuledger_storage::journals::standing_journals;
use serde_json::json;

const HOURS: i64 = 12;

/// What one batch brings: the release of the hold before, and a grant. Until its release comes a hold goes on, so batches correct each other.
fn hour(n: i64) -> Vec<Incoming> {
    let name = |n: i64| format!("a-{n}");
    let grant = json!({"allocation": name(n), "tenant": "acme", "units": [{"gpu": format!("GPU-{}", n % 2)}], "mode": "exclusive",
                       "class": "on_demand"});
    let release = json!({"allocation": name(n - 1)});
    let granted = event("allocation.granted", &format!("{}-granted", name(n)), at(n, 10), &grant);
    let released = event("allocation.released", &format!("{}-released", name(n - 1)), at(n, 5), &release);
    if n == 0 { vec![granted] } else { vec![released, granted] }
}

async fn sheet(database: &Database) -> Vec<BalanceRow> {
    let mut tx = database.db.snapshot().await.unwrap();
    let books = Books::load(&mut tx).await.unwrap();
    let window = Window::new(at(0, 0), at(HOURS, 0)).unwrap();
    balance(&mut tx, &books, now(), window, None).await.unwrap()
}

/// How often a journal of the GPUs was posted.
async fn revisions(database: &Database) -> i32 {
    let mut tx = database.db.snapshot().await.unwrap();
    let asked = ["GPU-0", "GPU-1"].map(|gpu| (gpu.to_owned(), i64::MIN));
    let headers = standing_journals(&mut tx, &asked, i64::MAX).await.unwrap();
    headers.iter().map(|header| header.revision).sum()
}

/// The same facts, hour by hour, behind a horizon that is past them.
async fn told(is_backlog: bool) -> Database {
    let database = Database::new().await;
    apply(&database, vec![inventory()], false).await;
    advance(&database.db, now()).await.unwrap();
    for n in 0..HOURS {
        let facts = u64::try_from(hour(n).len()).unwrap();
        assert_eq!(apply(&database, hour(n), is_backlog).await, if is_backlog { facts } else { 0 });
    }
    database
}

async fn waiting(database: &Database) -> usize {
    verify(&database.db).await.unwrap().waiting
}

async fn settle_all(database: &Database) {
    while settle_some(&database.db, AT_ONCE).await.unwrap() {}
    let verdict = verify(&database.db).await.unwrap();
    assert!(verdict.holds(), "{verdict:?}");
}

#[tokio::test]
async fn a_backlog_waits_is_read_right_meanwhile_and_settled_once() {
    let (calm, behind) = (told(false).await, told(true).await);
    let wanted = sheet(&calm).await;

    assert_eq!(sheet(&behind).await, wanted, "what waits is computed from facts");
    assert_eq!(waiting(&behind).await, 23, "a grant an hour, and all releases but the last");
    assert!(!verify(&behind.db).await.unwrap().holds(), "what stands cannot be compared");

    settle_all(&behind).await;
    assert_eq!(sheet(&behind).await, wanted);
    assert!(revisions(&behind).await < revisions(&calm).await, "fewer revisions than with each batch");
    calm.drop().await;
    behind.drop().await;
}

#[tokio::test]
async fn what_comes_while_a_backlog_waits_finds_what_stands_and_not_what_waits() {
    let behind = told(true).await;
    // The release of a hold that waits, a hold beside those that wait, and a horizon that moves over all of them.
    let release = event("allocation.released", "a-11-released", at(13, 0), &json!({"allocation": "a-11"}));
    apply(&behind, vec![release], false).await;
    let grant = json!({"allocation": "b", "tenant": "beta", "units": [{"gpu": "GPU-0"}], "mode": "exclusive", "class": "spot"});
    apply(&behind, vec![event("allocation.granted", "b-granted", at(14, 20), &grant)], false).await;
    advance(&behind.db, now().plus(3 * HOUR_US)).await.unwrap();
    assert_eq!(waiting(&behind).await, 23);
    settle_all(&behind).await;
    behind.drop().await;
}

#[tokio::test]
async fn what_waits_is_settled_by_whoever_derives_everything_anew() {
    let behind = told(true).await;
    derive_anew(&behind.db).await.unwrap();
    let verdict = verify(&behind.db).await.unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    assert!(!settle_some(&behind.db, AT_ONCE).await.unwrap());
    behind.drop().await;
}
