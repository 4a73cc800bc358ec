//! Partitions by time: made ahead, so that no batch waits for a lock on the catalogue, and dropped whole where policy and archive allow.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Tables whose partitions policy may drop. Those of entries are made ahead and never dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Accepted windows in blocks, by day.
    Blocks,
    /// Packed hours, by month.
    Hours,
}

impl Parent {
    fn table(self) -> &'static str {
        match self {
            Self::Blocks => "telemetry_block",
            Self::Hours => "packed_hour",
        }
    }
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Partition {
    /// Its table.
    pub name: String,
    /// First instant.
    pub from_us: i64,
    /// First instant after it.
    pub to_us: i64,
    /// When the last file of its hours was closed; none: none was.
    pub closed_at_us: Option<i64>,
}

/// Makes the partitions that these instants fall into, where they are not there: of entries, of packed hours, of blocks. Returns how many
/// that were.
///
/// # Errors
/// Driver errors.
pub async fn create(
    tx: &mut PgConnection,
    entries_us: &[i64],
    hours_us: &[i64],
    blocks_us: &[i64],
) -> Result<i64, StorageError> {
    let before = count(tx).await?;
    sqlx::query("SELECT ensure_entry_partition(us) FROM UNNEST($1::INT8[]) AS us")
        .bind(entries_us)
        .execute(&mut *tx)
        .await
        .doing("making partitions of entries")?;
    for (parent, instants) in [(Parent::Hours, hours_us), (Parent::Blocks, blocks_us)] {
        sqlx::query("SELECT ensure_telemetry_partition($1, us) FROM UNNEST($2::INT8[]) AS us")
            .bind(parent.table())
            .bind(instants)
            .execute(&mut *tx)
            .await
            .doing("making partitions of telemetry")?;
    }
    Ok(count(tx).await? - before)
}

async fn count(connection: &mut PgConnection) -> Result<i64, StorageError> {
    sqlx::query_scalar(
        "SELECT count(*) FROM pg_inherits
         WHERE inhparent IN ('public.entry'::REGCLASS, 'public.packed_hour'::REGCLASS, 'public.telemetry_block'::REGCLASS)",
    )
    .fetch_one(connection)
    .await
    .doing("counting partitions")
}

/// The partitions of a table that end at or before `before_us`, oldest first.
///
/// # Errors
/// Driver errors.
pub async fn ended(
    connection: &mut PgConnection,
    parent: Parent,
    before_us: i64,
) -> Result<Vec<Partition>, StorageError> {
    sqlx::query_as(
        r"SELECT name, from_us, to_us,
                 (SELECT max(closed_at_us) FROM archive_file WHERE hour_us >= from_us AND hour_us < to_us) AS closed_at_us
          FROM (SELECT c.relname::TEXT AS name, (bound[1])::INT8 AS from_us, (bound[2])::INT8 AS to_us
                FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid,
                     LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                          $re$FROM \('?(-?\d+)'?\) TO \('?(-?\d+)'?\)$re$) AS bound
                WHERE i.inhparent = to_regclass('public.' || $1)) AS p
          WHERE to_us <= $2 ORDER BY from_us",
    )
    .bind(parent.table())
    .bind(before_us)
    .fetch_all(connection)
    .await
    .doing("listing partitions")
}

/// Detaches and drops a partition. False: some of its telemetry is not archived, and it stays.
///
/// # Errors
/// [`StorageError::Contention`] where its table is in use for longer than two seconds: another time.
pub async fn drop(tx: &mut PgConnection, name: &str) -> Result<bool, StorageError> {
    sqlx::query_scalar("SELECT drop_telemetry_partition($1)")
        .bind(name)
        .fetch_one(tx)
        .await
        .doing("dropping a partition")
}
