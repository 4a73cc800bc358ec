//! What the database's guards stop, and what only the log detects (L-7): history rewritten by the owner or a superuser, with every trigger out of the way.

use crate::log::{Fixture, NOW};
use anyhow::{Context, Result};
use gpuledger_audit::AuditError;
use gpuledger_audit::error::SignerError;
use gpuledger_audit::signer::{FileSigner, Request};
use gpuledger_storage::audit_log;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::proof::verify_consistency;
use gpuledger_tlog::tree::{self, Node};
use gpuledger_trail::stored;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::Command;

/// Runs statements as the login, which owns the tables and is a superuser; what the server said where it refused.
fn sql(fixture: &Fixture, statements: &str) -> Result<Option<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh");
    let told = String::from_utf8(Command::new(script).arg("psql").output()?.stdout)?;
    let psql = told.lines().last().context("where psql is")?.trim().to_owned();
    let done = Command::new(psql)
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &fixture.url, "-c", statements])
        .output()?;
    Ok((!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned()))
}

/// With all guards off, as an owner can.
fn by_force(fixture: &Fixture, statements: &str) -> Result<()> {
    let tables = ["audit_leaf", "audit_tile", "audit_checkpoint"];
    let all = |word: &str| tables.map(|table| format!("ALTER TABLE {table} {word} TRIGGER USER;")).concat();
    let refused =
        sql(fixture, &format!("BEGIN; {} {statements}; {} COMMIT;", all("DISABLE"), all("ENABLE")))?;
    anyhow::ensure!(refused.is_none(), "{refused:?}");
    Ok(())
}

async fn published(count: usize) -> Result<Fixture> {
    let fixture = Fixture::new().await?;
    fixture.record(count).await?;
    fixture.sequencer().drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    Ok(fixture)
}

#[tokio::test]
async fn guards_stop_owner_and_superuser_until_they_take_them_off_l_7() -> Result<()> {
    let fixture = published(300).await?;
    let tables = [
        ("audit_leaf", "leaf"),
        ("audit_tile", "root"),
        ("audit_checkpoint", "note"),
        ("audit_pending", "body"),
    ];
    for (table, column) in tables {
        for statement in [
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table} CASCADE"),
            format!("SET session_replication_role = replica; DELETE FROM {table}"),
        ] {
            let said = sql(&fixture, &statement)?.context("it was not refused")?;
            assert!(said.contains("append-only"), "{statement}: {said}");
        }
    }
    by_force(&fixture, "UPDATE audit_leaf SET leaf = 'x' WHERE leaf_index = 299")?;
    let now = audit_log::leaf(&mut *fixture.db.snapshot().await?, 299).await?.context("leaf 299")?;
    assert_eq!(now.leaf, b"x", "without its trigger a table guards nothing: that is for the log to detect");
    fixture.end().await
}

#[tokio::test]
async fn a_leaf_changed_before_it_is_signed_is_never_signed_l_6() -> Result<()> {
    let fixture = published(10).await?;
    fixture.record(300).await?;
    fixture.sequencer().drain(NOW).await?;
    for index in [12, 305] {
        by_force(
            &fixture,
            &format!(
                "CREATE TABLE kept AS SELECT leaf FROM audit_leaf WHERE leaf_index = {index}; UPDATE audit_leaf SET leaf = leaf || 'x' WHERE leaf_index = {index}"
            ),
        )?;
        let refused = fixture.publisher().publish(NOW).await;
        assert!(matches!(refused, Err(AuditError::Rehash { .. })), "{index}: {refused:?}");
        by_force(
            &fixture,
            &format!(
                "UPDATE audit_leaf SET leaf = (SELECT leaf FROM kept) WHERE leaf_index = {index}; DROP TABLE kept"
            ),
        )?;
    }
    assert_eq!(fixture.publisher().publish(NOW).await?, 310, "with the leaves as they were it goes on");
    fixture.end().await
}

#[tokio::test]
async fn a_restored_backup_or_a_cut_tail_is_not_signed_l_6() -> Result<()> {
    let fixture = published(40).await?;
    by_force(
        &fixture,
        "DELETE FROM audit_checkpoint; DELETE FROM audit_leaf WHERE leaf_index >= 30; UPDATE audit_state SET size = 30",
    )?;
    let refused = fixture.publisher().publish(NOW).await;
    assert!(matches!(refused, Err(AuditError::Behind { signed: 40, stored: 30 })), "{refused:?}");
    // Growing again does not help: it is another tree.
    fixture.record(20).await?;
    fixture.sequencer().drain(NOW).await?;
    let refused = fixture.publisher().publish(NOW).await;
    assert!(matches!(refused, Err(AuditError::Rewritten { size: 40, .. })), "{refused:?}");
    fixture.end().await
}

/// The drill: every leaf is in the hands of somebody with full rights, all hashes are made anew, the real key signs. Whoever has seen one checkpoint sees it.
#[tokio::test]
async fn history_rewritten_and_signed_with_the_real_key_fails_against_one_checkpoint_l_7() -> Result<()> {
    let fixture = published(300).await?;
    let seen = fixture.signer.last()?.0;
    fixture.record(30).await?;
    fixture.sequencer().drain(NOW).await?;
    by_force(
        &fixture,
        "UPDATE audit_leaf SET leaf = convert_to(replace(convert_from(leaf, 'UTF8'), 'GPU-1', 'GPU-2'), 'UTF8')",
    )?;
    let mut tx = fixture.db.snapshot().await?;
    let leaves = audit_log::leaf_bytes(&mut tx, 0, 330).await?;
    drop(tx);
    let mut nodes: BTreeMap<Node, Hash> = BTreeMap::new();
    for (index, leaf) in (0..).zip(&leaves) {
        let new = tree::append(index, Hash::of_leaf(leaf), |node| Ok::<_, Infallible>(nodes[&node]))?;
        nodes.extend(new);
    }
    let node = |node| Ok::<_, Infallible>(nodes[&node]);
    let (root, proof) = (tree::root(330, node)?, tree::consistency(300, 330, node)?);
    let request = Request { size: 330, root, proof: proof.clone() };
    let refused = fixture.signer.sign(&request);
    assert!(matches!(refused, Err(SignerError::Forked { .. })), "the signer keeps its own head");
    // With the key in hand the head is thrown away too.
    let key = gpuledger_audit::key::read(&stolen(&fixture)?)?;
    let forged_head = fixture.files.path().join("forged");
    let forger = FileSigner::new(key, &forged_head);
    forger.begin(&forged_head)?;
    let note = forger.sign(&Request { proof: Vec::new(), ..request })?;
    let (forged, _) = Checkpoint::open(note.as_bytes(), &forger.verifier().clone(), &[])?;
    assert_eq!(forged.size, 330, "the signature is good");
    assert!(verify_consistency(seen.size, seen.root, forged.size, forged.root, &proof).is_err());
    fixture.end().await
}

fn stolen(fixture: &Fixture) -> Result<std::path::PathBuf> {
    Ok(fixture.files.path().join("key"))
}

#[tokio::test]
async fn a_stored_tile_that_was_changed_is_noticed_by_signer_and_reader_l_7() -> Result<()> {
    let fixture = published(600).await?;
    by_force(
        &fixture,
        "UPDATE audit_tile SET root = sha256(root), hashes = overlay(hashes placing '\\x00000000' from 100) WHERE tile_index = 0",
    )?;
    fixture.record(1).await?;
    // Appending hashes nothing of the first tile; signing does.
    fixture.sequencer().drain(NOW).await?;
    let refused = fixture.publisher().publish(NOW).await;
    assert!(refused.is_err(), "{refused:?}");
    let mut tx = fixture.db.snapshot().await?;
    let proof = stored::proof(&mut tx, 2, None).await?.context("a file")?;
    let leaf = audit_log::leaf(&mut tx, 2).await?.context("leaf 2")?;
    let policy = gpuledger_tlog::policy::Policy::of_log(fixture.key());
    assert!(proof.verify(&leaf.leaf, &fixture.key(), &policy).is_err());
    drop(tx);
    fixture.end().await
}
