//! Rows that pass through: events from the API, nodes to be settled.

use crate::database::{Database, refusal};
use anyhow::Result;
use gpuledger_storage::inbox::{Listener, NewItem, Speaker, put, take};
use gpuledger_storage::{alive, touched};
use sqlx::{Connection, Executor};
use std::collections::BTreeMap;
use std::time::Duration;

fn item(text: &str) -> NewItem {
    NewItem { refusal: None, body: text.as_bytes().to_vec() }
}

#[tokio::test]
async fn the_api_puts_and_the_ledger_takes_with_its_effects() -> Result<()> {
    let database = Database::new().await?;
    let speaker = Speaker { principal: "node:n1".to_owned(), nodes: Some(vec!["n1".to_owned()]) };
    let refused = NewItem { refusal: Some("speaks for n2".to_owned()), ..item("c") };
    let mut tx = database.api.begin().await?;
    put(&mut tx, &speaker, 7, &[item("a"), item("b"), refused]).await?;
    tx.commit().await?;
    for keep in [false, true] {
        let mut tx = database.writer.begin().await?;
        let taken = take(&mut tx, 2).await?;
        let bodies: Vec<&[u8]> = taken.iter().map(|item| item.body.as_slice()).collect();
        assert_eq!(bodies, [b"a", b"b"]);
        assert_eq!((taken[0].nodes.as_ref(), taken[0].received_at_us), (speaker.nodes.as_ref(), 7));
        // Another ledger passes over what this one holds.
        let mut other = database.writer.begin().await?;
        let rest = take(&mut other, 9).await?;
        assert_eq!((rest.len(), rest[0].refusal.as_deref()), (1, Some("speaks for n2")));
        other.rollback().await?;
        if keep {
            tx.commit().await?;
        } else {
            tx.rollback().await?;
        }
    }
    let mut tx = database.writer.begin().await?;
    assert_eq!(take(&mut tx, 9).await?.len(), 1);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn the_api_cannot_read_what_was_put() -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    login.execute("SET ROLE gpuledger_api").await?;
    for statement in ["SELECT FROM inbox", "DELETE FROM inbox", "UPDATE inbox SET body = ''"] {
        assert_eq!(refusal(login.execute(statement).await).0, "42501", "{statement}");
    }
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn putting_wakes_the_listener() -> Result<()> {
    let database = Database::new().await?;
    let mut listener = Listener::new(&database.writer).await?;
    let long = Duration::from_secs(60);
    assert!(tokio::time::timeout(Duration::from_millis(200), listener.wait(long)).await.is_err());
    let speaker = Speaker { principal: "admin".to_owned(), nodes: None };
    let mut tx = database.api.begin().await?;
    put(&mut tx, &speaker, 7, &[item("a")]).await?;
    tx.commit().await?;
    tokio::time::timeout(Duration::from_secs(10), listener.wait(long)).await??;
    drop(listener);
    database.drop().await
}

fn marks(marks: &[(&str, i64)]) -> BTreeMap<String, i64> {
    marks.iter().map(|(node, from_us)| ((*node).to_owned(), *from_us)).collect()
}

#[tokio::test]
async fn a_marked_node_is_taken_once_from_the_earliest_instant() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    touched::mark_from(&mut tx, &marks(&[("n2", 5), ("n1", 7)])).await?;
    touched::mark_from(&mut tx, &marks(&[("n1", 3)])).await?;
    touched::mark_from(&mut tx, &marks(&[("n1", 9)])).await?;
    assert_eq!(touched::take(&mut tx, 9).await?, marks(&[("n1", 3), ("n2", 5)]));
    assert_eq!(touched::take(&mut tx, 9).await?, marks(&[]));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_mark_stays_for_what_the_horizon_has_not_reached() -> Result<()> {
    const HOUR: i64 = 3_600_000_000;
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let heard = [("past", HOUR), ("both", HOUR), ("both", 3 * HOUR)];
    alive::merge(&mut tx, &alive::runs(heard)).await?;
    touched::mark_from(&mut tx, &marks(&[("past", HOUR), ("both", HOUR), ("later", 3 * HOUR)])).await?;
    assert!(touched::any(&mut tx, 2 * HOUR).await?);
    assert_eq!(touched::take(&mut tx, 2 * HOUR).await?, marks(&[("past", HOUR), ("both", HOUR)]));
    assert!(!touched::any(&mut tx, 2 * HOUR).await?, "what stays is not looked at before the horizon moves");
    assert_eq!(
        touched::take(&mut tx, 4 * HOUR).await?,
        marks(&[("both", 2 * HOUR + 1), ("later", 3 * HOUR)])
    );
    drop(tx);
    database.drop().await
}
