//! Facts, entries and the like are never updated, deleted or truncated: not by the writer, not by the owner (L-7).

use crate::database::{Database, refusal};
use crate::journals::{HOUR, revision};
use anyhow::Result;
use gpuledger_storage::audit_log::{
    CheckpointRow, NewLeaf, NewTile, add_checkpoint, add_cosignature, append_leaves, append_tiles,
};
use gpuledger_storage::facts::{Indexed, NewFact, NewInventory, insert_facts};
use gpuledger_storage::parked::{Decision, NewParked};
use gpuledger_storage::{closes, journals, objects, parked};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

/// Tables, and a column that an UPDATE could set.
const TABLES: &[(&str, &str)] = &[
    ("identity", "digest"),
    ("fact", "body"),
    ("fact_subject", "subject"),
    ("inventory_content", "content"),
    ("audit_pending", "body"),
    ("audit_leaf", "leaf"),
    ("audit_tile", "root"),
    ("audit_checkpoint", "note"),
    ("audit_cosignature", "line"),
    ("parked", "reason"),
    ("parked_decision", "reason"),
    ("journal", "revision"),
    ("entry", "part_us"),
    ("entry_2026_10", "part_us"),
    ("object", "version"),
    ("period_close", "period"),
];

async fn filled() -> Result<Database> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let fact = NewFact {
        source: "/s".to_owned(),
        id: "1".to_owned(),
        kind: "t".to_owned(),
        at_us: 0,
        received_at_us: 0,
        rule_set: "1".to_owned(),
        digest: [1; 32],
        body: b"{}".to_vec(),
        subjects: vec!["gpu:g".to_owned()],
        indexed: Indexed {
            inventory: Some(NewInventory {
                content: [2; 32],
                node: "n".to_owned(),
                gpus: vec!["g".to_owned()],
            }),
            ..Indexed::default()
        },
    };
    insert_facts(&mut tx, &[fact]).await?;
    let event = NewParked {
        reason: "bad_value".to_owned(),
        detail: String::new(),
        source: None,
        id: None,
        subject: String::new(),
        at_us: None,
        received_at_us: 0,
        origin: "f:1".to_owned(),
        body: b"{".to_vec(),
        digest: None,
        retry_of: None,
    };
    parked::insert(&mut tx, &[event]).await?;
    parked::decide(&mut tx, 1, Decision::Discarded, "typo", 0, "cli").await?;
    journals::post(&mut tx, &[revision(1)]).await?;
    let object = objects::NewObject { kind: "Sku".to_owned(), id: "a".to_owned(), body: "{}".to_owned() };
    objects::apply(&mut tx, &object, 0, "admin").await?;
    let close = closes::PeriodClose {
        seq: 0,
        period: "2026-10".to_owned(),
        tenant: "acme".to_owned(),
        as_of_us: HOUR,
        facts_count: 1,
        facts_digest: vec![0; 32],
        facts_seq: 1,
        objects_seq: 1,
        rule_set: "1".to_owned(),
        closed_at_us: HOUR,
    };
    closes::insert(&mut tx, &close).await?;
    log(&mut tx).await?;
    tx.commit().await?;
    Ok(database)
}

/// A leaf, a tile, and a head with a cosignature.
async fn log(tx: &mut PgConnection) -> Result<()> {
    let leaf = NewLeaf {
        index: 0,
        pending_seq: Some(1),
        fact_seq: Some(1),
        subjects: vec![7, 8],
        leaf: b"leaf".to_vec(),
    };
    let beat =
        NewLeaf { index: 1, pending_seq: None, fact_seq: None, subjects: Vec::new(), leaf: Vec::new() };
    append_leaves(tx, &[leaf, beat]).await?;
    append_tiles(tx, &[NewTile { level: 0, index: 0, root: [3; 32], hashes: vec![4; 8_192] }]).await?;
    let head = CheckpointRow { size: 1, root: vec![5; 32], note: b"note".to_vec(), signed_at_us: 0 };
    add_checkpoint(tx, &head).await?;
    add_checkpoint(tx, &head).await?;
    Ok(add_cosignature(tx, 1, "w", "line", 0).await?)
}

/// Tries a statement in a transaction that is rolled back.
async fn attempt(connection: &mut PgConnection, statement: String) -> Result<(String, String, String)> {
    let mut tx = connection.begin().await?;
    let said = refusal(tx.execute(AssertSqlSafe(statement)).await);
    tx.rollback().await?;
    Ok(said)
}

fn changes(table: &str, column: &str) -> [String; 4] {
    [
        format!("UPDATE {table} SET {column} = {column}"),
        format!("DELETE FROM {table}"),
        format!("TRUNCATE {table} CASCADE"),
        format!("DELETE FROM {table} WHERE false"),
    ]
}

#[tokio::test]
async fn the_owner_is_refused() -> Result<()> {
    let database = filled().await?;
    let mut owner = database.login().await?;
    for (table, column) in TABLES {
        let rows: bool = sqlx::query_scalar(AssertSqlSafe(format!("SELECT EXISTS (SELECT FROM {table})")))
            .fetch_one(&mut owner)
            .await?;
        assert!(rows, "{table} is empty: nothing would be proved");
        for statement in changes(table, column) {
            let (code, constraint, message) = attempt(&mut owner, statement.clone()).await?;
            assert_eq!(
                (code.as_str(), constraint.as_str()),
                ("23001", "append_only"),
                "{statement}: {message}"
            );
        }
    }
    owner.close().await?;
    database.drop().await
}

#[tokio::test]
async fn the_owner_is_refused_as_a_replica_too() -> Result<()> {
    let database = filled().await?;
    let mut owner = database.login().await?;
    owner.execute("SET session_replication_role = replica").await?;
    for (table, column) in TABLES {
        for statement in changes(table, column) {
            let (code, _, message) = attempt(&mut owner, statement.clone()).await?;
            assert_eq!(code, "23001", "{statement}: {message}");
        }
    }
    owner.close().await?;
    database.drop().await
}

#[tokio::test]
async fn the_writer_is_refused() -> Result<()> {
    let database = filled().await?;
    let mut writer = database.login().await?;
    writer.execute("SET ROLE gpuledger_writer").await?;
    for (table, column) in TABLES {
        for statement in changes(table, column) {
            let (code, _, message) = attempt(&mut writer, statement.clone()).await?;
            assert_eq!(code, "42501", "{statement}: {message}");
        }
    }
    writer.close().await?;
    database.drop().await
}

#[tokio::test]
async fn an_upsert_is_a_change() -> Result<()> {
    let database = filled().await?;
    let mut owner = database.login().await?;
    let statement = "INSERT INTO identity VALUES ('/s', '1', decode(repeat('02', 32), 'hex'), 9)
                     ON CONFLICT (source, id) DO UPDATE SET fact_seq = 9";
    assert_eq!(attempt(&mut owner, statement.to_owned()).await?.0, "23001");
    owner.close().await?;
    database.drop().await
}
