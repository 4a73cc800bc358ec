//! Partitions: made ahead, dropped by policy; and files that a kill left.

use super::error::ArchivingError;
use super::{Kept, Policy};
use crate::error::LedgerError;
use chrono::{DateTime, Months};
use gpuledger_archive::{Archive, FileKey};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::partitions::{self, Parent};
use gpuledger_storage::{Db, StorageError, archive};

const DAY_US: i64 = 24 * HOUR_US;
/// No month is shorter, so that steps of it miss none.
const MONTH_AT_LEAST_US: i64 = 28 * DAY_US;
/// A file begun longer ago than this and not closed was left by a kill: writing one takes seconds.
const ORPHAN_US: i64 = HOUR_US;

/// Makes the partitions of this month and the next two, of today and the next two days; returns how many were missing.
///
/// # Errors
/// The database.
pub async fn make_ahead(db: &Db, now: Instant) -> Result<i64, LedgerError> {
    let steps = |step_us: i64, count: i64| (0..count).map(move |n| now.plus(n * step_us).as_micros());
    let months: Vec<i64> = steps(MONTH_AT_LEAST_US, 4).collect();
    let days: Vec<i64> = steps(DAY_US, 3).collect();
    let mut tx = db.begin().await?;
    let made = partitions::create(&mut tx, &months, &months, &days).await?;
    tx.commit().await?;
    Ok(made)
}

/// Whether a kill left files.
pub(super) async fn has_orphans(db: &Db, now: Instant) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    let orphans = archive::orphans(&mut tx, now.plus(-ORPHAN_US).as_micros()).await?;
    tx.rollback().await?;
    Ok(!orphans.is_empty())
}

/// Removes files that were begun and never closed. Only these: what the database does not know may be the only copy of something.
pub(super) async fn remove_orphans(db: &Db, files: &Archive, now: Instant) -> Result<u64, LedgerError> {
    let mut tx = db.begin().await?;
    let mut removed = 0;
    // Nobody writes a file while the lock is held.
    if archive::try_lock(&mut tx).await? {
        for key in archive::orphans(&mut tx, now.plus(-ORPHAN_US).as_micros()).await? {
            if let Ok(file) = key.parse::<FileKey>() {
                files.remove(&file).await.map_err(ArchivingError::from)?;
                removed += 1;
            }
            archive::forget(&mut tx, &[key]).await?;
        }
    }
    tx.commit().await?;
    Ok(removed)
}

/// Drops partitions that are older than policy asks and in the archive as a whole.
pub(super) async fn drop_old(
    db: &Db,
    policy: Policy,
    now: Instant,
    kept: &mut Kept,
) -> Result<(), LedgerError> {
    let windows_before = now.plus(-policy.keep_windows_us);
    let limits =
        [(Parent::Blocks, windows_before), (Parent::Hours, months_before(now, policy.keep_hours_months))];
    for (parent, before) in limits {
        let mut tx = db.begin().await?;
        let mut ended = partitions::ended(&mut tx, parent, before.as_micros()).await?;
        tx.rollback().await?;
        // Windows stay for their time after they were archived, however late that was.
        ended.retain(|p| {
            parent == Parent::Hours || p.closed_at_us.is_none_or(|at| at <= windows_before.as_micros())
        });
        for partition in ended {
            let went = drop_one(db, &partition.name).await?;
            if went { &mut kept.dropped } else { &mut kept.stay }.push(partition.name);
        }
    }
    Ok(())
}

/// Each in a transaction of its own: the lock on the whole table is held for a moment only. A table in use is left for the next round.
async fn drop_one(db: &Db, name: &str) -> Result<bool, LedgerError> {
    let mut tx = db.begin().await?;
    match partitions::drop(&mut tx, name).await {
        Ok(went) => {
            tx.commit().await?;
            Ok(went)
        }
        Err(StorageError::Contention { message, .. }) => {
            tracing::info!(partition = name, message, "a partition is in use and stays for now");
            Ok(false)
        }
        Err(other) => Err(other.into()),
    }
}

fn months_before(now: Instant, months: u32) -> Instant {
    let at = DateTime::from_timestamp_micros(now.as_micros());
    let before = at.and_then(|at| at.checked_sub_months(Months::new(months)));
    before.map_or(Instant::MIN, |before| Instant::from_micros(before.timestamp_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::time::parse_time;

    #[test]
    fn months_are_those_of_the_calendar() {
        let at = |text| parse_time(text).unwrap();
        assert_eq!(months_before(at("2026-12-31T10:00:00Z"), 26), at("2024-10-31T10:00:00Z"));
        assert_eq!(months_before(at("2026-03-31T00:00:00Z"), 1), at("2026-02-28T00:00:00Z"));
        assert_eq!(months_before(at("2026-03-31T00:00:00Z"), u32::MAX), Instant::MIN);
    }
}
