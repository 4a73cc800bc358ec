//! Sums over posted entries, and the capacity they must add up to.

use crate::error::{Doing, StorageError};
use crate::numeric;
use sqlx::PgConnection;

/// Microseconds in an hour, which a journal covers.
const HOUR_US: i64 = 3_600_000_000;

/// What stands in one account of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceRow {
    /// GPU.
    pub gpu: String,
    /// Account.
    pub account: String,
    /// Of account `tenant` only.
    pub tenant: Option<String>,
    /// Compute-slice-microseconds.
    pub compute_slice_us: i128,
    /// Memory-slice-microseconds.
    pub memory_slice_us: i128,
}

/// Capacity of one GPU by its journals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityRow {
    /// GPU.
    pub gpu: String,
    /// Compute-slice-microseconds.
    pub compute_slice_us: i128,
    /// Memory-slice-microseconds.
    pub memory_slice_us: i128,
}

/// Sums of all entries, negations included, of the hours that begin in `[from_us, to_us)`, by GPU, account and tenant.
/// Accounts that came to nothing are left out. Both edges must be full hours: parts of shared units are whole within them.
///
/// # Errors
/// [`StorageError::Invalid`] for an edge within an hour.
pub async fn balance(
    connection: &mut PgConnection,
    from_us: i64,
    to_us: i64,
    gpu: Option<&str>,
) -> Result<Vec<BalanceRow>, StorageError> {
    full_hours(from_us, to_us)?;
    let rows: Vec<(String, String, Option<String>, String, String)> = sqlx::query_as(
        r#"SELECT gpu, account, tenant, sum(sign * compute_slice_us)::TEXT, sum(sign * memory_slice_us)::TEXT
           FROM entry WHERE hour_us >= $1 AND hour_us < $2 AND ($3::TEXT IS NULL OR gpu = $3)
           GROUP BY gpu, account, tenant
           HAVING sum(sign * compute_slice_us) <> 0 OR sum(sign * memory_slice_us) <> 0
           ORDER BY gpu COLLATE "C", account COLLATE "C", tenant COLLATE "C""#,
    )
    .bind(from_us)
    .bind(to_us)
    .bind(gpu)
    .fetch_all(connection)
    .await
    .doing("adding up entries")?;
    rows.into_iter()
        .map(|(gpu, account, tenant, compute, memory)| {
            let compute_slice_us = numeric::parse(&compute, "compute_slice_us")?;
            let memory_slice_us = numeric::parse(&memory, "memory_slice_us")?;
            Ok(BalanceRow { gpu, account, tenant, compute_slice_us, memory_slice_us })
        })
        .collect()
}

/// Capacity by the last revisions of the hours that begin in `[from_us, to_us)`, by GPU: what [`balance`] must add up to.
///
/// # Errors
/// [`StorageError::Invalid`] for an edge within an hour.
pub async fn capacity(
    connection: &mut PgConnection,
    from_us: i64,
    to_us: i64,
    gpu: Option<&str>,
) -> Result<Vec<CapacityRow>, StorageError> {
    full_hours(from_us, to_us)?;
    let rows: Vec<(String, String, String)> = sqlx::query_as(
        r#"SELECT gpu, sum(capacity_us * compute_slices)::TEXT, sum(capacity_us * memory_slices)::TEXT
           FROM (SELECT DISTINCT ON (gpu, hour_us) gpu, capacity_us, compute_slices, memory_slices FROM journal
                 WHERE hour_us >= $1 AND hour_us < $2 AND ($3::TEXT IS NULL OR gpu = $3)
                 ORDER BY gpu, hour_us, revision DESC) AS last
           GROUP BY gpu ORDER BY gpu COLLATE "C""#,
    )
    .bind(from_us)
    .bind(to_us)
    .bind(gpu)
    .fetch_all(connection)
    .await
    .doing("adding up capacity")?;
    rows.into_iter()
        .map(|(gpu, compute, memory)| {
            let compute_slice_us = numeric::parse(&compute, "compute_slice_us")?;
            let memory_slice_us = numeric::parse(&memory, "memory_slice_us")?;
            Ok(CapacityRow { gpu, compute_slice_us, memory_slice_us })
        })
        .collect()
}

fn full_hours(from_us: i64, to_us: i64) -> Result<(), StorageError> {
    for edge in [from_us, to_us] {
        if edge.rem_euclid(HOUR_US) != 0 {
            return Err(StorageError::invalid(format!("edge {edge}"), "posted balances want full UTC hours"));
        }
    }
    Ok(())
}
