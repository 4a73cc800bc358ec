//! A full disk, a failed sync, a signer behind a socket; and rounds cut off between signing and publishing.

use crate::log::{Fixture, NOW};
use anyhow::Result;
use gpuledger_audit::error::SignerError;
use gpuledger_audit::publish::Publisher;
use gpuledger_audit::signer::FileSigner;
use gpuledger_audit::socket::{Signing, listen};
use gpuledger_storage::audit_log;

#[tokio::test]
async fn a_head_that_was_signed_and_not_published_is_published_by_the_next_round_l_6() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture.record(20).await?;
    fixture.sequencer().drain(NOW).await?;
    // As after a kill between the two: the signer has the head, the database does not.
    let mut tx = fixture.db.snapshot().await?;
    let root = gpuledger_trail::stored::root(&mut tx, 20).await?;
    drop(tx);
    let note =
        fixture.signer.sign(&gpuledger_audit::signer::Request { size: 20, root, proof: Vec::new() })?;
    fixture.record(5).await?;
    fixture.sequencer().drain(NOW).await?;
    assert_eq!(fixture.publisher().publish(NOW).await?, 25);
    let mut tx = fixture.db.snapshot().await?;
    let first = audit_log::checkpoint_of(&mut tx, 20).await?.map(|row| row.note);
    assert_eq!(first.as_deref(), Some(note.as_bytes()));
    drop(tx);
    fixture.end().await
}

#[tokio::test]
async fn a_signer_behind_a_socket_signs_the_same_and_refuses_the_same_l_6() -> Result<()> {
    let fixture = Fixture::new().await?;
    let path = fixture.files.path().join("socket");
    let (signer, at) = (fixture.signer.clone(), path.clone());
    std::thread::spawn(move || listen(&signer, &at));
    while std::os::unix::net::UnixStream::connect(&path).is_err() {
        std::thread::yield_now();
    }
    let signing = Signing::Socket { path: path.clone(), log: fixture.key() };
    fixture.record(7).await?;
    fixture.sequencer().drain(NOW).await?;
    let mut publisher = Publisher::new(fixture.db.clone(), signing.clone());
    assert_eq!(publisher.publish(NOW).await?, 7);
    assert_eq!(fixture.signer.last()?.0.size, 7);
    let smaller = gpuledger_audit::signer::Request {
        size: 3,
        root: gpuledger_tlog::hash::Hash::of_empty_tree(),
        proof: Vec::new(),
    };
    let refused = signing.sign(smaller).await;
    assert!(
        matches!(&refused, Err(SignerError::Socket { why, .. }) if why.contains("one of 7 is signed")),
        "{refused:?}"
    );
    let nobody = Signing::Socket { path: fixture.files.path().join("nobody"), log: fixture.key() };
    assert!(Publisher::new(fixture.db.clone(), nobody).publish(NOW).await.is_err());
    fixture.end().await
}

/// `/dev/full` answers every write as a full disk does.
#[tokio::test]
async fn on_a_full_disk_nothing_is_signed_and_the_old_head_stands_l_6() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture.record(3).await?;
    fixture.sequencer().drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    let next = fixture.files.path().join("head.next");
    std::os::unix::fs::symlink("/dev/full", &next)?;
    fixture.record(3).await?;
    fixture.sequencer().drain(NOW).await?;
    let refused = fixture.publisher().publish(NOW).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(fixture.signer.last()?.0.size, 3);
    assert_eq!(published(&fixture).await?, Some(3));
    std::fs::remove_file(&next)?;
    assert_eq!(fixture.publisher().publish(NOW).await?, 6);
    fixture.end().await
}

async fn published(fixture: &Fixture) -> Result<Option<i64>> {
    let head = audit_log::latest_checkpoint(&mut *fixture.db.snapshot().await?).await?;
    Ok(head.map(|row| row.size))
}

#[test]
fn a_head_file_in_a_folder_that_is_not_there_is_named() -> Result<()> {
    let (key, _) = gpuledger_audit::key::generate("log.example/audit")?;
    let path = std::path::Path::new("/nonexistent/head");
    let error = FileSigner::new(key, path).last().unwrap_err().to_string();
    assert!(error.contains("/nonexistent/head"), "{error}");
    Ok(())
}
