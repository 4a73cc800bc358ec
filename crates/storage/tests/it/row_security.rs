//! A tenant sees its own rows only, whatever the statement says.

use crate::database::{Database, refusal};
use crate::documents::draft;
use crate::read_models::{allocation, span};
use anyhow::Result;
use gpuledger_storage::objects::{NewObject, apply, latest};
use gpuledger_storage::spans::{
    AllocationPage, SpanFilter, load_allocations, load_spans, replace_allocations, replace_spans,
};
use gpuledger_storage::{Scope, StorageError, documents};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

const EVERYTHING: SpanFilter<'static> =
    SpanFilter { from_us: i64::MIN, to_us: i64::MAX, tenant: None, project: None, allocation: None };
const FIRST_PAGE: AllocationPage<'static> =
    AllocationPage { from_us: i64::MIN, to_us: i64::MAX, tenant: None, project: None, after: "", limit: 10 };

async fn filled() -> Result<Database> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    replace_spans(&mut tx, &[], &[], &[span("acme", "a-1"), span("beta", "b-1")]).await?;
    replace_allocations(&mut tx, &[], &[allocation("acme", "a-1"), allocation("beta", "b-1")]).await?;
    documents::insert_draft(&mut tx, &draft("d1", "acme")).await?;
    documents::insert_draft(&mut tx, &draft("d2", "beta")).await?;
    for (kind, id) in
        [("Sku", "h100"), ("Tenant", "acme"), ("Tenant", "beta"), ("RateCard", "standard"), ("Secret", "x")]
    {
        let object = NewObject { kind: kind.to_owned(), id: id.to_owned(), body: "{}".to_owned() };
        apply(&mut tx, &object, 0, "admin").await?;
    }
    tx.commit().await?;
    Ok(database)
}

/// The role these tests speak as is bound by row security: not owner, not superuser, not bypassing.
async fn assert_bound(connection: &mut PgConnection) -> Result<()> {
    let (user, superuser, bypasses, owns): (String, bool, bool, bool) = sqlx::query_as(
        "SELECT current_user::TEXT, rolsuper, rolbypassrls,
                EXISTS (SELECT FROM pg_class WHERE relowner = r.oid) FROM pg_roles AS r WHERE rolname = current_user",
    )
    .fetch_one(connection)
    .await?;
    assert_eq!((user.as_str(), superuser, bypasses, owns), ("gpuledger_api", false, false, false));
    Ok(())
}

#[tokio::test]
async fn a_tenant_sees_its_own_rows() -> Result<()> {
    let database = filled().await?;
    let mut tx = database.api.snapshot_of(Scope::Tenant("acme")).await?;
    assert_bound(&mut tx).await?;
    assert_eq!(load_spans(&mut tx, &EVERYTHING).await?, [span("acme", "a-1")]);
    assert_eq!(load_spans(&mut tx, &SpanFilter { tenant: Some("beta"), ..EVERYTHING }).await?, []);
    assert_eq!(load_allocations(&mut tx, &FIRST_PAGE).await?, [allocation("acme", "a-1")]);
    assert_eq!(documents::list(&mut tx, &documents::DocumentFilter::default()).await?, [draft("d1", "acme")]);
    assert_eq!(documents::find(&mut tx, "d2").await?, None);
    let objects: Vec<String> =
        latest(&mut tx).await?.into_iter().map(|o| format!("{} {}", o.kind, o.id)).collect();
    assert_eq!(objects, ["Sku h100", "Tenant acme"]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn an_administrator_sees_all_but_secrets() -> Result<()> {
    let database = filled().await?;
    let mut tx = database.api.snapshot_of(Scope::All).await?;
    assert_bound(&mut tx).await?;
    assert_eq!(load_spans(&mut tx, &EVERYTHING).await?.len(), 2);
    assert_eq!(load_allocations(&mut tx, &FIRST_PAGE).await?.len(), 2);
    assert!(latest(&mut tx).await?.iter().all(|object| object.kind != "Secret"));
    assert_eq!(latest(&mut tx).await?.len(), 4);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn without_a_scope_nothing_is_seen_nor_after_a_scope_ended() -> Result<()> {
    let database = filled().await?;
    let mut login = database.login().await?;
    login.execute("SET ROLE gpuledger_api").await?;
    for _ in 0..2 {
        assert_bound(&mut login).await?;
        assert_eq!(load_spans(&mut login, &EVERYTHING).await?, []);
        assert_eq!(latest(&mut login).await?.len(), 1, "SKUs only");
        let mut tx = login.begin().await?;
        sqlx::query("SELECT set_config('gpuledger.tenant', 'acme', true)").execute(&mut *tx).await?;
        assert_eq!(load_spans(&mut tx, &EVERYTHING).await?.len(), 1);
        tx.commit().await?;
    }
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn no_tenant_is_everybody() -> Result<()> {
    let database = Database::new().await?;
    for name in ["*", ""] {
        let error = database.api.snapshot_of(Scope::Tenant(name)).await.unwrap_err();
        assert!(matches!(error, StorageError::Invalid { .. }), "{error}");
    }
    database.drop().await
}

#[tokio::test]
async fn the_api_writes_nothing_and_reads_nothing_else() -> Result<()> {
    let database = filled().await?;
    let mut login = database.login().await?;
    login.execute("SET ROLE gpuledger_api").await?;
    assert_bound(&mut login).await?;
    let insert = "INSERT INTO allocation (allocation, tenant, class, start_us, end_kind, source)
                  VALUES ('x', 'TENANT', 'spot', 0, 'running', '/s')";
    let mut statements: Vec<String> =
        ["acme", "beta"].map(|tenant| insert.replace("TENANT", tenant)).to_vec();
    statements.extend(["UPDATE document SET body = '{}'", "DELETE FROM usage_span"].map(str::to_owned));
    for table in
        ["fact", "entry", "journal", "identity", "parked", "audit_pending", "period_close", "telemetry_block"]
    {
        statements.push(format!("SELECT FROM {table}"));
    }
    for statement in statements {
        let mut tx = login.begin().await?;
        tx.execute("SET LOCAL gpuledger.tenant = 'acme'").await?;
        let said = refusal(tx.execute(AssertSqlSafe(statement.clone())).await);
        assert_eq!(said.0, "42501", "{statement}: {said:?}");
        tx.rollback().await?;
    }
    login.close().await?;
    database.drop().await
}

/// Were the API's role ever granted INSERT, the policy would still keep it to its tenant, and off the partitions of entry.
#[tokio::test]
async fn policies_hold_without_the_grants() -> Result<()> {
    let database = filled().await?;
    let mut login = database.login().await?;
    sqlx::query("SELECT ensure_entry_partition(1790812800000000)").execute(&mut login).await?;
    login.execute("GRANT INSERT ON allocation TO gpuledger_api").await?;
    login.execute("GRANT SELECT ON entry, entry_2026_10 TO gpuledger_api").await?;
    let mut tx = database.writer.begin().await?;
    gpuledger_storage::journals::post(&mut tx, &[crate::journals::revision(1)]).await?;
    tx.commit().await?;
    login.execute("SET ROLE gpuledger_api").await?;
    assert_bound(&mut login).await?;
    let mut tx = login.begin().await?;
    tx.execute("SET LOCAL gpuledger.tenant = 'beta'").await?;
    for table in ["entry", "entry_2026_10"] {
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
            .fetch_one(&mut *tx)
            .await?;
        assert_eq!(rows, 0, "{table} shows rows of others");
    }
    tx.execute("SET LOCAL gpuledger.tenant = 'acme'").await?;
    let own: i64 = sqlx::query_scalar("SELECT count(*) FROM entry").fetch_one(&mut *tx).await?;
    assert_eq!(own, 3);
    let insert = "INSERT INTO allocation (allocation, tenant, class, start_us, end_kind, source)
                  VALUES ('x', 'beta', 'spot', 0, 'running', '/s')";
    let said = refusal(tx.execute(insert).await);
    assert_eq!(said.0, "42501");
    assert!(said.2.contains("row-level security"), "{said:?}");
    tx.rollback().await?;
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn a_superuser_becomes_each_role() -> Result<()> {
    let database = Database::new().await?;
    for (db, wanted) in
        [(&database.owner, "true"), (&database.writer, "gpuledger_writer"), (&database.api, "gpuledger_api")]
    {
        let mut tx = db.begin().await?;
        let who: String =
            sqlx::query_scalar("SELECT CASE WHEN rolsuper THEN 'true' ELSE rolname END FROM pg_roles WHERE rolname = current_user")
                .fetch_one(&mut *tx)
                .await?;
        assert_eq!(who, wanted);
        let zone: String = sqlx::query_scalar("SHOW TimeZone").fetch_one(&mut *tx).await?;
        assert_eq!(zone, "UTC");
    }
    database.drop().await
}
