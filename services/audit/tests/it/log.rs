//! Leaves, proofs, exports, erasure.

use anyhow::{Context, Result};
use gpuledger_audit::AuditError;
use gpuledger_audit::erase::{Erasure, erase};
use gpuledger_audit::export::{Wanted, export};
use gpuledger_audit::key::{generate, write_new};
use gpuledger_audit::publish::Publisher;
use gpuledger_audit::sequencer::{Round, Sequencer};
use gpuledger_audit::signer::FileSigner;
use gpuledger_audit::socket::Signing;
use gpuledger_domain::time::Instant;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::{Db, Role, audit_log, connect, migrate, subject_keys};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::note::Verifier;
use gpuledger_tlog::policy::Policy;
use gpuledger_trail::keys::{Seal, Secret};
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::openings;
use gpuledger_trail::private::Subject;
use gpuledger_trail::review::Review;
use gpuledger_trail::stored;
use std::process::Command;
use tempfile::TempDir;

pub(crate) const NOW: Instant = Instant::from_micros(1_790_812_800_000_000);
pub(crate) const GRANT: &str = "gpuledger.allocation.granted.v1";

/// A database with a log of its own.
pub(crate) struct Fixture {
    pub(crate) url: String,
    pub(crate) db: Db,
    pub(crate) files: TempDir,
    pub(crate) signer: FileSigner,
    pub(crate) seal: Seal,
}

impl Fixture {
    pub(crate) async fn new() -> Result<Self> {
        let url = script("fresh-db", None)?;
        let owner = connect(&url, Role::Owner).await?;
        migrate(&owner).await?;
        owner.close().await;
        let files = tempfile::tempdir()?;
        let head = files.path().join("head");
        let (key, text) = generate("log.example/audit")?;
        write_new(&files.path().join("key"), &text)?;
        let signer = FileSigner::new(key, &head);
        signer.begin(&head)?;
        let seal = Seal::new(Some(Secret::random()?));
        Ok(Self { db: connect(&url, Role::Writer).await?, url, files, signer, seal })
    }

    pub(crate) fn sequencer(&self) -> Sequencer {
        Sequencer::new(self.db.clone(), self.seal.clone())
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(self.db.clone(), Signing::File(self.signer.clone()))
    }

    pub(crate) fn key(&self) -> Verifier {
        self.signer.verifier().clone()
    }

    /// Records grants of tenants in turn.
    pub(crate) async fn record(&self, count: usize) -> Result<()> {
        let mut tx = self.db.begin().await?;
        append(&mut tx, &(0..count).map(grant).collect::<Vec<_>>()).await?;
        Ok(tx.commit().await?)
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.db.close().await;
        script("drop-db", Some(&self.url)).map(drop)
    }
}

pub(crate) fn grant(number: usize) -> PendingRecord {
    let tenant = ["acme", "umbra", "zeta"][number % 3];
    let body = format!(
        r#"{{"data":{{"allocation":"a-{number}","tenant":"{tenant}","units":[{{"gpu":"GPU-{}"}}]}},"id":"g-{number}","type":"{GRANT}"}}"#,
        number % 5
    );
    PendingRecord {
        fact_seq: None,
        kind: GRANT.to_owned(),
        body: body.into_bytes(),
        recorded_at_us: NOW.as_micros(),
    }
}

fn script(word: &str, url: Option<&str>) -> Result<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh");
    let mut command = Command::new(path);
    command.arg(word);
    if let Some(url) = url {
        command.env("DATABASE_URL", url);
    }
    let output = command.output().context("postgres.sh")?;
    anyhow::ensure!(
        output.status.success(),
        "postgres.sh {word}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().last().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn every_leaf_is_proven_by_the_published_checkpoint_l_2_l_4() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (mut sequencer, mut publisher) = (fixture.sequencer(), fixture.publisher());
    fixture.record(300).await?;
    assert_eq!(sequencer.drain(NOW).await?, Round::Appended(300));
    assert_eq!(publisher.publish(NOW).await?, 300);
    fixture.record(333).await?;
    assert_eq!(sequencer.drain(NOW).await?, Round::Appended(333));
    assert_eq!(sequencer.beat(NOW).await?, Round::Appended(1));
    assert_eq!(publisher.publish(NOW).await?, 634);
    assert_eq!(publisher.publish(NOW).await?, 634, "nothing new, nothing signed");
    let mut tx = fixture.db.snapshot().await?;
    assert_eq!(audit_log::count_waiting(&mut tx).await?, 0);
    let leaves = audit_log::leaf_bytes(&mut tx, 0, 1_000).await?;
    assert_eq!(leaves.len(), 634);
    let mut review = Review::default();
    for (index, leaf) in (0..).zip(&leaves) {
        review.take(index, leaf).with_context(|| format!("leaf {index}"))?;
        assert!(!String::from_utf8_lossy(leaf).contains("acme"));
    }
    let policy = Policy::of_log(fixture.key());
    for index in [0, 1, 255, 256, 299, 300, 511, 512, 632, 633] {
        let file = stored::proof(&mut tx, index, None).await?.context("a proof")?;
        let leaf = &leaves[usize::try_from(index)?];
        assert_eq!(file.verify(leaf, &fixture.key(), &policy)?.size, 634, "leaf {index}");
        assert!(file.verify(b"another", &fixture.key(), &policy).is_err());
    }
    assert!(stored::proof(&mut tx, 634, None).await?.is_none());
    let (old, new) = (stored::root(&mut tx, 300).await?, stored::root(&mut tx, 634).await?);
    let proof = stored::consistency(&mut tx, 300, 634).await?;
    gpuledger_tlog::proof::verify_consistency(300, old, 634, new, &proof)?;
    drop(tx);
    fixture.end().await
}

#[tokio::test]
async fn a_record_that_becomes_visible_late_is_not_lost_l_4() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut sequencer = fixture.sequencer();
    let mut late = fixture.db.begin().await?;
    append(&mut late, &[grant(0)]).await?;
    let mut early = fixture.db.begin().await?;
    append(&mut early, &[grant(1)]).await?;
    early.commit().await?;
    assert_eq!(sequencer.drain(NOW).await?, Round::Appended(1));
    late.commit().await?;
    assert_eq!(
        sequencer.drain(NOW).await?,
        Round::Appended(1),
        "its number is smaller than one that was taken"
    );
    let mut undone = fixture.db.begin().await?;
    append(&mut undone, &[grant(2)]).await?;
    undone.rollback().await?;
    fixture.record(1).await?;
    assert_eq!(sequencer.drain(NOW).await?, Round::Appended(1));
    let mut tx = fixture.db.snapshot().await?;
    let rows = audit_log::leaves(&mut tx, 0, 10).await?;
    assert_eq!(rows.iter().map(|row| row.leaf_index).collect::<Vec<_>>(), [0, 1, 2]);
    let seqs: Vec<_> = rows.iter().filter_map(|row| row.pending_seq).collect();
    assert!(seqs[1] < seqs[0] && seqs[2] > seqs[0], "{seqs:?}");
    drop(tx);
    fixture.end().await
}

#[tokio::test]
async fn two_sequencers_never_give_a_record_two_leaves_l_4() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (mut one, mut other) = (fixture.sequencer(), fixture.sequencer());
    for round in 0..6 {
        fixture.record(50).await?;
        let (a, b) = tokio::join!(one.drain(NOW), other.drain(NOW));
        let count = |round: Round| if let Round::Appended(count) = round { count } else { 0 };
        let done = count(a?) + count(b?);
        let rest = count(one.drain(NOW).await?);
        assert_eq!(done + rest, 50, "round {round}");
    }
    let mut tx = fixture.db.snapshot().await?;
    let rows = audit_log::leaves(&mut tx, 0, 1_000).await?;
    let seqs: std::collections::BTreeSet<_> = rows.iter().filter_map(|row| row.pending_seq).collect();
    assert_eq!((rows.len(), seqs.len()), (300, 300));
    drop(tx);
    assert_eq!(fixture.publisher().publish(NOW).await?, 300);
    fixture.end().await
}

#[tokio::test]
async fn erasure_destroys_the_key_is_a_leaf_and_leaves_proofs_valid_l_3() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut sequencer = fixture.sequencer();
    fixture.record(3).await?;
    sequencer.drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    let subject = Subject::tenant("acme");
    let after = |days: i64| NOW.plus(days * 24 * 3_600_000_000);
    let erasure = |retention_days, now| Erasure {
        subject: &subject,
        basis: "GDPR Art. 17",
        principal: "cli",
        retention_days,
        now,
    };
    for (days, now) in [(None, after(5)), (Some(30), after(5)), (Some(30), NOW)] {
        let refused = erase(&fixture.db, fixture.seal.clone(), &erasure(days, now)).await;
        assert!(matches!(refused, Err(AuditError::NotErased(_))), "{days:?}");
    }
    let shown = |row: audit_log::LeafRow| {
        let (db, seal) = (fixture.db.clone(), fixture.seal.clone());
        async move {
            let mut tx = db.snapshot().await?;
            let subjects = subject_keys::by_numbers(&mut tx, &row.subjects).await?;
            let leaf = Leaf::parse(&row.leaf).context("a leaf")?;
            anyhow::Ok(openings(&leaf, &row.subjects, &subjects, &seal, Some((GRANT, &grant(0).body)))?)
        }
    };
    let first = audit_log::leaf(&mut *fixture.db.snapshot().await?, 0).await?.context("leaf 0")?;
    let opened = shown(first.clone()).await?;
    assert!(opened.len() == 1 && opened[0].opens(Leaf::parse(&first.leaf).context("a leaf")?.content()));
    erase(&fixture.db, fixture.seal.clone(), &erasure(Some(30), after(31))).await?;
    assert!(shown(first.clone()).await?.is_empty(), "nothing opens it any more");
    let again = erase(&fixture.db, fixture.seal.clone(), &erasure(Some(30), after(31))).await;
    assert!(matches!(again, Err(AuditError::NotErased(_))));
    // The same sequencer, which had the key in memory, and a new record of the same tenant: another key.
    fixture.record(1).await?;
    assert_eq!(sequencer.drain(after(31)).await?, Round::Appended(2));
    fixture.publisher().publish(after(31)).await?;
    let mut tx = fixture.db.snapshot().await?;
    let rows = audit_log::leaves(&mut tx, 3, 5).await?;
    let kinds: Vec<_> = rows.iter().filter_map(|row| Leaf::parse(&row.leaf)).map(|leaf| leaf.kind).collect();
    assert_eq!(kinds, ["subject.erased", GRANT]);
    assert_ne!(rows[1].subjects, first.subjects);
    let file = stored::proof(&mut tx, 0, None).await?.context("a proof")?;
    file.verify(&first.leaf, &fixture.key(), &Policy::of_log(fixture.key()))?;
    drop(tx);
    fixture.end().await
}

#[tokio::test]
async fn an_export_has_all_tiles_and_its_openings_open_l_2() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture.record(700).await?;
    fixture.sequencer().drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    let folder = fixture.files.path().join("export");
    let wanted = Wanted {
        folder: folder.clone(),
        log: Some(fixture.key()),
        witnesses: Vec::new(),
        leaves: None,
        openings: Some(fixture.seal.clone()),
    };
    assert_eq!(export(&fixture.db, &wanted, |_| ()).await?, 700);
    for file in [
        "checkpoint",
        "policy",
        "tile/0/000",
        "tile/0/001",
        "tile/0/002.p/188",
        "tile/1/000.p/2",
        "tile/entries/002.p/188",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let note = std::fs::read(folder.join("checkpoint"))?;
    assert_eq!(Checkpoint::open(&note, &fixture.key(), &[])?.0.size, 700);
    let salts = std::fs::read_to_string(folder.join("salts.ndjson"))?;
    assert_eq!(salts.lines().count(), 700);
    assert!(export(&fixture.db, &wanted, |_| ()).await.is_err(), "the folder is not empty any more");
    fixture.end().await
}
