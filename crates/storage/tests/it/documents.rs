//! The life of a document (V-1) and its gapless numbers (V-2).

use crate::database::{Database, refusal};
use anyhow::Result;
use gpuledger_storage::documents::{
    DocumentFilter, DocumentRow, discard, find, insert_draft, issue, list, next_number, pay,
};
use sqlx::{AssertSqlSafe, Connection, Executor};

/// Keys out of order and an exact number: what JSONB would change.
const BODY: &str = r#"{"z": "1.10",  "a": 1.50}"#;

pub(crate) fn draft(id: &str, tenant: &str) -> DocumentRow {
    DocumentRow {
        id: id.to_owned(),
        number: None,
        kind: "invoice".to_owned(),
        status: "draft".to_owned(),
        seller: "s".to_owned(),
        series: "A".to_owned(),
        customer: "c".to_owned(),
        tenant: tenant.to_owned(),
        period: "2026-10".to_owned(),
        attempt: 1,
        body: BODY.to_owned(),
        created_at_us: 1,
        issued_at_us: None,
        paid_at_us: None,
    }
}

#[tokio::test]
async fn from_draft_to_paid() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    insert_draft(&mut tx, &draft("d1", "acme")).await?;
    assert_eq!(find(&mut tx, "d1").await?, Some(draft("d1", "acme")));
    assert!(!pay(&mut tx, "d1", 3).await?, "a draft cannot be paid");
    assert!(issue(&mut tx, "d1", "A-1", BODY, 2).await?);
    assert!(!issue(&mut tx, "d1", "A-2", BODY, 2).await?);
    assert!(!discard(&mut tx, "d1").await?);
    assert!(pay(&mut tx, "d1", 3).await?);
    let paid = find(&mut tx, "A-1").await?.unwrap();
    assert_eq!((paid.status.as_str(), paid.body.as_str(), paid.paid_at_us), ("paid", BODY, Some(3)));
    tx.commit().await?;
    database.drop().await
}

#[tokio::test]
async fn a_key_is_taken_once_and_reopened_by_discarding() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    insert_draft(&mut tx, &draft("d1", "acme")).await?;
    assert!(discard(&mut tx, "d1").await?);
    insert_draft(&mut tx, &DocumentRow { attempt: 2, ..draft("d2", "acme") }).await?;
    let drafts =
        list(&mut tx, &DocumentFilter { status: Some("draft"), ..DocumentFilter::default() }).await?;
    assert_eq!(drafts.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["d2"]);
    let error = insert_draft(&mut tx, &DocumentRow { attempt: 2, ..draft("d3", "acme") }).await.unwrap_err();
    assert_eq!(error.constraint(), Some("document_key"));
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn an_issued_document_never_changes() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    insert_draft(&mut tx, &draft("d1", "acme")).await?;
    issue(&mut tx, "d1", "A-1", BODY, 2).await?;
    insert_draft(&mut tx, &draft("d2", "beta")).await?;
    tx.commit().await?;
    let statements = [
        "UPDATE document SET body = '{}' WHERE id = 'd1'",
        "UPDATE document SET status = 'paid', paid_at_us = 3, body = '{}' WHERE id = 'd1'",
        "UPDATE document SET number = 'A-2' WHERE id = 'd1'",
        "UPDATE document SET tenant = 'beta' WHERE id = 'd1'",
        "UPDATE document SET status = 'draft', number = NULL, issued_at_us = NULL WHERE id = 'd1'",
        "UPDATE document SET status = 'discarded', number = NULL, issued_at_us = NULL WHERE id = 'd1'",
        // A draft changes at issue only, and not in what it is.
        "UPDATE document SET body = '{}' WHERE id = 'd2'",
        "UPDATE document SET status = 'issued', number = 'A-2', issued_at_us = 2, period = '2026-11' WHERE id = 'd2'",
        "UPDATE document SET status = 'discarded', body = '{}' WHERE id = 'd2'",
        "DELETE FROM document WHERE id = 'd1'",
        "DELETE FROM document WHERE id = 'd2'",
        "TRUNCATE document",
    ];
    let mut login = database.login().await?;
    for setting in ["RESET ROLE", "SET session_replication_role = replica"] {
        login.execute(setting).await?;
        for statement in statements {
            let mut tx = login.begin().await?;
            let said = refusal(tx.execute(AssertSqlSafe(statement.to_owned())).await);
            assert_eq!(said.0, "23001", "{statement}: {said:?}");
            tx.rollback().await?;
        }
    }
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn numbers_have_no_holes() -> Result<()> {
    let database = Database::new().await?;
    for (commit, wanted) in [(true, 1), (false, 2), (true, 2), (true, 3)] {
        let mut tx = database.writer.begin().await?;
        assert_eq!(next_number(&mut tx, "s", "A").await?, wanted);
        if commit {
            tx.commit().await?;
        } else {
            tx.rollback().await?;
        }
    }
    let mut tx = database.writer.begin().await?;
    assert_eq!(next_number(&mut tx, "s", "B").await?, 1);
    drop(tx);
    database.drop().await
}
