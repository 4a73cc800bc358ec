//! Pages of the read models, as the API hands them out: keyset order, no offsets. Every query names the tenant too, although row
//! security does: what one of them forgets, the other holds.

use crate::documents::DocumentRow;
use crate::error::{Doing, StorageError};
use crate::spans::AllocationRow;
use sqlx::PgConnection;

/// Which allocations: all conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationQuery<'a> {
    /// Of this tenant.
    pub tenant: Option<&'a str>,
    /// Of this project.
    pub project: Option<&'a str>,
    /// Of this Slurm job.
    pub slurm_job: Option<&'a str>,
    /// Of this pod.
    pub pod_uid: Option<&'a str>,
    /// That end after this, or run.
    pub from_us: i64,
    /// That begin before this.
    pub to_us: i64,
    /// Begin and id of the last one of the page before.
    pub after: Option<(i64, &'a str)>,
    /// At most so many.
    pub limit: i64,
}

/// Which documents: all conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentQuery<'a> {
    /// Of this tenant.
    pub tenant: Option<&'a str>,
    /// Of this period.
    pub period: Option<&'a str>,
    /// In this status.
    pub status: Option<&'a str>,
    /// Period and id of the last one of the page before.
    pub after: Option<(&'a str, &'a str)>,
    /// At most so many.
    pub limit: i64,
}

/// A document without its body.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DocumentHead {
    /// Its id.
    pub id: String,
    /// Set at issue.
    pub number: Option<String>,
    /// `invoice`, `credit_note`.
    pub kind: String,
    /// `draft`, `issued`, `paid`, `discarded`.
    pub status: String,
    /// Who issues.
    pub seller: String,
    /// Who pays.
    pub customer: String,
    /// Whose usage.
    pub tenant: String,
    /// `YYYY-MM`.
    pub period: String,
    /// When it was drafted.
    pub created_at_us: i64,
    /// When it was issued.
    pub issued_at_us: Option<i64>,
    /// When it was paid.
    pub paid_at_us: Option<i64>,
}

/// Allocations by begin, then id.
///
/// # Errors
/// Driver errors.
pub async fn allocations(
    connection: &mut PgConnection,
    query: &AllocationQuery<'_>,
) -> Result<Vec<AllocationRow>, StorageError> {
    let (after_us, after_id) = query.after.map_or((None, None), |(at_us, id)| (Some(at_us), Some(id)));
    sqlx::query_as(
        r#"SELECT allocation, tenant, project, class, start_us, end_us, end_kind, runtime::TEXT AS runtime,
                  labels::TEXT AS labels, source
           FROM allocation
           WHERE ($1::TEXT IS NULL OR tenant = $1) AND ($2::TEXT IS NULL OR project = $2)
             AND ($3::TEXT IS NULL OR runtime->>'slurm_job' = $3) AND ($4::TEXT IS NULL OR runtime->>'pod_uid' = $4)
             AND COALESCE(end_us > $5, true) AND start_us < $6
             AND ($7::INT8 IS NULL OR (start_us, allocation COLLATE "C") > ($7, $8))
           ORDER BY start_us, allocation COLLATE "C" LIMIT $9"#,
    )
    .bind(query.tenant)
    .bind(query.project)
    .bind(query.slurm_job)
    .bind(query.pod_uid)
    .bind(query.from_us)
    .bind(query.to_us)
    .bind(after_us)
    .bind(after_id)
    .bind(query.limit)
    .fetch_all(connection)
    .await
    .doing("reading allocations")
}

/// The allocation with this id, of this tenant where one is given.
///
/// # Errors
/// Driver errors.
pub async fn allocation(
    connection: &mut PgConnection,
    id: &str,
    tenant: Option<&str>,
) -> Result<Option<AllocationRow>, StorageError> {
    sqlx::query_as(
        "SELECT allocation, tenant, project, class, start_us, end_us, end_kind, runtime::TEXT AS runtime,
                labels::TEXT AS labels, source
         FROM allocation WHERE allocation = $1 AND ($2::TEXT IS NULL OR tenant = $2)",
    )
    .bind(id)
    .bind(tenant)
    .fetch_optional(connection)
    .await
    .doing("reading an allocation")
}

/// Documents by period, then id.
///
/// # Errors
/// Driver errors.
pub async fn documents(
    connection: &mut PgConnection,
    query: &DocumentQuery<'_>,
) -> Result<Vec<DocumentHead>, StorageError> {
    sqlx::query_as(
        r#"SELECT id, number, kind, status, seller, customer, tenant, period, created_at_us, issued_at_us, paid_at_us
           FROM document
           WHERE ($1::TEXT IS NULL OR tenant = $1) AND ($2::TEXT IS NULL OR period = $2)
             AND ($3::TEXT IS NULL OR status = $3)
             AND ($4::TEXT IS NULL OR (period COLLATE "C", id COLLATE "C") > ($4, $5))
           ORDER BY period COLLATE "C", id COLLATE "C" LIMIT $6"#,
    )
    .bind(query.tenant)
    .bind(query.period)
    .bind(query.status)
    .bind(query.after.map(|(period, _)| period))
    .bind(query.after.map(|(_, id)| id))
    .bind(query.limit)
    .fetch_all(connection)
    .await
    .doing("listing documents")
}

/// The document with this id, of this tenant where one is given.
///
/// # Errors
/// Driver errors.
pub async fn document(
    connection: &mut PgConnection,
    id: &str,
    tenant: Option<&str>,
) -> Result<Option<DocumentRow>, StorageError> {
    sqlx::query_as(
        "SELECT id, number, kind, status, seller, series, customer, tenant, period, attempt, body::TEXT AS body,
                created_at_us, issued_at_us, paid_at_us
         FROM document WHERE id = $1 AND ($2::TEXT IS NULL OR tenant = $2)",
    )
    .bind(id)
    .bind(tenant)
    .fetch_optional(connection)
    .await
    .doing("reading a document")
}
