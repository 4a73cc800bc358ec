//! The read model of findings, for the API: as they held when they were last derived.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct FindingRow {
    /// Its kind.
    pub kind: String,
    /// What it is about; with the kind it names one finding.
    pub subject: String,
    /// Since when.
    pub since_us: i64,
    /// Until when; none: it stands.
    pub until_us: Option<i64>,
    /// In words.
    pub detail: String,
}

/// Which findings: all conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingQuery<'a> {
    /// As this tenant may read them; none: all. Row security holds it too under [`crate::Role::Api`].
    pub tenant: Option<&'a str>,
    /// Of this kind.
    pub kind: Option<&'a str>,
    /// About this.
    pub subject: Option<&'a str>,
    /// Whether only those that stand.
    pub open: bool,
    /// Kind and subject of the last one of the page before.
    pub after: Option<(&'a str, &'a str)>,
    /// At most so many.
    pub limit: i64,
}

/// Replaces all findings by those that hold at `as_of_us`; `told` is what each tenant may read of them.
///
/// # Errors
/// Driver errors.
pub async fn replace(
    tx: &mut PgConnection,
    rows: &[FindingRow],
    told: &[(String, FindingRow)],
    as_of_us: i64,
) -> Result<(), StorageError> {
    // First: of two processes that derive findings at once, the second waits here, and replaces what the first wrote.
    sqlx::query("INSERT INTO finding_state (as_of_us) VALUES ($1) ON CONFLICT (one) DO UPDATE SET as_of_us = EXCLUDED.as_of_us")
        .bind(as_of_us)
        .execute(&mut *tx)
        .await
        .doing("replacing findings")?;
    sqlx::query("DELETE FROM finding").execute(&mut *tx).await.doing("replacing findings")?;
    sqlx::query("DELETE FROM finding_tenant").execute(&mut *tx).await.doing("replacing findings")?;
    let mut copy = CopyRows::default();
    rows.iter().for_each(|row| push(&mut copy, row));
    let statement = "COPY finding (kind, subject, since_us, until_us, detail) FROM STDIN";
    copy.send(tx, statement, "replacing findings").await?;
    let mut copy = CopyRows::default();
    for (tenant, row) in told {
        copy.text(tenant);
        push(&mut copy, row);
    }
    let statement = "COPY finding_tenant (tenant, kind, subject, since_us, until_us, detail) FROM STDIN";
    copy.send(tx, statement, "replacing findings").await?;
    Ok(())
}

fn push(copy: &mut CopyRows, row: &FindingRow) {
    copy.text(&row.kind).text(&row.subject).plain(row.since_us).plain_or_null(row.until_us);
    copy.text(&row.detail).end_row();
}

/// Findings by kind and subject.
///
/// # Errors
/// Driver errors.
pub async fn load(
    connection: &mut PgConnection,
    query: &FindingQuery<'_>,
) -> Result<Vec<FindingRow>, StorageError> {
    let (after_kind, after_subject) = query.after.unzip();
    sqlx::query_as(
        "SELECT kind, subject, since_us, until_us, detail FROM (
            SELECT kind, subject, since_us, until_us, detail FROM finding WHERE $1::TEXT IS NULL
            UNION ALL
            SELECT kind, subject, since_us, until_us, detail FROM finding_tenant WHERE tenant = $1) AS f
         WHERE ($2::TEXT IS NULL OR kind = $2) AND ($3::TEXT IS NULL OR subject = $3)
           AND (NOT $4 OR until_us IS NULL) AND ($5::TEXT IS NULL OR (kind, subject) > ($5, $6))
         ORDER BY kind, subject LIMIT $7",
    )
    .bind(query.tenant)
    .bind(query.kind)
    .bind(query.subject)
    .bind(query.open)
    .bind(after_kind)
    .bind(after_subject)
    .bind(query.limit)
    .fetch_all(connection)
    .await
    .doing("reading findings")
}

/// At which horizon the findings were derived; none: never.
///
/// # Errors
/// Driver errors.
pub async fn as_of(connection: &mut PgConnection) -> Result<Option<i64>, StorageError> {
    sqlx::query_scalar("SELECT as_of_us FROM finding_state")
        .fetch_optional(connection)
        .await
        .doing("reading findings")
}
