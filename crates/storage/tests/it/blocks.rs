//! Blocks wait, are packed by node, and are packed once.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::blocks::{NewBlock, mark_packed, newest_end, page, stage, to_pack, waiting};

const HOUR: i64 = 3_600_000_000;

fn block(hour: i64, first: &str, last: &str) -> NewBlock {
    NewBlock {
        hour_us: hour * HOUR,
        first_node: first.to_owned(),
        last_node: last.to_owned(),
        windows: 2,
        rows: 4,
        raw_bytes: 100,
        last_end_us: hour * HOUR + 10,
        body: vec![0, 255, b'\\', b'\n'],
    }
}

#[tokio::test]
async fn blocks_are_staged_as_they_came_whatever_their_day() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    stage(&mut tx, &[block(0, "n\t1", "n2"), block(25, "a", "b"), block(0, "a", "a")]).await?;
    let none: &[NewBlock] = &[];
    stage(&mut tx, none).await?;
    tx.commit().await?;
    let mut tx = database.writer.begin().await?;
    let first = page(&mut tx, None, 2).await?;
    assert_eq!(first.iter().map(|block| block.hour_us).collect::<Vec<_>>(), [0, 0]);
    assert_eq!((first[0].next_node.as_deref(), &*first[0].body), (Some("n\t1"), &[0, 255, b'\\', b'\n'][..]));
    let rest = page(&mut tx, Some((first[1].hour_us, first[1].number)), 2).await?;
    assert_eq!(rest.iter().map(|block| block.hour_us).collect::<Vec<_>>(), [25 * HOUR]);
    assert_eq!(newest_end(&mut tx).await?, Some(25 * HOUR + 10));
    let hours = waiting(&mut tx).await?;
    assert_eq!(
        hours.iter().map(|hour| (hour.hour_us, hour.raw_bytes)).collect::<Vec<_>>(),
        [(0, 200), (25 * HOUR, 100)]
    );
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_block_is_packed_up_to_a_node_and_then_whole() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    stage(&mut tx, &[block(3, "a", "c"), block(3, "b", "z"), block(3, "m", "n")]).await?;
    let next = async |tx: &mut gpuledger_storage::Tx| -> Result<Vec<String>> {
        Ok(to_pack(tx, 3 * HOUR, None, 9).await?.into_iter().filter_map(|block| block.next_node).collect())
    };
    assert_eq!(next(&mut tx).await?, ["a", "b", "m"]);
    let all = to_pack(&mut tx, 3 * HOUR, None, 9).await?;
    let after = to_pack(&mut tx, 3 * HOUR, Some(("a", all[0].number)), 1).await?;
    assert_eq!(after, all[1..2]);
    let numbers: Vec<i64> = all.iter().map(|block| block.number).collect();
    mark_packed(&mut tx, 3 * HOUR, &numbers, Some("d")).await?;
    assert_eq!(next(&mut tx).await?, ["d", "m"]);
    mark_packed(&mut tx, 3 * HOUR, &numbers[1..], None).await?;
    assert_eq!(waiting(&mut tx).await?, []);
    drop(tx);
    database.drop().await
}
