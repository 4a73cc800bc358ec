//! Invoices and credit notes, and their numbers.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DocumentRow {
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
    /// Number series of the seller.
    pub series: String,
    /// Who pays.
    pub customer: String,
    /// Whose usage.
    pub tenant: String,
    /// `YYYY-MM`.
    pub period: String,
    /// From 1; a period is billed again after its draft was discarded or its invoice credited in full.
    pub attempt: i32,
    /// The frozen JSON of `invoice show`, byte by byte.
    pub body: String,
    /// When it was drafted.
    pub created_at_us: i64,
    /// When it was issued.
    pub issued_at_us: Option<i64>,
    /// When it was paid.
    pub paid_at_us: Option<i64>,
}

/// Which documents: all conditions must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter<'a> {
    /// Of this tenant.
    pub tenant: Option<&'a str>,
    /// Of this period.
    pub period: Option<&'a str>,
    /// In this status.
    pub status: Option<&'a str>,
}

/// Writes a draft; number, status and dates of `draft` but `created_at_us` are ignored.
///
/// # Errors
/// [`StorageError::Refused`] with `document_key` where customer, tenant, period, kind and attempt are taken.
pub async fn insert_draft(tx: &mut PgConnection, draft: &DocumentRow) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO document (id, kind, status, seller, series, customer, tenant, period, attempt, body, created_at_us)
         VALUES ($1, $2, 'draft', $3, $4, $5, $6, $7, $8, $9::JSON, $10)",
    )
    .bind(&draft.id)
    .bind(&draft.kind)
    .bind(&draft.seller)
    .bind(&draft.series)
    .bind(&draft.customer)
    .bind(&draft.tenant)
    .bind(&draft.period)
    .bind(draft.attempt)
    .bind(&draft.body)
    .bind(draft.created_at_us)
    .execute(tx)
    .await
    .doing("writing a draft")?;
    Ok(())
}

/// Takes the next number of a seller's series, from 1. The series stays locked until commit: without holes, because a
/// roll-back gives the number back (V-2).
///
/// # Errors
/// Driver errors.
pub async fn next_number(tx: &mut PgConnection, seller: &str, series: &str) -> Result<i64, StorageError> {
    sqlx::query_scalar(
        "INSERT INTO number_series AS s (seller, series, next_number) VALUES ($1, $2, 2)
         ON CONFLICT (seller, series) DO UPDATE SET next_number = s.next_number + 1
         RETURNING next_number - 1",
    )
    .bind(seller)
    .bind(series)
    .fetch_one(tx)
    .await
    .doing("taking a document number")
}

/// Issues a draft under `number`, with its final body. Returns whether it was a draft.
///
/// # Errors
/// [`StorageError::Refused`] with `document_number` where the number is taken.
pub async fn issue(
    tx: &mut PgConnection,
    id: &str,
    number: &str,
    body: &str,
    issued_at_us: i64,
) -> Result<bool, StorageError> {
    let done = sqlx::query(
        "UPDATE document SET status = 'issued', number = $2, body = $3::JSON, issued_at_us = $4
         WHERE id = $1 AND status = 'draft'",
    )
    .bind(id)
    .bind(number)
    .bind(body)
    .bind(issued_at_us)
    .execute(tx)
    .await
    .doing("issuing a document")?;
    Ok(done.rows_affected() == 1)
}

/// Discards a draft, which reopens its key for the next attempt. Returns whether it was a draft.
///
/// # Errors
/// Driver errors.
pub async fn discard(tx: &mut PgConnection, id: &str) -> Result<bool, StorageError> {
    let done = sqlx::query("UPDATE document SET status = 'discarded' WHERE id = $1 AND status = 'draft'")
        .bind(id)
        .execute(tx)
        .await
        .doing("discarding a draft")?;
    Ok(done.rows_affected() == 1)
}

/// Marks an issued document as paid. Returns whether it was issued and unpaid.
///
/// # Errors
/// Driver errors.
pub async fn pay(tx: &mut PgConnection, id: &str, paid_at_us: i64) -> Result<bool, StorageError> {
    let done = sqlx::query(
        "UPDATE document SET status = 'paid', paid_at_us = $2 WHERE id = $1 AND status = 'issued'",
    )
    .bind(id)
    .bind(paid_at_us)
    .execute(tx)
    .await
    .doing("paying a document")?;
    Ok(done.rows_affected() == 1)
}

/// The document with this id or number. Numbers of several sellers may be equal: the first by id is given.
///
/// # Errors
/// Driver errors.
pub async fn find(
    connection: &mut PgConnection,
    id_or_number: &str,
) -> Result<Option<DocumentRow>, StorageError> {
    sqlx::query_as(
        r#"SELECT id, number, kind, status, seller, series, customer, tenant, period, attempt, body::TEXT AS body,
                  created_at_us, issued_at_us, paid_at_us
           FROM document WHERE id = $1 OR number = $1 ORDER BY id <> $1, id COLLATE "C" LIMIT 1"#,
    )
    .bind(id_or_number)
    .fetch_optional(connection)
    .await
    .doing("reading a document")
}

/// Documents by period, tenant, kind and attempt.
///
/// # Errors
/// Driver errors.
pub async fn list(
    connection: &mut PgConnection,
    filter: &DocumentFilter<'_>,
) -> Result<Vec<DocumentRow>, StorageError> {
    sqlx::query_as(
        r#"SELECT id, number, kind, status, seller, series, customer, tenant, period, attempt, body::TEXT AS body,
                  created_at_us, issued_at_us, paid_at_us
           FROM document
           WHERE ($1::TEXT IS NULL OR tenant = $1) AND ($2::TEXT IS NULL OR period = $2) AND ($3::TEXT IS NULL OR status = $3)
           ORDER BY period COLLATE "C", tenant COLLATE "C", kind COLLATE "C", attempt, id COLLATE "C""#,
    )
    .bind(filter.tenant)
    .bind(filter.period)
    .bind(filter.status)
    .fetch_all(connection)
    .await
    .doing("listing documents")
}
