//! Telemetry counts once, in any order (I-2).

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::alive;
use gpuledger_storage::telemetry::{
    HourKey, HourValues, SequenceGap, StagedWindow, WindowId, accept, add_hours, count_staged, gaps,
    load_hours, stage,
};
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;

fn id(node: &str, sequence: i64) -> WindowId {
    WindowId { node: node.to_owned(), stream: "s1".to_owned(), sequence }
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
    let gap =
        |node: &str, first, last| SequenceGap { node: node.to_owned(), stream: "s1".to_owned(), first, last };
    assert_eq!(gaps(&mut tx).await?, [gap("n1", 1, 1), gap("n2", 0, 6)]);
    accept(&mut tx, &[id("n1", 1)]).await?;
    assert_eq!(gaps(&mut tx).await?, [gap("n2", 0, 6)]);
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

#[tokio::test]
async fn windows_are_staged_as_they_came() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let window = StagedWindow { id: id("n\t1", 0), end_us: 10, body: vec![0, 255, b'\\', b'\n'] };
    assert_eq!(stage(&mut tx, std::slice::from_ref(&window)).await?, 1);
    assert_eq!(stage(&mut tx, &[]).await?, 0);
    assert_eq!(count_staged(&mut tx).await?, 1);
    let (node, body): (String, Vec<u8>) =
        sqlx::query_as("SELECT node, body FROM telemetry_window").fetch_one(&mut *tx).await?;
    assert_eq!((node, body), (window.id.node, window.body));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn hours_add_up_beyond_64_bits_and_absent_is_not_zero() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let key = HourKey {
        node: "n1".to_owned(),
        gpu: "g".to_owned(),
        placement: (-1, 8),
        owner: String::new(),
        hour_us: HOUR,
    };
    let quality = |reading: &str, label: &str, us: i64| {
        BTreeMap::from([(reading.to_owned(), BTreeMap::from([(label.to_owned(), us)]))])
    };
    let huge = i128::MAX / 4;
    let one = HourValues {
        memory_byte_us: Some(huge),
        memory_bytes_max: Some(7),
        covered_us: 10,
        quality: quality("energy_mj", "driver_counter", 10),
        ..HourValues::default()
    };
    let two = HourValues {
        sm_active_us: Some(0),
        memory_byte_us: Some(huge),
        memory_bytes_max: Some(5),
        covered_us: 20,
        quality: quality("energy_mj", "derived_share", 20),
        ..HourValues::default()
    };
    for values in [&one, &two, &one] {
        add_hours(&mut tx, &BTreeMap::from([(key.clone(), values.clone())])).await?;
    }
    let mut wanted = one.clone();
    wanted.add(&two);
    wanted.add(&one);
    let stored = load_hours(&mut tx, Some("g"), 0, 2 * HOUR).await?;
    assert_eq!(stored, BTreeMap::from([(key, wanted.clone())]));
    assert_eq!((wanted.sm_active_us, wanted.energy_mj), (Some(0), None));
    assert_eq!(wanted.memory_byte_us, Some(huge * 3));
    assert_eq!(
        wanted.quality["energy_mj"],
        BTreeMap::from([("derived_share".to_owned(), 20), ("driver_counter".to_owned(), 20)])
    );
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn proof_of_life_is_order_free() -> Result<()> {
    let ends = [("n1", 5), ("n1", MINUTE - 1), ("n1", 7), ("n1", MINUTE), ("n1", HOUR + 1), ("n2", 3)];
    let ends: Vec<(String, i64)> = ends.map(|(node, us)| (node.to_owned(), us)).to_vec();
    let backwards: Vec<(String, i64)> = ends.iter().rev().cloned().collect();
    for order in [ends, backwards] {
        let database = Database::new().await?;
        let mut tx = database.writer.begin().await?;
        for _ in 0..2 {
            for end in &order {
                alive::merge(&mut tx, std::slice::from_ref(end)).await?;
            }
        }
        let of_n1: Vec<i64> =
            alive::load(&mut tx, &["n1".to_owned()]).await?.into_iter().map(|alive| alive.at_us).collect();
        assert_eq!(of_n1, [5, MINUTE - 1, MINUTE, HOUR + 1]);
        assert_eq!(alive::load_all(&mut tx).await?.len(), 5);
        let last = alive::last_heard(&mut tx).await?;
        assert_eq!(last, BTreeMap::from([("n1".to_owned(), HOUR + 1), ("n2".to_owned(), 3)]));
        drop(tx);
        database.drop().await?;
    }
    Ok(())
}
