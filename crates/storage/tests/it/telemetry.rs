//! Telemetry counts once, in any order (I-2).

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::telemetry::{SequenceGap, WindowId, accept, gaps};

fn id(node: &str, sequence: i64) -> WindowId<'_> {
    // Windows of ten units of time.
    let start_us = sequence.saturating_mul(10);
    WindowId { node, stream: "s1", sequence, start_us, end_us: start_us.saturating_add(10) }
}

/// A hole, which ends where the window behind it begins.
fn gap(node: &str, first: i64, last: i64, since_us: Option<i64>) -> SequenceGap {
    let until_us = Some((last + 1) * 10);
    SequenceGap { node: node.to_owned(), stream: "s1".to_owned(), first, last, since_us, until_us }
}

#[tokio::test]
async fn a_hole_lasts_from_the_window_before_it_to_the_one_behind_in_whatever_order_they_came() -> Result<()>
{
    for order in [[0, 1, 5, 9, 7], [9, 7, 5, 1, 0], [5, 0, 9, 1, 7], [1, 9, 0, 7, 5]] {
        let database = Database::new().await?;
        let mut tx = database.writer.begin().await?;
        for sequence in order {
            accept(&mut tx, &[id("n1", sequence)]).await?;
        }
        let holes = [gap("n1", 2, 4, Some(20)), gap("n1", 6, 6, Some(60)), gap("n1", 8, 8, Some(80))];
        assert_eq!(gaps(&mut tx).await?, holes, "{order:?}");
        accept(&mut tx, &[id("n1", 8), id("n1", 3)]).await?;
        let holes = [gap("n1", 2, 2, Some(20)), gap("n1", 4, 4, Some(40)), gap("n1", 6, 6, Some(60))];
        assert_eq!(gaps(&mut tx).await?, holes, "{order:?}: filled in part");
        drop(tx);
        database.drop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_sequence_is_new_once() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let batch = [id("n1", 0), id("n2", 7), id("n1", 0), id("n1", 3)];
    assert_eq!(accept(&mut tx, &batch).await?, [true, true, false, true]);
    tx.commit().await?;
    let mut tx = database.writer.begin().await?;
    assert_eq!(accept(&mut tx, &[id("n1", 3), id("n1", 2)]).await?, [false, true]);
    assert_eq!(gaps(&mut tx).await?, [gap("n1", 1, 1, Some(10)), gap("n2", 0, 6, None)]);
    accept(&mut tx, &[id("n1", 1)]).await?;
    assert_eq!(gaps(&mut tx).await?, [gap("n2", 0, 6, None)]);
    assert!(accept(&mut tx, &[id("n1", -1)]).await.is_err());
    assert!(accept(&mut tx, &[id("n1", i64::MAX)]).await.is_err());
    assert_eq!(accept(&mut tx, &[id("n1", i64::MAX - 1)]).await?, [true]);
    assert_eq!(accept(&mut tx, &[]).await?, [true; 0]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn two_consumers_count_a_window_once() -> Result<()> {
    let database = Database::new().await?;
    let mut first = database.writer.begin().await?;
    assert_eq!(accept(&mut first, &[id("n1", 0), id("n1", 1)]).await?, [true, true]);
    let writer = database.writer.clone();
    let second = tokio::spawn(async move {
        let mut tx = writer.begin().await?;
        let new = accept(&mut tx, &[id("n1", 1), id("n1", 2)]).await?;
        tx.commit().await?;
        Ok::<_, gpuledger_storage::StorageError>(new)
    });
    database.until_waiting(1).await?;
    first.commit().await?;
    assert_eq!(second.await??, [false, true]);
    database.drop().await
}
