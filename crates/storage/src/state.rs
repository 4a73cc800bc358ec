//! The ledger's one row of state: horizon, clock, rules.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// How far the ledger stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct LedgerState {
    /// As-of instant of the posted journals and read models, microseconds UTC; none before the first posting.
    pub horizon_us: Option<i64>,
    /// Greatest clock seen, microseconds UTC.
    pub clock_us: Option<i64>,
    /// Version of the rules the read models were derived by.
    pub rule_set: Option<String>,
    /// Form of the read models.
    pub derived: i32,
}

/// Reads the state.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection) -> Result<LedgerState, StorageError> {
    sqlx::query_as("SELECT horizon_us, clock_us, rule_set, derived FROM ledger_state")
        .fetch_one(connection)
        .await
        .doing("reading the ledger's state")
}

/// Moves the clock to `now_us` unless it has been later already, and returns where it stands: it never goes back.
/// Use a short transaction of its own: the row stays locked until commit.
///
/// # Errors
/// Driver errors.
pub async fn advance_clock(connection: &mut PgConnection, now_us: i64) -> Result<i64, StorageError> {
    sqlx::query("UPDATE ledger_state SET clock_us = $1 WHERE clock_us IS NULL OR clock_us < $1")
        .bind(now_us)
        .execute(&mut *connection)
        .await
        .doing("moving the clock")?;
    let stands: Option<i64> = sqlx::query_scalar("SELECT clock_us FROM ledger_state")
        .fetch_one(connection)
        .await
        .doing("reading the clock")?;
    Ok(stands.unwrap_or(now_us))
}

/// Moves the horizon to `horizon_us` unless it has been later already, and returns where it stands.
/// The row stays locked until commit, so that two passes over the hours run one after the other.
///
/// # Errors
/// Driver errors.
pub async fn advance_horizon(
    connection: &mut PgConnection,
    horizon_us: i64,
    rule_set: &str,
) -> Result<i64, StorageError> {
    sqlx::query_scalar(
        "UPDATE ledger_state SET horizon_us = GREATEST(horizon_us, $1), rule_set = $2 RETURNING horizon_us",
    )
    .bind(horizon_us)
    .bind(rule_set)
    .fetch_one(connection)
    .await
    .doing("moving the horizon")
}

/// Notes that the read models have this form now.
///
/// # Errors
/// Driver errors.
pub async fn set_derived(connection: &mut PgConnection, form: i32) -> Result<(), StorageError> {
    sqlx::query("UPDATE ledger_state SET derived = $1")
        .bind(form)
        .execute(connection)
        .await
        .doing("noting the form of the read models")?;
    Ok(())
}
