//! The schema as a whole: migrations, guards on every partition, policies on every tenant's rows, rights of each role.

use crate::database::{Database, Empty};
use anyhow::Result;
use gpuledger_storage::migrate::pending;
use gpuledger_storage::{Role, StorageError, connect, migrate};
use sqlx::Connection;

const OCTOBER_2026: i64 = 1_790_812_800_000_000;

#[tokio::test]
async fn migrating_twice_is_a_no_op() -> Result<()> {
    let empty = Empty::new().await?;
    let owner = connect(&empty.url, Role::Owner).await?;
    let all = pending(&owner).await?;
    assert!(all > 0);
    assert_eq!(migrate(&owner).await?, all);
    assert_eq!(pending(&owner).await?, 0);
    assert_eq!(migrate(&owner).await?, 0);
    let writer = connect(&empty.url, Role::Writer).await?;
    assert!(matches!(migrate(&writer).await, Err(StorageError::Invalid { .. })));
    empty.drop().await
}

#[tokio::test]
async fn an_edited_migration_is_refused() -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = (SELECT min(version) FROM _sqlx_migrations)")
        .execute(&mut login)
        .await?;
    let error = migrate(&database.owner).await.unwrap_err();
    assert!(matches!(error, StorageError::Migration { .. }), "{error}");
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn an_unmigrated_database_says_so() -> Result<()> {
    let empty = Empty::new().await?;
    let owner = connect(&empty.url, Role::Owner).await?;
    let mut tx = owner.begin().await?;
    let error = gpuledger_storage::state::load(&mut tx).await.unwrap_err();
    assert!(matches!(error, StorageError::NotMigrated { .. }), "{error}");
    assert!(error.to_string().contains("gpuledger migrate"), "{error}");
    drop(tx);
    empty.drop().await
}

#[tokio::test]
async fn errors_of_connecting_name_the_place_and_keep_the_password() -> Result<()> {
    let refused = connect("postgres://me:s3cret@127.0.0.1:1/db", Role::Owner).await.unwrap_err();
    assert!(refused.is_unreachable(), "{refused:?}");
    assert!(refused.to_string().contains("127.0.0.1:1"), "{refused}");
    let unread = connect("mysql://me:s3cret@[:x/db?sslmode=s3cret", Role::Owner).await.unwrap_err();
    for error in [refused, unread] {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
    Ok(())
}

/// Names of the tables of `query`, which selects one text column.
async fn names(database: &Database, query: &'static str) -> Result<Vec<String>> {
    let mut login = database.login().await?;
    sqlx::query("SELECT ensure_entry_partition($1)").bind(OCTOBER_2026).execute(&mut login).await?;
    let found = sqlx::query_scalar(query).fetch_all(&mut login).await?;
    login.close().await?;
    Ok(found)
}

#[tokio::test]
async fn every_table_with_a_tenant_has_row_security() -> Result<()> {
    let database = Database::new().await?;
    let all = "SELECT c.relname::TEXT FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
               WHERE c.relnamespace = 'public'::REGNAMESPACE AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1";
    let tables = names(&database, all).await?;
    assert_eq!(
        tables,
        [
            "allocation",
            "document",
            "entry",
            "entry_2026_10",
            "finding_tenant",
            "period_close",
            "signal",
            "subject_key",
            "usage_span"
        ]
    );
    let bare = "SELECT c.relname::TEXT FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
                WHERE c.relnamespace = 'public'::REGNAMESPACE AND c.relkind IN ('r', 'p', 'v', 'm')
                  AND NOT (c.relrowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))";
    assert_eq!(names(&database, bare).await?, [""; 0]);
    database.drop().await
}

#[tokio::test]
async fn every_partition_has_the_guards_of_its_parent_always_on() -> Result<()> {
    let database = Database::new().await?;
    let unguarded = "SELECT c.relname || ' lacks ' || wanted.name
        FROM pg_class c
        CROSS JOIN (VALUES ('append_only'), ('append_only_row'), ('check_journals')) AS wanted (name)
        WHERE c.relnamespace = 'public'::REGNAMESPACE AND c.relkind IN ('r', 'p')
          AND (c.relname IN ('fact', 'fact_subject', 'inventory_content', 'audit_pending', 'audit_leaf', 'audit_tile', 'audit_checkpoint', 'audit_cosignature', 'parked', 'parked_decision', 'journal', 'object', 'period_close')
               OR c.relname LIKE 'entry%' OR c.relname LIKE 'identity%')
          AND (wanted.name <> 'check_journals' OR c.relname LIKE 'entry%')
          AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = wanted.name AND t.tgenabled = 'A')";
    assert_eq!(names(&database, unguarded).await?, [""; 0]);
    let partitions = "SELECT inhrelid::REGCLASS::TEXT FROM pg_inherits
                      WHERE inhparent IN ('entry'::REGCLASS, 'identity'::REGCLASS) ORDER BY 1";
    assert_eq!(names(&database, partitions).await?.len(), 17);
    database.drop().await
}

#[tokio::test]
async fn each_role_has_no_more_rights_than_it_needs() -> Result<()> {
    let database = Database::new().await?;
    let of_api = "SELECT table_name || ' ' || privilege_type FROM information_schema.role_table_grants
                  WHERE grantee = 'gpuledger_api' ORDER BY 1";
    let wanted = [
        "allocation SELECT",
        "audit_checkpoint SELECT",
        "audit_cosignature SELECT",
        "audit_leaf SELECT",
        "audit_tile SELECT",
        "document SELECT",
        "finding SELECT",
        "finding_state SELECT",
        "finding_tenant SELECT",
        "inbox INSERT",
        "ledger_state SELECT",
        "object SELECT",
        "packed_hour SELECT",
        "signal SELECT",
        "subject_key SELECT",
        "usage_span SELECT",
    ];
    assert_eq!(names(&database, of_api).await?, wanted);
    let of_writer = "SELECT table_name || ' ' || privilege_type FROM information_schema.role_table_grants
        WHERE grantee = 'gpuledger_writer' AND privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
          AND (table_name IN ('fact', 'fact_subject', 'inventory_content', 'audit_pending', 'audit_leaf', 'audit_tile', 'audit_checkpoint', 'audit_cosignature', 'parked', 'parked_decision', 'journal', 'object', 'period_close')
               OR table_name LIKE 'entry%' OR table_name LIKE 'identity%')";
    assert_eq!(names(&database, of_writer).await?, [""; 0]);
    let owned = "SELECT relname::TEXT FROM pg_class WHERE relowner IN ('gpuledger_writer'::REGROLE, 'gpuledger_api'::REGROLE)";
    assert_eq!(names(&database, owned).await?, [""; 0]);
    database.drop().await
}

#[tokio::test]
async fn only_the_writer_makes_partitions() -> Result<()> {
    let database = Database::new().await?;
    let mut writer = database.writer.begin().await?;
    sqlx::query("SELECT ensure_entry_partition($1)").bind(OCTOBER_2026).execute(&mut *writer).await?;
    sqlx::query("SELECT ensure_entry_partition($1)").bind(OCTOBER_2026).execute(&mut *writer).await?;
    writer.commit().await?;
    let mut api = database.api.begin().await?;
    let denied = sqlx::query("SELECT ensure_entry_partition(0)").execute(&mut *api).await;
    assert_eq!(crate::database::refusal(denied).0, "42501");
    api.rollback().await?;
    database.drop().await
}
