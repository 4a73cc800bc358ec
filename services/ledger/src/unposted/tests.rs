use super::*;
use crate::balance::{BalanceRow, balance};
use crate::batch::apply_all;
use crate::horizon::advance;
use crate::incoming::{Arrivals, Incoming};
use crate::testing::{Database, now};
use crate::verify::verify;
use gpuledger_books::Books;
use gpuledger_domain::time::{HOUR_US, Window};
use gpuledger_storage::journals::standing_journals;
use serde_json::{Value, json};

const HOURS: i64 = 12;

fn at(hour: i64, minute: i64) -> Instant {
    now().plus(-24 * HOUR_US + hour * HOUR_US + minute * HOUR_US / 60)
}

fn event(kind: &str, name: &str, time: Instant, data: &Value) -> Incoming {
    let event = json!({"specversion": "1.0", "id": name, "source": "/nodes/n1/x", "type": format!("gpuledger.{kind}.v1"),
                       "time": time.to_string(), "data": data});
    Incoming::trusted(event.to_string().into_bytes(), "test".to_owned())
}

fn inventory() -> Incoming {
    let gpu = |n: u32| {
        json!({"uuid": format!("GPU-{n}"), "index": n, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": 85_520_809_984_u64,
                                     "compute_slices": 7, "memory_slices": 8, "mig": false, "state": "ok", "instances": []})
    };
    let data = json!({"node": "n1", "boot_id": "b", "gpus": [gpu(0), gpu(1)]});
    event("node.inventory", "inventory", at(0, 0), &data)
}

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

async fn apply(database: &Database, events: Vec<Incoming>, is_backlog: bool) -> u64 {
    let mut tx = database.db.begin().await.unwrap();
    let arrivals = Arrivals { is_backlog, ..Arrivals::from(events) };
    let applied = apply_all(&mut tx, &arrivals, now()).await.unwrap();
    assert_eq!(applied.tally.parked, 0);
    tx.commit().await.unwrap();
    applied.tally.unposted
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
