//! Files of the archive, and partitions that are dropped only where their telemetry is in one.

use crate::database::{Database, refusal};
use anyhow::Result;
use gpuledger_storage::archive::{self, ClosedFile};
use gpuledger_storage::partitions::{self, Parent};
use gpuledger_storage::{PgConnection, StorageError};
use sqlx::Connection;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// 2026-10-01T00:00:00Z.
const OCTOBER: i64 = 1_790_812_800_000_000;

/// Stages a block of an hour; `next_node` absent: packed.
async fn block(
    connection: &mut PgConnection,
    hour_us: i64,
    raw_bytes: i32,
    next_node: Option<&str>,
) -> Result<i64> {
    sqlx::query("SELECT ensure_telemetry_partition('telemetry_block', $1)")
        .bind(hour_us)
        .execute(&mut *connection)
        .await?;
    Ok(sqlx::query_scalar(
        "INSERT INTO telemetry_block (hour_us, first_node, last_node, next_node, windows, rows, raw_bytes, last_end_us, body)
         VALUES ($1, 'n1', 'n2', $2, 1, 1, $3, $1, '\\x00') RETURNING number",
    )
    .bind(hour_us)
    .bind(next_node)
    .bind(raw_bytes)
    .fetch_one(connection)
    .await?)
}

fn file(kind: &str, hour_us: i64, part: i32) -> ClosedFile {
    ClosedFile {
        key: format!("{kind}/{hour_us}/{part}"),
        kind: kind.to_owned(),
        hour_us,
        part,
        digest: vec![7; 32],
        bytes: 100,
        rows: 10,
        gaps: 1,
        gap_us: 5,
        first_us: hour_us,
        last_us: hour_us + 10,
        closed_at_us: hour_us + DAY_US,
    }
}

#[tokio::test]
async fn packed_blocks_wait_by_hour_until_they_are_marked() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let later = block(&mut tx, OCTOBER + HOUR_US, 10, None).await?;
    block(&mut tx, OCTOBER, 10, Some("n1")).await?;
    let first = block(&mut tx, OCTOBER, 60, None).await?;
    let second = block(&mut tx, OCTOBER, 60, None).await?;
    let third = block(&mut tx, OCTOBER, 60, None).await?;
    assert_eq!(archive::waiting_hour(&mut tx, OCTOBER).await?, None, "an hour before");
    assert_eq!(archive::waiting_hour(&mut tx, OCTOBER + 1).await?, Some(OCTOBER));
    let numbers = |blocks: Vec<archive::WaitingBlock>| blocks.iter().map(|b| b.number).collect::<Vec<_>>();
    // 60 are fewer than 100, 120 are not: the third waits. Nothing is fewer than 0, and one comes all the same.
    assert_eq!(numbers(archive::waiting_blocks(&mut tx, OCTOBER, 100).await?), [first, second]);
    assert_eq!(numbers(archive::waiting_blocks(&mut tx, OCTOBER, 1).await?), [first]);
    assert_eq!(archive::mark_archived(&mut tx, OCTOBER, &[first, second]).await?, 2);
    assert_eq!(archive::mark_archived(&mut tx, OCTOBER, &[second]).await?, 0, "marked before");
    assert_eq!(numbers(archive::waiting_blocks(&mut tx, OCTOBER, 100).await?), [third]);
    archive::mark_archived(&mut tx, OCTOBER, &[third]).await?;
    // What is not packed yet does not wait for the archive.
    assert_eq!(archive::waiting_hour(&mut tx, i64::MAX).await?, Some(OCTOBER + HOUR_US));
    archive::mark_archived(&mut tx, OCTOBER + HOUR_US, &[later]).await?;
    assert_eq!(archive::waiting_hour(&mut tx, i64::MAX).await?, None);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn one_archiver_works_at_a_time() -> Result<()> {
    let database = Database::new().await?;
    let mut first = database.writer.begin().await?;
    let mut second = database.writer.begin().await?;
    assert!(archive::try_lock(&mut first).await?);
    assert!(!archive::try_lock(&mut second).await?);
    first.rollback().await?;
    assert!(archive::try_lock(&mut second).await?);
    drop(second);
    database.drop().await
}

#[tokio::test]
async fn files_are_begun_then_closed_and_only_old_ones_never_closed_are_orphans() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let (closed, begun) = (file("windows", OCTOBER, 0), "windows/begun".to_owned());
    archive::intend(&mut tx, &[closed.key.clone(), begun.clone()], 100).await?;
    archive::close(&mut tx, &closed).await?;
    let asked = [closed.key.clone(), begun.clone(), "windows/foreign".to_owned()];
    assert_eq!(archive::unknown(&mut tx, &asked).await?, ["windows/foreign"]);
    assert_eq!(archive::orphans(&mut tx, 100).await?, Vec::<String>::new(), "not old enough");
    assert_eq!(archive::orphans(&mut tx, 101).await?, std::slice::from_ref(&begun));
    archive::forget(&mut tx, &[begun]).await?;
    assert_eq!(archive::orphans(&mut tx, 101).await?, Vec::<String>::new());
    assert_eq!(archive::next_part(&mut tx, OCTOBER).await?, 1);
    assert_eq!(archive::next_part(&mut tx, OCTOBER + HOUR_US).await?, 0);
    assert_eq!(archive::files(&mut tx, "windows", OCTOBER, OCTOBER + 1).await?, [closed]);
    assert_eq!(archive::files(&mut tx, "minutes", OCTOBER, OCTOBER + 1).await?, []);
    let taken = ClosedFile { key: "windows/other".to_owned(), ..file("windows", OCTOBER, 0) };
    assert!(matches!(archive::close(&mut tx, &taken).await, Err(StorageError::Refused { .. })));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn closed_files_are_never_changed() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.owner.begin().await?;
    archive::close(&mut tx, &file("windows", OCTOBER, 0)).await?;
    tx.commit().await?;
    let mut login = database.login().await?;
    for statement in ["UPDATE archive_file SET rows = 9", "DELETE FROM archive_file", "TRUNCATE archive_file"]
    {
        let (_, constraint, said) = refusal(sqlx::query(statement).execute(&mut login).await);
        assert_eq!(constraint, "append_only", "{statement}: {said}");
    }
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn partitions_are_made_ahead_once() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let (months, days) =
        ([OCTOBER, OCTOBER + 31 * DAY_US], [OCTOBER, OCTOBER + DAY_US, OCTOBER + 2 * DAY_US]);
    assert_eq!(partitions::create(&mut tx, &months, &months, &days).await?, 7);
    assert_eq!(partitions::create(&mut tx, &months, &months, &days).await?, 0);
    let ended = partitions::ended(&mut tx, Parent::Blocks, OCTOBER + 2 * DAY_US).await?;
    let seen: Vec<_> = ended.iter().map(|p| (p.name.as_str(), p.from_us, p.to_us)).collect();
    assert_eq!(
        seen,
        [
            ("telemetry_block_2026_10_01", OCTOBER, OCTOBER + DAY_US),
            ("telemetry_block_2026_10_02", OCTOBER + DAY_US, OCTOBER + 2 * DAY_US)
        ]
    );
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_day_of_blocks_goes_only_when_all_of_it_is_archived() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let packed = block(&mut tx, OCTOBER, 10, None).await?;
    block(&mut tx, OCTOBER + DAY_US, 10, None).await?;
    let [first, second] =
        partitions::ended(&mut tx, Parent::Blocks, i64::MAX).await?.try_into().expect("two days");
    assert_eq!(first.closed_at_us, None);
    assert!(!partitions::drop(&mut tx, &first.name).await?, "it is not archived");
    archive::mark_archived(&mut tx, OCTOBER, &[packed]).await?;
    archive::close(&mut tx, &file("windows", OCTOBER, 0)).await?;
    // A window that came late waits beside the archived ones.
    let late = block(&mut tx, OCTOBER + HOUR_US, 10, Some("n1")).await?;
    assert!(!partitions::drop(&mut tx, &first.name).await?, "a late block waits");
    sqlx::query("UPDATE telemetry_block SET next_node = NULL, archived = true WHERE number = $1")
        .bind(late)
        .execute(&mut *tx)
        .await?;
    let listed = partitions::ended(&mut tx, Parent::Blocks, i64::MAX).await?;
    assert_eq!(listed[0].closed_at_us, Some(OCTOBER + DAY_US));
    assert!(partitions::drop(&mut tx, &first.name).await?);
    assert_eq!(partitions::ended(&mut tx, Parent::Blocks, i64::MAX).await?, [second]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_month_of_packed_hours_goes_only_when_each_hour_has_its_minutes_in_a_file() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    partitions::create(&mut tx, &[], &[OCTOBER], &[]).await?;
    for hour_us in [OCTOBER, OCTOBER + HOUR_US] {
        sqlx::query(
            "INSERT INTO packed_hour (hour_us, node, gpu, placement_start, placement_size, owner, quality, minutes)
             VALUES ($1, 'n1', 'GPU-1', -1, 0, '', '{}', '\\x00')",
        )
        .bind(hour_us)
        .execute(&mut *tx)
        .await?;
    }
    archive::close(&mut tx, &file("minutes", OCTOBER, 0)).await?;
    assert!(!partitions::drop(&mut tx, "packed_hour_2026_10").await?, "one hour has no file");
    archive::close(&mut tx, &file("minutes", OCTOBER + HOUR_US, 0)).await?;
    let late = block(&mut tx, OCTOBER, 10, None).await?;
    assert!(!partitions::drop(&mut tx, "packed_hour_2026_10").await?, "a late block waits");
    archive::mark_archived(&mut tx, OCTOBER, &[late]).await?;
    assert!(partitions::drop(&mut tx, "packed_hour_2026_10").await?);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn nothing_but_telemetry_can_be_dropped() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    partitions::create(&mut tx, &[OCTOBER], &[], &[]).await?;
    tx.commit().await?;
    for name in [
        "entry_2026_10",
        "fact",
        "identity_00",
        "telemetry_block",
        "packed_hour",
        "no_such",
        "x; DROP TABLE fact",
    ] {
        let mut tx = database.writer.begin().await?;
        let error = partitions::drop(&mut tx, name).await.unwrap_err();
        assert!(error.to_string().contains("no partition that may be dropped"), "{name}: {error}");
    }
    database.drop().await
}

#[tokio::test]
async fn a_partition_in_use_is_left_for_another_time() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    partitions::create(&mut tx, &[], &[], &[OCTOBER]).await?;
    tx.commit().await?;
    let mut batch = database.writer.begin().await?;
    block(&mut batch, OCTOBER, 10, None).await?;
    let mut tx = database.writer.begin().await?;
    let error = partitions::drop(&mut tx, "telemetry_block_2026_10_01").await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    drop(tx);
    batch.rollback().await?;
    let mut tx = database.writer.begin().await?;
    assert!(partitions::drop(&mut tx, "telemetry_block_2026_10_01").await?);
    drop(tx);
    database.drop().await
}
