//! The log over HTTP: the checkpoint is everybody's, tiles are auditors', and a tenant reads the leaves that name it and opens its own fields.

use crate::client::Request;
use crate::fixture::{Fixture, NOW, claims, tenant};
use anyhow::{Context, Result};
use gpuledger_api::token::{Claims, Role};
use gpuledger_storage::Db;
use gpuledger_storage::audit_log::{CheckpointRow, NewLeaf, add_checkpoint, add_cosignature, append_leaves};
use gpuledger_storage::subject_keys::{NewSubject, add, by_digests};
use gpuledger_tlog::bundle::ProofFile;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Signer, compose};
use gpuledger_tlog::policy::Policy;
use gpuledger_tlog::tile::read_entries;
use gpuledger_trail::keys::{Seal, Secret};
use gpuledger_trail::leaf::{Draft, Leaf, encode};
use gpuledger_trail::opening::read_extra;
use gpuledger_trail::private::split;

const GRANT: &str = "gpuledger.allocation.granted.v1";

fn log() -> Signer {
    Signer::from_seed("log.example/audit", Kind::Ed25519, &[7; 32]).unwrap()
}

/// Leaf 0 names acme, leaf 1 umbra; a checkpoint covers both, and leaf 2 is not covered yet.
pub(crate) async fn fill_log(writer: &Db) -> Result<()> {
    let mut tx = writer.begin().await?;
    let seal = Seal::default();
    let mut leaves = Vec::new();
    for (index, name) in (0..).zip(["acme", "umbra", "acme"]) {
        let digest = if name == "acme" { [1; 32] } else { [2; 32] };
        if by_digests(&mut tx, &[digest]).await?.is_empty() {
            let key = seal.seal(&Secret::random()?)?;
            let subject =
                NewSubject { digest, kind: "tenant".to_owned(), tenant: Some(name.to_owned()), key };
            add(&mut tx, &[subject], NOW.as_micros()).await?;
        }
        let row = by_digests(&mut tx, &[digest]).await?.pop().context("a subject")?;
        let body = format!(r#"{{"data":{{"allocation":"{name}-1","tenant":"{name}"}},"type":"{GRANT}"}}"#);
        let (content, private) = split(GRANT, body.as_bytes());
        let key = seal.open(&row.key.context("a key")?)?;
        let private: Vec<_> = private.iter().map(|private| (private, &key)).collect();
        let draft = Draft {
            index,
            kind: GRANT.to_owned(),
            fact_seq: None,
            recorded_at: NOW,
            sequenced_at: NOW,
            links: Vec::new(),
            content,
        };
        let index = i64::try_from(index)?;
        let leaf = encode(draft, &private).0;
        leaves.push(NewLeaf { index, pending_seq: None, fact_seq: None, subjects: vec![row.no], leaf });
    }
    append_leaves(&mut tx, &leaves).await?;
    let root = Hash::of_node(Hash::of_leaf(&leaves[0].leaf), Hash::of_leaf(&leaves[1].leaf));
    let text = Checkpoint { origin: "log.example/audit".to_owned(), size: 2, root }.text();
    let note = compose(&text, &[log().sign(&text, 0)])?.into_bytes();
    let head = CheckpointRow { size: 2, root: root.0.to_vec(), note, signed_at_us: NOW.as_micros() };
    add_checkpoint(&mut tx, &head).await?;
    let witness = Signer::from_seed("witness.example", Kind::Cosigner, &[8; 32])?;
    add_cosignature(&mut tx, 2, "witness.example", &witness.sign(&text, 1_790_000_000), 0).await?;
    Ok(tx.commit().await?)
}

#[tokio::test]
async fn everybody_reads_the_checkpoint_with_its_cosignatures_l_2() -> Result<()> {
    let fixture = Fixture::new().await?;
    let answer = fixture.send(&Request::get("/checkpoint")).await?;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    let witness = Signer::from_seed("witness.example", Kind::Cosigner, &[8; 32])?;
    let witnesses = [witness.verifier().clone()];
    let (head, cosigned) = Checkpoint::open(&answer.body, log().verifier(), &witnesses)?;
    assert_eq!((head.size, cosigned.len()), (2, 1));
    fixture.end().await
}

#[tokio::test]
async fn tiles_are_for_auditors_and_never_beyond_the_checkpoint_l_2() -> Result<()> {
    let fixture = Fixture::new().await?;
    let auditor = claims(Role::Auditor);
    let tile = fixture.get_as(&auditor, "/tile/0/000.p/2").await?;
    let entries = fixture.get_as(&auditor, "/tile/entries/000.p/2").await?;
    let leaves = read_entries(&entries.body, 2).context("a bundle")?;
    let hashes: Vec<u8> = leaves.iter().flat_map(|leaf| Hash::of_leaf(leaf).0).collect();
    assert_eq!(tile.body, hashes);
    assert_eq!(fixture.get_as(&auditor, "/tile/0/000.p/1").await?.body, hashes[..32]);
    for path in [
        "/tile/0/000",
        "/tile/0/000.p/3",
        "/tile/entries/000.p/3",
        "/tile/1/000.p/1",
        "/tile/0/x000/000.p/1",
        "/tile/nonsense",
    ] {
        assert_eq!(fixture.get_as(&auditor, path).await?.status, 404, "{path}");
    }
    let narrowed = Claims { tenant: Some("acme".to_owned()), ..auditor };
    assert_eq!(fixture.get_as(&narrowed, "/tile/0/000.p/2").await?.status, 403);
    fixture.end().await
}

#[tokio::test]
async fn a_tenant_proves_its_leaf_and_sees_no_other_l_2_l_3() -> Result<()> {
    let fixture = Fixture::new().await?;
    let file = fixture.get_as(&tenant("acme"), "/v1/audit/proof?index=0").await?;
    assert_eq!(file.status, 200, "{}", file.text());
    let proof = ProofFile::parse(&file.text())?;
    let (bytes, openings) = proof.extra.as_deref().and_then(read_extra).context("an extra")?;
    proof.verify(&bytes, log().verifier(), &Policy::of_log(log().verifier().clone()))?;
    let mut opening = openings.into_iter().next().context("a salt")?;
    let leaf = Leaf::parse(&bytes).context("a leaf")?;
    opening.value = Some("acme".into());
    assert!(opening.opens(leaf.content()));
    opening.value = Some("umbra".into());
    assert!(!opening.opens(leaf.content()));
    for path in
        ["/v1/audit/proof?index=1", "/v1/audit/records/1", "/v1/audit/proof?index=9", "/v1/audit/records/9"]
    {
        let other = fixture.get_as(&tenant("acme"), path).await?;
        assert_eq!(other.status, 404, "{path}");
    }
    let record = fixture.get_as(&claims(Role::Auditor), "/v1/audit/records/1").await?.json();
    assert_eq!(record["openings"].as_array().map(Vec::len), Some(1), "an auditor opens all");
    let early = fixture.get_as(&tenant("acme"), "/v1/audit/proof?index=2").await?;
    assert!(early.status == 404 && early.text().contains("covers"), "{}", early.text());
    for bad in ["/v1/audit/proof", "/v1/audit/proof?index=x", "/v1/audit/records/-1"] {
        assert_eq!(fixture.get_as(&claims(Role::Admin), bad).await?.status, 400, "{bad}");
    }
    fixture.end().await
}
