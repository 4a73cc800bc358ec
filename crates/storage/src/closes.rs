//! Closing a period: the lock against open batches, and what a close froze.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Advisory lock that every batch holds shared and a close exclusively: a late fact is either before the close or an
/// adjustment, never between. The number is "gpuledg" in ASCII.
const CLOSE_LOCK: i64 = 0x0067_7075_6c65_6467;

/// What a close froze (V-3).
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PeriodClose {
    /// Order of the closes; ignored by [`insert`].
    pub seq: i64,
    /// `YYYY-MM` in the tenant's period zone.
    pub period: String,
    /// Whose period.
    pub tenant: String,
    /// As-of instant of the close.
    pub as_of_us: i64,
    /// Facts accepted until then.
    pub facts_count: i64,
    /// SHA-256 over their sorted identities and digests, 32 bytes.
    pub facts_digest: Vec<u8>,
    /// Greatest `seq` of the facts accepted until then.
    pub facts_seq: i64,
    /// Greatest `seq` of the objects applied until then: later ones do not re-rate the period (V-12).
    pub objects_seq: i64,
    /// Version of the rules.
    pub rule_set: String,
    /// When it was closed.
    pub closed_at_us: i64,
}

/// Keeps closes away until the transaction ends. Every batch that accepts facts takes it first.
///
/// # Errors
/// Driver errors.
pub async fn hold_open(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock_shared($1)")
        .bind(CLOSE_LOCK)
        .execute(tx)
        .await
        .doing("waiting for a close")?;
    Ok(())
}

/// Waits for all open batches and keeps new ones away until the transaction ends.
///
/// # Errors
/// Driver errors.
pub async fn hold_closing(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(CLOSE_LOCK)
        .execute(tx)
        .await
        .doing("waiting for open batches")?;
    Ok(())
}

/// Records a close; returns its `seq`.
///
/// # Errors
/// [`StorageError::Refused`] for a period that is not `YYYY-MM` or a digest that is not 32 bytes.
pub async fn insert(tx: &mut PgConnection, close: &PeriodClose) -> Result<i64, StorageError> {
    sqlx::query_scalar(
        "INSERT INTO period_close (period, tenant, as_of_us, facts_count, facts_digest, facts_seq, rule_set, closed_at_us, objects_seq)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING seq",
    )
    .bind(&close.period)
    .bind(&close.tenant)
    .bind(close.as_of_us)
    .bind(close.facts_count)
    .bind(&close.facts_digest)
    .bind(close.facts_seq)
    .bind(&close.rule_set)
    .bind(close.closed_at_us)
    .bind(close.objects_seq)
    .fetch_one(tx)
    .await
    .doing("recording a close")
}

/// A period that is closed for a tenant.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct StandingClose {
    /// Whose.
    pub tenant: String,
    /// `YYYY-MM` in the tenant's period zone.
    pub period: String,
    /// When it was closed last.
    pub closed_at_us: i64,
}

/// Periods that are closed, by tenant and period: closed more often than a discarded draft opened them again (V-1).
///
/// # Errors
/// Driver errors.
pub async fn standing(connection: &mut PgConnection) -> Result<Vec<StandingClose>, StorageError> {
    sqlx::query_as(
        r#"SELECT tenant, period, max(closed_at_us) AS closed_at_us FROM period_close AS c
           GROUP BY tenant, period
           HAVING count(*) > (SELECT count(*) FROM document AS d
                              WHERE d.tenant = c.tenant AND d.period = c.period AND d.status = 'discarded')
           ORDER BY tenant COLLATE "C", period COLLATE "C""#,
    )
    .fetch_all(connection)
    .await
    .doing("reading which periods are closed")
}

/// All closes in their order.
///
/// # Errors
/// Driver errors.
pub async fn all(connection: &mut PgConnection) -> Result<Vec<PeriodClose>, StorageError> {
    sqlx::query_as(
        "SELECT seq, period, tenant, as_of_us, facts_count, facts_digest, facts_seq, rule_set, closed_at_us,
                COALESCE(objects_seq, (SELECT max(o.seq) FROM object AS o WHERE o.applied_at_us <= closed_at_us), 0) AS objects_seq
         FROM period_close ORDER BY seq",
    )
    .fetch_all(connection)
    .await
    .doing("reading the closes")
}
