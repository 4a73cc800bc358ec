//! Packed hours come back as they were written (A-13, M-6, M-8).

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::hours::{Filter, HourKey, PackedHour, Used, load, load_nodes, replace_nodes};

const HOUR: i64 = 3_600_000_000;

fn used(minute: u8, sm: Option<u64>, memory: Option<u128>) -> Used {
    let mut used = Used::default();
    used.covered_us.add(minute, 60_000_000);
    sm.into_iter().for_each(|sm| used.sm_active_us.add(minute, sm));
    memory.into_iter().for_each(|memory| used.memory_byte_us.add(minute, memory));
    used.quality.add("sm_active_us", "interval_mean", 60_000_000, 0);
    used
}

fn row(hour: i64, node: &str, gpu: &str, owner: &str, used: Option<Used>, unit: Option<Used>) -> PackedHour {
    let key = HourKey {
        hour_us: hour * HOUR,
        node: node.to_owned(),
        gpu: gpu.to_owned(),
        placement: Some((0, 2)),
        owner: owner.to_owned(),
    };
    PackedHour { key, used, unit }
}

#[tokio::test]
async fn rows_come_back_and_their_sums_pass_64_bits() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let mut unit = used(59, Some(0), Some(10_u128.pow(36)));
    unit.memory_bytes_max = Some(7);
    unit.energy_mj.add(3, 5);
    let mut whole = row(0, "n", "h", "", None, Some(unit.clone()));
    whole.key.placement = None;
    let rows = [
        row(0, "n", "g", "job:1", Some(used(1, None, None)), Some(unit)),
        row(0, "n", "g", "job:2", Some(used(1, Some(u64::MAX), None)), None),
        whole,
    ];
    replace_nodes(&mut tx, 0, &["n"], &rows, false).await?;
    let all = Filter { gpus: None, from_us: 0, to_us: HOUR };
    assert_eq!(load(&mut tx, &all).await?, rows);
    let sums: (String, String, Option<String>, String) = sqlx::query_as(
        "SELECT sum(sm_active_us)::TEXT, sum(unit_memory_byte_us)::TEXT, min(unit_sm_active_us)::TEXT, sum(unit_energy_mj)::TEXT FROM packed_hour",
    )
    .fetch_one(&mut *tx)
    .await?;
    let wanted = (
        "18446744073709551615".to_owned(),
        (2 * 10_u128.pow(36)).to_string(),
        Some("0".to_owned()),
        "10".to_owned(),
    );
    assert_eq!(sums, wanted);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn nodes_are_replaced_and_the_others_stay() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let one = |hour, node: &str, sm| row(hour, node, "g", "", None, Some(used(0, Some(sm), None)));
    replace_nodes(&mut tx, 0, &["a", "b"], &[one(0, "a", 1), one(0, "b", 2)], false).await?;
    replace_nodes(&mut tx, 800 * HOUR, &["a"], &[one(800, "a", 3)], false).await?;
    replace_nodes(&mut tx, 0, &["a"], &[one(0, "a", 4)], true).await?;
    assert_eq!(load_nodes(&mut tx, 0, &["a"]).await?, [one(0, "a", 4)]);
    let gpus = ["g".to_owned()];
    let all = Filter { gpus: Some(&gpus), from_us: 0, to_us: i64::MAX };
    assert_eq!(load(&mut tx, &all).await?, [one(0, "a", 4), one(0, "b", 2), one(800, "a", 3)]);
    assert_eq!(load(&mut tx, &Filter { gpus: Some(&[]), ..all }).await?, []);
    drop(tx);
    database.drop().await
}
