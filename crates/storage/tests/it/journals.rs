//! Posting through the package: revisions, negations, balances; and the fixture other tests start from.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::StorageError;
use gpuledger_storage::balance::{balance, capacity};
use gpuledger_storage::journals::{EntryRow, JournalRevision, last_entries, post, standing_journals};
use gpuledger_storage::locks::hold;
use std::collections::BTreeSet;

/// 2026-10-01T00:00:00Z.
pub(crate) const START: i64 = 1_790_812_800_000_000;
pub(crate) const HOUR: i64 = 3_600_000_000;
pub(crate) const GPU: &str = "GPU-1";

/// An entry of the fixture's GPU; `from` and `to` in halves of the hour.
pub(crate) fn entry(
    from: i64,
    to: i64,
    account: &str,
    holder: Option<&str>,
    mask: i32,
    compute: i16,
) -> EntryRow {
    EntryRow {
        start_us: START + from * HOUR / 2,
        end_us: START + to * HOUR / 2,
        account: account.to_owned(),
        tenant: holder.map(|_| "acme".to_owned()),
        project: None,
        allocation: holder.map(str::to_owned),
        unit: holder.map(|_| 0),
        memory_mask: mask,
        compute_slices: compute,
        part_us: (to - from) * HOUR / 2,
    }
}

/// A journal of a GPU of 7 and 8 slices: two allocations for half an hour, one of them shared by two, then idle.
pub(crate) fn revision(number: i32) -> JournalRevision {
    let mut sharer = entry(0, 1, "tenant", Some("a-1"), 0x0f, 4);
    let mut other = entry(0, 1, "tenant", Some("a-2"), 0x0f, 4);
    sharer.part_us = HOUR / 2 / 3;
    other.part_us = HOUR / 2 - sharer.part_us;
    JournalRevision {
        gpu: GPU.to_owned(),
        hour_us: START,
        revision: number,
        compute_slices: 7,
        memory_slices: 8,
        capacity: vec![(START, START + HOUR)],
        digest: [9; 32],
        horizon_us: START + HOUR,
        rule_set: "1".to_owned(),
        entries: vec![
            sharer,
            other,
            entry(0, 1, "tenant", Some("a-3"), 0xf0, 3),
            entry(1, 2, "idle", None, 0x7f, 6),
            // What no memory slice goes with: one compute slice is idle, the memory slice is stranded.
            entry(1, 2, "idle", None, 0, 1),
            entry(1, 2, "stranded", None, 0x80, 0),
        ],
    }
}

/// The next revision: all of it idle, and only three quarters of the hour.
pub(crate) fn shorter(number: i32) -> JournalRevision {
    let mut idle = entry(0, 2, "idle", None, 0xff, 7);
    idle.end_us = START + HOUR / 4 * 3;
    idle.part_us = HOUR / 4 * 3;
    let capacity = vec![(START, START + HOUR / 4 * 3)];
    JournalRevision { capacity, entries: vec![idle], digest: [8; 32], ..revision(number) }
}

#[tokio::test]
async fn a_revision_replaces_the_one_before() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    post(&mut tx, &[revision(1)]).await?;
    tx.commit().await?;
    let mut tx = database.writer.begin().await?;
    let whole: i128 = i128::from(HOUR);
    let sums = balance(&mut tx, START, START + HOUR, None).await?;
    let compute: i128 = sums.iter().map(|row| row.compute_slice_us).sum();
    let memory: i128 = sums.iter().map(|row| row.memory_slice_us).sum();
    assert_eq!((compute, memory), (7 * whole, 8 * whole));
    let accounts: Vec<&str> = sums.iter().map(|row| row.account.as_str()).collect();
    assert_eq!(accounts, ["idle", "stranded", "tenant"]);

    post(&mut tx, &[shorter(2)]).await?;
    tx.commit().await?;
    let mut tx = database.writer.begin().await?;
    let sums = balance(&mut tx, START, START + HOUR, Some(GPU)).await?;
    assert_eq!(sums.len(), 1);
    assert_eq!((sums[0].account.as_str(), sums[0].compute_slice_us), ("idle", 7 * whole * 3 / 4));
    let has = capacity(&mut tx, START, START + HOUR, None).await?;
    assert_eq!((has[0].compute_slice_us, has[0].memory_slice_us), (7 * whole * 3 / 4, 8 * whole * 3 / 4));
    let last = standing_journals(&mut tx, &[(GPU.to_owned(), i64::MIN)], i64::MAX).await?;
    assert_eq!((last.len(), last[0].revision, &last[0].digest), (1, 2, &vec![8; 32]));
    assert_eq!(
        last_entries(&mut tx, GPU, i64::MIN, i64::MAX).await?,
        [(START, shorter(2).entries[0].clone())]
    );
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn several_revisions_and_months_go_in_one_statement() -> Result<()> {
    let database = Database::new().await?;
    let mut later = revision(1);
    let shift = 24 * 40 * HOUR;
    later.hour_us += shift;
    later.capacity = vec![(START + shift, START + shift + HOUR)];
    for entry in &mut later.entries {
        entry.start_us += shift;
        entry.end_us += shift;
    }
    let mut tx = database.writer.begin().await?;
    post(&mut tx, &[revision(1), shorter(2), later.clone(), revision(3)]).await?;
    tx.commit().await?;
    let mut tx = database.writer.begin().await?;
    let entries = last_entries(&mut tx, GPU, i64::MIN, i64::MAX).await?;
    let wanted: Vec<(i64, EntryRow)> = [revision(3), later]
        .into_iter()
        .flat_map(|r| r.entries.into_iter().map(move |entry| (r.hour_us, entry)))
        .collect();
    assert_eq!(entries, wanted);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn an_hour_that_lost_its_capacity_is_negated_and_can_come_back() -> Result<()> {
    let database = Database::new().await?;
    let gone = JournalRevision { capacity: Vec::new(), entries: Vec::new(), ..revision(2) };
    for next in [revision(1), gone, revision(3)] {
        let mut tx = database.writer.begin().await?;
        post(&mut tx, std::slice::from_ref(&next)).await?;
        tx.commit().await?;
        let mut tx = database.writer.begin().await?;
        let standing = balance(&mut tx, START, START + HOUR, None).await?;
        assert_eq!(standing.is_empty(), next.entries.is_empty());
    }
    database.drop().await
}

#[tokio::test]
async fn a_broken_journal_is_named_and_nothing_stands() -> Result<()> {
    let database = Database::new().await?;
    let mut broken = revision(1);
    broken.entries.pop();
    let mut tx = database.writer.begin().await?;
    let error = post(&mut tx, &[broken]).await.unwrap_err();
    assert_eq!(error.constraint(), Some("journal_balance"));
    let text = error.to_string();
    assert!(text.contains("GPU-1 hour 2026-10-01T00:00:00Z revision 1"), "{text}");
    assert!(text.contains("its capacity is 7, 8 and 255"), "{text}");
    drop(tx);
    let mut tx = database.writer.begin().await?;
    assert_eq!(standing_journals(&mut tx, &[(GPU.to_owned(), i64::MIN)], i64::MAX).await?, []);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn balances_want_full_hours() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let error = balance(&mut tx, START, START + 1, None).await.unwrap_err();
    assert!(matches!(error, StorageError::Invalid { .. }), "{error}");
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_locked_subject_waits_for_the_other_batch() -> Result<()> {
    let database = Database::new().await?;
    let (g1, g2) = (BTreeSet::from([1]), BTreeSet::from([2, 1]));
    let mut first = database.writer.begin().await?;
    hold(&mut first, &g1).await?;
    let writer = database.writer.clone();
    let second = tokio::spawn(async move {
        let mut tx = writer.begin().await?;
        hold(&mut tx, &g2).await?;
        tx.commit().await
    });
    database.until_waiting(1).await?;
    first.commit().await?;
    second.await??;
    database.drop().await
}
