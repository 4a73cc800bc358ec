//! Times in which a node says itself that it could not measure.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Microseconds in a day: a row a reason.
const DAY_US: i64 = 86_400_000_000;

/// A time in which a node could not measure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct Unread {
    /// Node.
    pub node: String,
    /// Why.
    pub reason: String,
    /// Begin.
    pub start_us: i64,
    /// End, exclusive, after the begin.
    pub end_us: i64,
}

/// Adds such times; those that touch or overlap are one. The order in which they come, and repetitions, change nothing.
///
/// # Errors
/// [`StorageError::Contention`]: try again.
pub async fn merge(tx: &mut PgConnection, times: &[Unread]) -> Result<(), StorageError> {
    if times.is_empty() {
        return Ok(());
    }
    sqlx::query(
        r#"INSERT INTO telemetry_unread AS stored (node, day_us, reason, times)
           SELECT node COLLATE "C", day_us, reason COLLATE "C", range_agg(int8range(start_us, end_us))
           FROM UNNEST($1::TEXT[], $2::INT8[], $3::TEXT[], $4::INT8[], $5::INT8[]) AS given (node, day_us, reason, start_us, end_us)
           GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
           ON CONFLICT (node, day_us, reason) DO UPDATE SET times = stored.times + EXCLUDED.times"#,
    )
    .bind(times.iter().map(|one| one.node.as_str()).collect::<Vec<_>>())
    .bind(times.iter().map(|one| one.start_us.div_euclid(DAY_US) * DAY_US).collect::<Vec<_>>())
    .bind(times.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>())
    .bind(times.iter().map(|one| one.start_us).collect::<Vec<_>>())
    .bind(times.iter().map(|one| one.end_us).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("recording times without readings")?;
    Ok(())
}

/// Times that end at `as_of_us` or before, by node, reason and begin.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection, as_of_us: i64) -> Result<Vec<Unread>, StorageError> {
    sqlx::query_as(
        "SELECT node, reason, lower(one) AS start_us, upper(one) AS end_us
         FROM (SELECT node, reason, range_agg(times) AS times FROM telemetry_unread GROUP BY node, reason) AS joined
         CROSS JOIN UNNEST(times) AS one WHERE upper(one) <= $1 ORDER BY node, reason, start_us",
    )
    .bind(as_of_us)
    .fetch_all(connection)
    .await
    .doing("reading times without readings")
}
