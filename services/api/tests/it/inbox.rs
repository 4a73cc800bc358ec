//! The queue between API and ledger.

use crate::fixture::Fixture;
use anyhow::Result;
use gpuledger_storage::inbox::{Listener, NewItem, Speaker, put, take};
use gpuledger_storage::{Db, StorageError};
use std::time::{Duration, Instant};

fn speaker() -> Speaker {
    Speaker { principal: "p".to_owned(), nodes: None }
}

async fn fill(db: &Db, bodies: &[&str]) -> Result<()> {
    let items: Vec<NewItem> =
        bodies.iter().map(|body| NewItem { refusal: None, body: body.as_bytes().to_vec() }).collect();
    let mut tx = db.begin().await?;
    put(&mut tx, &speaker(), 1, &items).await?;
    Ok(tx.commit().await?)
}

#[tokio::test]
async fn what_is_taken_comes_back_unless_it_is_committed() -> Result<()> {
    let fixture = Fixture::new().await?;
    fill(&fixture.api, &["a", "b", "c"]).await?;
    let bodies = |items: Vec<gpuledger_storage::inbox::Item>| -> Vec<Vec<u8>> {
        items.into_iter().map(|i| i.body).collect()
    };
    let mut tx = fixture.writer.begin().await?;
    assert_eq!(bodies(take(&mut tx, 2).await?), [b"a", b"b"]);
    tx.rollback().await?;
    let mut tx = fixture.writer.begin().await?;
    assert_eq!(bodies(take(&mut tx, 2).await?), [b"a", b"b"]);
    let mut other = fixture.writer.begin().await?;
    assert_eq!(bodies(take(&mut other, 2).await?), [b"c"], "another ledger passes over what is held");
    tx.commit().await?;
    other.commit().await?;
    let mut tx = fixture.writer.begin().await?;
    assert!(take(&mut tx, 2).await?.is_empty());
    tx.rollback().await?;
    fixture.end().await
}

#[tokio::test]
async fn the_api_puts_and_cannot_read() -> Result<()> {
    let fixture = Fixture::new().await?;
    fill(&fixture.api, &["a"]).await?;
    let mut tx = fixture.api.begin().await?;
    let denied = take(&mut tx, 1).await;
    assert!(matches!(denied, Err(StorageError::Denied { .. })), "{denied:?}");
    tx.rollback().await?;
    let mut tx = fixture.writer.begin().await?;
    let long = Speaker { principal: "p".repeat(1_025), ..speaker() };
    let item = NewItem { refusal: None, body: Vec::new() };
    assert!(put(&mut tx, &long, 1, &[item]).await.is_err());
    tx.rollback().await?;
    fixture.end().await
}

#[tokio::test]
async fn putting_wakes_the_ledger() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut listener = Listener::new(&fixture.writer).await?;
    let idle = Instant::now();
    listener.wait(Duration::from_millis(50)).await?;
    assert!(idle.elapsed() >= Duration::from_millis(50), "nothing was put");
    fill(&fixture.api, &["a"]).await?;
    let begun = Instant::now();
    listener.wait(Duration::from_secs(60)).await?;
    assert!(begun.elapsed() < Duration::from_secs(30), "woken, not timed out");
    drop(listener);
    fixture.end().await
}
