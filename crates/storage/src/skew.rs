//! Facts that are dated after they were received: their source's clock is ahead.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A fact is ahead where it is dated more than this after it was received, in microseconds. The index `fact_ahead` has the same number.
pub const AHEAD_US: i64 = 60_000_000;

/// A source with facts that are ahead.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Ahead {
    /// Who said them.
    pub source: String,
    /// When the earliest of them is dated.
    pub since_us: i64,
    /// When its first fact after the last of them is dated; none: it has said nothing since.
    pub until_us: Option<i64>,
    /// By how much the worst of them is ahead.
    pub most_us: i64,
}

/// Sources with facts up to `as_of_us` that are ahead, by name.
///
/// # Errors
/// Driver errors.
pub async fn ahead(connection: &mut PgConnection, as_of_us: i64) -> Result<Vec<Ahead>, StorageError> {
    sqlx::query_as(
        r#"SELECT a.source, a.since_us, a.most_us,
                  (SELECT f.at_us FROM fact AS f WHERE f.source = a.source AND f.seq > a.last_seq AND f.at_us <= $1
                   ORDER BY f.seq LIMIT 1) AS until_us
           FROM (SELECT source, min(at_us) AS since_us, max(seq) AS last_seq, max(at_us - received_at_us) AS most_us
                 FROM fact WHERE at_us > received_at_us + 60000000 AND at_us <= $1 GROUP BY source) AS a
           ORDER BY a.source COLLATE "C""#,
    )
    .bind(as_of_us)
    .fetch_all(connection)
    .await
    .doing("looking for clocks that are ahead")
}
