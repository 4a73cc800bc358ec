use super::*;
use crate::incoming::Incoming;
use crate::replay::{Input, apply_alone, replay};
use crate::testing::{Database, now};
use gpuledger_storage::hours::{Filter, PackedHour, load};
use gpuledger_storage::{blocks, touched};
use gpuledger_wire::time::parse_time;
use serde_json::json;
use std::io::Cursor;

impl Database {
    async fn take(&self, lines: &[String]) -> u64 {
        let batch: Vec<Incoming> =
            lines.iter().map(|line| Incoming::trusted(line.as_bytes().to_vec(), "test".to_owned())).collect();
        let applied = apply_alone(&self.db, &batch, now()).await.unwrap();
        assert_eq!(applied.tally.parked, 0);
        applied.tally.windows
    }

    async fn rows(&self) -> Vec<PackedHour> {
        let mut tx = self.db.snapshot().await.unwrap();
        load(&mut tx, &Filter { gpus: None, from_us: i64::MIN, to_us: i64::MAX }).await.unwrap()
    }

    async fn waiting(&self) -> usize {
        let mut tx = self.db.snapshot().await.unwrap();
        blocks::waiting(&mut tx).await.unwrap().len()
    }
}

/// A window of ten seconds; of each node they follow each other from 08:50 on.
fn window(node: u32, sequence: u32) -> String {
    let start = parse_time("2026-10-01T08:50:00Z").unwrap().plus(i64::from(sequence) * 10_000_000);
    let end = start.plus(10_000_000).to_string();
    let reading = |gpu: u32, sm: u32| {
        json!({"gpu": format!("GPU-{node}-{gpu}"), "sm_active_us": sm, "memory_byte_us": 1 << gpu, "covered_us": 10_000_000 - gpu,
               "quality": {"sm_active_us": "interval_mean"}})
    };
    let process = |gpu: u32, pid: u32| {
        let mut process = reading(gpu, sequence);
        process["pid"] = pid.into();
        process["started_at"] = "2026-10-01T00:00:00Z".into();
        if pid > 1 {
            process["slurm_job"] = format!("{}", sequence / 60).into();
        }
        process
    };
    json!({
        "specversion": "1.0", "type": "gpuledger.telemetry.window.v1", "source": format!("/nodes/n{node}/collector"),
        "id": format!("n{node}-{sequence}"), "time": end,
        "data": {"node": format!("n{node}"), "boot_id": "b", "stream": "s", "sequence": sequence, "start": start.to_string(),
                 "end": end, "units": [reading(0, 7), reading(1, sequence)],
                 "processes": [process(1, 1), process(1, 2)], "gaps": []},
    })
    .to_string()
}

fn windows() -> Vec<String> {
    (0..120).flat_map(|sequence| (0..5).map(move |node| window(node, sequence))).collect()
}

#[tokio::test]
async fn windows_count_once_whatever_their_order_their_batches_and_the_chunks_a_5() {
    let lines = windows();
    let straight = Database::new().await;
    assert_eq!(straight.take(&lines).await, 600);
    everything(&straight.db).await.unwrap();
    let wanted = straight.rows().await;
    // Two hours of five nodes: the unit without a process, the one with its process, and its jobs.
    assert_eq!(wanted.len(), 2 * 5 * 3);
    let sum: u128 = wanted.iter().filter_map(|row| row.unit.as_ref()?.sm_active_us.sum()).sum();
    assert_eq!(sum, (0..120).map(|sequence| 5 * (7 + sequence)).sum::<u128>());

    let crooked = Database::new().await;
    let mut mixed = lines.clone();
    mixed.sort_by_key(|line| {
        line.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
    });
    let mut taken = 0;
    for batch in mixed.chunks(70) {
        taken += crooked.take(batch).await;
        // A doubled batch, and an hour that is packed in chunks of a node or two, again and again.
        assert_eq!(crooked.take(batch).await, 0);
        let mut tx = crooked.db.snapshot().await.unwrap();
        let hours = waiting(&mut tx).await.unwrap();
        drop(tx);
        for hour in hours {
            while chunk(&crooked.db, hour.hour_us, 4).await.unwrap() {}
        }
        assert_eq!(crooked.waiting().await, 0);
    }
    assert_eq!((taken, crooked.rows().await), (600, wanted));
    crooked.drop().await;
    straight.drop().await;
}

#[tokio::test]
async fn a_replay_packs_before_it_ends_and_a_chunk_that_is_cut_off_counts_nothing_i_3() {
    let database = Database::new().await;
    let input = |lines: &[String]| Input {
        name: "test".to_owned(),
        reader: Box::new(Cursor::new(lines.join("\n").into_bytes())),
    };
    let lines = windows();
    replay(&database.db, vec![input(&lines[..300])], None, now(), &mut |_| {}).await.unwrap();
    assert_eq!(database.waiting().await, 0);
    let half = database.rows().await;
    database.take(&lines[300..]).await;
    // As a kill within the chunk would: what it wrote is rolled back, the marks of the blocks with it.
    let mut tx = database.db.begin().await.unwrap();
    let hour_us = waiting(&mut tx).await.unwrap()[0].hour_us;
    let page = to_pack(&mut tx, hour_us, None, 100).await.unwrap();
    let numbers: Vec<i64> = page.iter().map(|block| block.number).collect();
    let folds = folded(vec![Fold::new(1_000)], page).await.unwrap();
    write(&mut tx, folds.into_iter().next().unwrap()).await.unwrap();
    mark_packed(&mut tx, hour_us, &numbers, None).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(database.rows().await, half);
    everything(&database.db).await.unwrap();
    let straight = Database::new().await;
    straight.take(&lines).await;
    everything(&straight.db).await.unwrap();
    assert_eq!(database.rows().await, straight.rows().await);
    straight.drop().await;
    database.drop().await;
}

#[tokio::test]
async fn a_node_that_goes_on_living_is_not_marked_a_15() {
    let database = Database::new().await;
    let lines: Vec<String> = (0..120).map(|sequence| window(0, sequence)).collect();
    let marked = async || {
        let mut tx = database.db.begin().await.unwrap();
        let marks = touched::take(&mut tx, 4_000_000_000_000_000).await.unwrap();
        tx.commit().await.unwrap();
        marks.len()
    };
    let horizon = async |at: &str| {
        let at = parse_time(at).unwrap();
        crate::horizon::advance(&database.db, at).await.unwrap();
    };
    database.take(&lines[..1]).await;
    assert_eq!(marked().await, 0, "nothing is posted before the first horizon");
    horizon("2026-10-01T08:52:00Z").await;
    database.take(&lines[1..30]).await;
    assert_eq!(marked().await, 0, "it goes on");
    horizon("2026-10-01T09:20:00Z").await;
    database.take(&lines[30..60]).await;
    assert_eq!(marked().await, 1, "it was silent since 08:55");
    horizon("2026-10-01T09:14:00Z").await;
    database.take(&lines[100..]).await;
    marked().await;
    database.take(&lines[60..100]).await;
    assert_eq!(marked().await, 0, "between ends that no silence parts");
    database.drop().await;
}
