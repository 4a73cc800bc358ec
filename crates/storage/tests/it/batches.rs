//! What goes around a batch: offsets and their fence, parked events, closes, objects, state.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::closes::{hold_closing, hold_open};
use gpuledger_storage::objects::{NewObject, all_versions, apply, latest};
use gpuledger_storage::offsets::{Place, advance, load};
use gpuledger_storage::parked::{
    Choice, Decision, NewParked, count_open, decide, decision, find, insert, numbers, open, open_among,
    retries,
};
use gpuledger_storage::retry::retry;
use gpuledger_storage::state::{advance_clock, advance_horizon};
use gpuledger_storage::{StorageError, audit, locks, state};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;

fn place<'a>(topic_id: &'a str) -> Place<'a> {
    Place { group: "ledger", topic: "t", partition: 3, cluster_id: "k", topic_id }
}

#[tokio::test]
async fn an_offset_moves_from_where_it_stands_only() -> Result<()> {
    let database = Database::new().await?;
    for (expected, next) in [(None, 5), (Some(5), 9)] {
        let mut tx = database.writer.begin().await?;
        advance(&mut tx, &place("x"), expected, next).await?;
        tx.commit().await?;
    }
    for (at, expected) in [("x", None), ("x", Some(5)), ("x", Some(10)), ("y", Some(9)), ("y", None)] {
        let mut tx = database.writer.begin().await?;
        let error = advance(&mut tx, &place(at), expected, 11).await.unwrap_err();
        assert!(matches!(error, StorageError::Fenced { .. }), "{error}");
    }
    let mut tx = database.writer.begin().await?;
    let rows = load(&mut tx, "ledger", "t").await?;
    assert_eq!((rows.len(), rows[0].next_offset, rows[0].topic_id.as_str()), (1, 9, "x"));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn of_two_consumers_of_a_partition_one_is_fenced() -> Result<()> {
    let database = Database::new().await?;
    for (expected, next) in [(None, 5), (Some(5), 9)] {
        let mut first = database.writer.begin().await?;
        advance(&mut first, &place("x"), expected, next).await?;
        let writer = database.writer.clone();
        let second = tokio::spawn(async move {
            let mut tx = writer.begin().await?;
            advance(&mut tx, &place("x"), expected, next).await
        });
        database.until_waiting(1).await?;
        first.commit().await?;
        let error = second.await?.unwrap_err();
        assert!(matches!(error, StorageError::Fenced { .. }), "{error}");
    }
    database.drop().await
}

#[tokio::test]
async fn a_bad_event_is_parked_once_and_decided_once() -> Result<()> {
    let database = Database::new().await?;
    let bad = |body: &str, source: Option<&str>, origin: &str| NewParked {
        reason: "bad_value".to_owned(),
        detail: "a\0b".to_owned(),
        source: source.map(str::to_owned),
        id: None,
        subject: String::new(),
        at_us: None,
        received_at_us: 1,
        origin: origin.to_owned(),
        body: body.as_bytes().to_vec(),
        digest: None,
        retry_of: None,
    };
    let long = "x".repeat(100_000);
    let mut tx = database.writer.begin().await?;
    let events = [bad("{", None, "f:1"), bad("{", None, "f:2"), bad("{", Some(&long), "f:3")];
    assert_eq!(insert(&mut tx, &events).await?, 2);
    assert_eq!(insert(&mut tx, &events).await?, 0);
    let retried = NewParked { retry_of: Some(1), ..bad("}", None, "f:4") };
    assert_eq!(insert(&mut tx, &[bad("}", None, "f:4"), retried]).await?, 2);
    let all = Choice::default();
    let rows = open(&mut tx, &all).await?;
    assert_eq!((rows.len(), rows[0].detail.as_str(), rows[0].origin.as_str()), (4, "a\u{fffd}b", "f:1"));
    assert_eq!(count_open(&mut tx).await?, [("bad_value".to_owned(), 4)]);
    let of_source = Choice { source: Some(long.clone()), ..Choice::default() };
    assert_eq!(numbers(&mut tx, &of_source).await?, [rows[1].seq]);
    assert_eq!(numbers(&mut tx, &Choice { reason: Some("future".to_owned()), ..of_source }).await?, [0; 0]);
    assert_eq!((rows[3].retry_of, retries(&mut tx, 1).await?), (Some(1), vec![rows[3].seq]));
    decide(&mut tx, rows[0].seq, Decision::Discarded, "typo", 2, "cli").await?;
    assert_eq!(open(&mut tx, &all).await?, rows[1..]);
    assert_eq!(open_among(&mut tx, &[rows[0].seq, rows[1].seq]).await?, rows[1..2]);
    assert_eq!(open(&mut tx, &Choice { number: Some(rows[0].seq), ..Choice::default() }).await?, []);
    assert_eq!(find(&mut tx, rows[0].seq).await?.as_ref(), Some(&rows[0]));
    let decided = decision(&mut tx, rows[0].seq).await?.unwrap();
    assert_eq!((decided.decision.as_str(), decided.principal.as_str()), ("discarded", "cli"));
    assert_eq!(decision(&mut tx, rows[1].seq).await?, None);
    decide(&mut tx, rows[1].seq, Decision::Corrected, "typo", 2, "cli").await?;
    let error = decide(&mut tx, rows[0].seq, Decision::Retried, "again", 3, "cli").await.unwrap_err();
    assert_eq!(error.constraint(), Some("parked_decision_pkey"));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_close_waits_for_open_batches_and_they_for_it() -> Result<()> {
    let database = Database::new().await?;
    let mut first = database.writer.begin().await?;
    let mut second = database.writer.begin().await?;
    hold_open(&mut first).await?;
    hold_open(&mut second).await?;
    let writer = database.writer.clone();
    let close = tokio::spawn(async move {
        let mut tx = writer.begin().await?;
        hold_closing(&mut tx).await?;
        Ok::<_, StorageError>(tx)
    });
    database.until_waiting(1).await?;
    first.commit().await?;
    let writer = database.writer.clone();
    let late = tokio::spawn(async move {
        let mut tx = writer.begin().await?;
        hold_open(&mut tx).await
    });
    database.until_waiting(2).await?;
    second.commit().await?;
    let closing = close.await??;
    database.until_waiting(1).await?;
    assert!(!late.is_finished());
    closing.commit().await?;
    late.await??;
    database.drop().await
}

#[tokio::test]
async fn an_object_gets_a_version_when_it_says_something_new() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let object = |body: &str| NewObject { kind: "Sku".to_owned(), id: "h".to_owned(), body: body.to_owned() };
    assert_eq!(apply(&mut tx, &object(r#"{"b": 1, "a": "x"}"#), 1, "admin").await?, Some(1));
    assert_eq!(apply(&mut tx, &object(r#"{"a":"x","b":1}"#), 2, "admin").await?, None);
    assert_eq!(apply(&mut tx, &object(r#"{"a":"y"}"#), 3, "admin").await?, Some(2));
    assert_eq!(apply(&mut tx, &object(r#"{"b": 1, "a": "x"}"#), 4, "admin").await?, Some(3));
    let last = latest(&mut tx).await?;
    assert_eq!((last.len(), last[0].version, last[0].body.as_str()), (1, 3, r#"{"b": 1, "a": "x"}"#));
    let all: Vec<i32> = all_versions(&mut tx).await?.iter().map(|o| o.version).collect();
    assert_eq!(all, [1, 2, 3]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn clock_and_horizon_never_go_back() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    assert_eq!(state::load(&mut tx).await?, state::LedgerState::default());
    for (given, stands) in [(5, 5), (3, 5), (7, 7)] {
        assert_eq!(advance_clock(&mut tx, given).await?, stands);
        assert_eq!(advance_horizon(&mut tx, given, "1").await?, stands);
    }
    let record = audit::PendingRecord {
        fact_seq: None,
        kind: "object".to_owned(),
        body: b"{}".to_vec(),
        recorded_at_us: 1,
    };
    audit::append(&mut tx, &[record]).await?;
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_deadlock_is_retried() -> Result<()> {
    let database = Database::new().await?;
    let both_hold_one = Arc::new(Barrier::new(2));
    let attempts = Arc::new(AtomicUsize::new(0));
    let lock = |keys: [i32; 2]| {
        let (writer, keys) = (database.writer.clone(), keys.map(|key| BTreeSet::from([key])));
        let (both_hold_one, attempts) = (both_hold_one.clone(), attempts.clone());
        tokio::spawn(async move {
            retry(|| async {
                let mut tx = writer.begin().await?;
                locks::hold(&mut tx, &keys[0]).await?;
                if attempts.fetch_add(1, Ordering::SeqCst) < 2 {
                    both_hold_one.wait().await;
                }
                locks::hold(&mut tx, &keys[1]).await?;
                tx.commit().await
            })
            .await
        })
    };
    let (first, second) = (lock([1, 2]), lock([2, 1]));
    first.await??;
    second.await??;
    assert_eq!(attempts.load(Ordering::SeqCst), 3, "one of the two must have lost once");
    database.drop().await
}
