//! The load of the audit log: records that wait for their leaf, the same leaves by plain INSERT, and what a proof costs beside a row.

use anyhow::{Context as _, Result};
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::{Db, Role, audit_log, connect};
use gpuledger_trail::stored;
use sqlx::{Connection as _, PgConnection};
use std::time::{Duration, Instant};

/// Records of one transaction while the queue is filled.
const FILL: u64 = 5_000;
/// Rows of an INSERT, as the bar has it.
const ROWS: i64 = 1_000;
const KIND: &str = "gpuledger.allocation.granted.v1";
/// 2026-10-01T00:00:00Z.
const START_US: i64 = 1_790_812_800_000_000;
/// Odd, and without a factor in common with any power of two: steps through all leaves in no order.
const STRIDE: u64 = 7_368_787;

/// Puts records of grants into the queue: 50 tenants, 512 GPUs.
pub(crate) async fn fill(url: &str, leaves: u64) -> Result<()> {
    let db = connect(url, Role::Writer).await?;
    let mut at = 0;
    while at < leaves {
        let to = leaves.min(at + FILL);
        let records: Vec<PendingRecord> = (at..to).map(record).collect();
        let mut tx = db.begin().await?;
        append(&mut tx, &records).await?;
        tx.commit().await?;
        at = to;
    }
    Ok(())
}

fn record(number: u64) -> PendingRecord {
    let (tenant, gpu) = (number % 50, number % 512);
    let body = format!(
        r#"{{"data":{{"allocation":"a-{number}","tenant":"tenant-{tenant}","units":[{{"gpu":"GPU-{gpu}"}}]}},"id":"e-{number}"}}"#
    );
    PendingRecord { fact_seq: None, kind: KIND.to_owned(), body: body.into_bytes(), recorded_at_us: START_US }
}

/// Inserts the bytes of the first leaves into a plain table, a thousand rows a statement and transaction; how long that took without reading them, and their mean length.
pub(crate) async fn insert(url: &str, leaves: u64) -> Result<(Duration, u64)> {
    let db = connect(url, Role::Owner).await?;
    let mut into = PgConnection::connect(url).await?;
    sqlx::query("CREATE TABLE inserted (leaf_index BIGINT PRIMARY KEY, leaf BYTEA NOT NULL)")
        .execute(&mut into)
        .await?;
    let (mut took, mut bytes, mut at) = (Duration::ZERO, 0, 0);
    let end = i64::try_from(leaves)?;
    while at < end {
        let to = end.min(at + ROWS);
        let page = audit_log::leaf_bytes(&mut *db.snapshot().await?, at, to).await?;
        let indexes: Vec<i64> = (at..to).collect();
        bytes += page.iter().map(Vec::len).sum::<usize>();
        let began = Instant::now();
        sqlx::query("INSERT INTO inserted (leaf_index, leaf) SELECT * FROM UNNEST($1::INT8[], $2::BYTEA[])")
            .bind(&indexes)
            .bind(&page)
            .execute(&mut into)
            .await?;
        took += began.elapsed();
        at = to;
    }
    Ok((took, u64::try_from(bytes)? / leaves.max(1)))
}

/// The 99th percentile of a proof and of reading one row, of the same leaves.
pub(crate) async fn latency(url: &str, samples: u64) -> Result<(Duration, Duration)> {
    let db: Db = connect(url, Role::Writer).await?;
    let mut tx = db.snapshot().await?;
    let size = stored::published(&mut tx).await?.context("a checkpoint")?.size;
    let (mut proofs, mut rows) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let index = sample * STRIDE % size;
        let began = Instant::now();
        audit_log::leaf(&mut tx, i64::try_from(index)?).await?.context("a leaf")?;
        rows.push(began.elapsed());
        let began = Instant::now();
        stored::proof(&mut tx, index, None).await?.context("a proof")?;
        proofs.push(began.elapsed());
    }
    Ok((p99(proofs)?, p99(rows)?))
}

fn p99(mut times: Vec<Duration>) -> Result<Duration> {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().context("samples")
}
