use super::*;
use crate::balance::{BalanceRow, balance};
use crate::horizon::advance;
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
        assert_eq!(apply(&database, hour(n), is_backlog).await > 0, is_backlog);
    }
    database
}

#[tokio::test]
async fn journals_of_a_backlog_wait_are_read_right_meanwhile_and_posted_once() {
    let (calm, behind) = (told(false).await, told(true).await);
    let wanted = sheet(&calm).await;
    let posted_at_once = revisions(&calm).await;

    assert_eq!(sheet(&behind).await, wanted, "what waits is computed from facts");
    let verdict = verify(&behind.db).await.unwrap();
    assert!(verdict.holds() && verdict.waiting == 2, "{verdict:?}");

    assert!(post_some(&behind.db).await.unwrap());
    assert!(!post_some(&behind.db).await.unwrap(), "posted once");
    let verdict = verify(&behind.db).await.unwrap();
    assert!(verdict.holds() && verdict.waiting == 0, "{verdict:?}");
    assert_eq!(sheet(&behind).await, wanted);
    assert!(revisions(&behind).await < posted_at_once, "fewer revisions than with each batch");
    calm.drop().await;
    behind.drop().await;
}

#[tokio::test]
async fn a_horizon_that_moves_over_a_backlog_leaves_its_marks() {
    let database = told(true).await;
    advance(&database.db, now().plus(3 * HOUR_US)).await.unwrap();
    let verdict = verify(&database.db).await.unwrap();
    assert!(verdict.holds() && verdict.waiting == 2, "{verdict:?}");
    while post_some(&database.db).await.unwrap() {}
    let verdict = verify(&database.db).await.unwrap();
    assert!(verdict.holds() && verdict.waiting == 0, "{verdict:?}");
    database.drop().await;
}
