//! What becomes of telemetry once its hour is over: it is closed in files of the archive, and the database lets go of it by policy. The
//! partitions of the next days and months are made here too, before anybody needs them.

mod error;
mod fold;
mod keep;
mod part;
mod restore;

pub use error::ArchivingError;
pub use keep::make_ahead;
pub use restore::{restore, staged};

use crate::error::LedgerError;
use gpuledger_archive::{Archive, ArchiveSettings};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::{Db, archive};

/// When telemetry is archived, and how long it stays in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long after its end an hour is archived. What comes later makes a further file, so that this only decides how many there are.
    pub archive_after_us: i64,
    /// How long archived windows stay in the database.
    pub keep_windows_us: i64,
    /// How long packed hours stay in the database, in months.
    pub keep_hours_months: u32,
}

/// What a round of maintenance did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files that were closed.
    pub files: u64,
    /// Windows in them.
    pub windows: u64,
    /// Files that a kill had left and that were removed.
    pub orphans: u64,
    /// Partitions that were dropped.
    pub dropped: Vec<String>,
    /// Partitions that are older than policy asks and stay: something of them is not archived, or they are in use.
    pub stay: Vec<String>,
}

/// One round: archives every hour that is due, removes what a kill left, drops what policy lets go. Another process that is at it already is
/// left to it. The archive is opened where there is something to do in it: who sends no telemetry needs none.
///
/// # Errors
/// The database, or the archive: what was done until then stands, and the next round goes on.
pub async fn maintain(
    db: &Db,
    place: &ArchiveSettings,
    policy: Policy,
    now: Instant,
) -> Result<Kept, LedgerError> {
    let mut kept = Kept::default();
    let due = due_before(policy, now);
    if unarchived_hours(db, policy, now).await? > 0 || keep::has_orphans(db, now).await? {
        let files = Archive::open(place).map_err(ArchivingError::from)?;
        while let Some(closed) = part::close_next(db, &files, due, now).await? {
            kept.files += closed.files;
            kept.windows += closed.windows;
        }
        kept.orphans = keep::remove_orphans(db, &files, now).await?;
    }
    keep::drop_old(db, policy, now, &mut kept).await?;
    Ok(kept)
}

/// Hours that should be in the archive and are not.
///
/// # Errors
/// The database.
pub async fn unarchived_hours(db: &Db, policy: Policy, now: Instant) -> Result<i64, LedgerError> {
    let mut tx = db.begin().await?;
    let count = archive::waiting_hours(&mut tx, due_before(policy, now).as_micros()).await?;
    tx.rollback().await?;
    Ok(count)
}

/// Hours that begin before this are due.
fn due_before(policy: Policy, now: Instant) -> Instant {
    now.plus(-policy.archive_after_us).plus(1 - HOUR_US)
}
