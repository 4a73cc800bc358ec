//! The audit log: verify, prove, checkpoint, export, erase, keys, and a signer of its own.

mod bundle;
mod folder;
pub(crate) mod keys;
mod review;

use super::writer;
use crate::cli::{Audit, AuditKey};
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::progress::Progress;
use crate::settings::Settings;
use anyhow::Result;
use folder::Asked;
use gpuledger_audit::AuditError;
use gpuledger_audit::erase::{Erasure, erase};
use gpuledger_audit::export::{Wanted, export};
use gpuledger_audit::socket::listen;
use gpuledger_storage::{Db, audit_log, subject_keys};
use gpuledger_telemetry::terminal::{say, say_err};
use gpuledger_tlog::note::Verifier;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::{Opening, extra, openings};
use gpuledger_trail::private::Subject;
use gpuledger_trail::sealed::{Gone, open};
use gpuledger_trail::stored::{StoredError, proof, published};
use std::ops::Range;
use std::path::Path;

/// Runs a command about the log.
pub(crate) async fn run(settings: &Settings, what: Audit) -> Result<Outcome> {
    match what {
        Audit::Verify { folder: Some(folder), key, policy, last, from, to, hashes_only, .. } => {
            folder::verify(&Asked { folder, key, policy, last, leaves: range(from, to), hashes_only })
        }
        Audit::Verify { bundle: Some(file), key, .. } => bundle::verify(&file, key.as_deref()),
        Audit::Verify { .. } => Err(Usage("name a folder, or a proof file by --bundle".to_owned()).into()),
        Audit::Prove { index, event } => prove(settings, index, event).await,
        Audit::Checkpoint => checkpoint(settings).await,
        Audit::Export { folder, from, to, openings } => {
            write_folder(settings, &folder, range(from, to), openings).await
        }
        Audit::Erase { subject, basis } => erase_subject(settings, &subject, &basis).await,
        Audit::Key { what: AuditKey::New { origin } } => keys::new(settings, &origin),
        Audit::Key { what: AuditKey::Kek } => keys::new_kek(settings),
        Audit::Key { what: AuditKey::Show } => {
            say(&keys::verifier(settings)?.to_string());
            Ok(Outcome::Done)
        }
        Audit::Signer { socket } => {
            listen(&keys::file_signer(settings)?, &socket)?;
            Ok(Outcome::Done)
        }
    }
}

/// Leaves from and to, where one of them is given.
fn range(from: Option<u64>, to: Option<u64>) -> Option<Range<u64>> {
    (from.is_some() || to.is_some()).then(|| from.unwrap_or(0)..to.unwrap_or(u64::MAX))
}

async fn checkpoint(settings: &Settings) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let Some(head) = published(&mut tx).await? else { return Ok(no("no checkpoint is published")) };
    say(head.note.trim_end_matches('\n'));
    Ok(Outcome::Done)
}

/// Prints the proof file of a leaf, with the leaf and its openings in it.
async fn prove(settings: &Settings, index: Option<u64>, event: Option<Vec<String>>) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let index = match (index, event.as_deref()) {
        (Some(index), _) => index,
        (None, Some([source, id])) => match audit_log::index_of_event(&mut tx, source, id).await? {
            Some(index) => u64::try_from(index)?,
            None => return Ok(no("no leaf is of this event")),
        },
        (None, _) => {
            return Err(Usage("name a leaf by its index, or an event by --event SOURCE ID".to_owned()).into());
        }
    };
    let Some(row) = audit_log::leaf(&mut tx, i64::try_from(index)?).await? else {
        return Ok(no(&format!("there is no leaf {index}")));
    };
    let shown = openings_of(settings, &mut tx, &row).await?;
    match proof(&mut tx, index, Some(extra(&row.leaf, &shown))).await? {
        Some(file) => {
            say(file.text().trim_end_matches('\n'));
            Ok(Outcome::Done)
        }
        None => Ok(no(&format!("no published checkpoint covers leaf {index} yet"))),
    }
}

async fn openings_of(
    settings: &Settings,
    tx: &mut gpuledger_storage::Tx,
    row: &audit_log::LeafRow,
) -> Result<Vec<Opening>> {
    let Some(leaf) = Leaf::parse(&row.leaf) else { return Ok(Vec::new()) };
    let subjects = subject_keys::by_numbers(tx, &row.subjects).await?;
    let mut records = match row.pending_seq {
        Some(seq) => audit_log::bodies(tx, &[seq]).await?,
        None => Default::default(),
    };
    let seal = keys::seal(settings)?;
    open(tx, &seal, records.values_mut().map(|(_, body)| body).collect(), Gone::Kept).await?;
    let record = records.values().next().map(|(kind, body)| (kind.as_str(), body.as_slice()));
    Ok(openings(&leaf, &row.subjects, &subjects, &seal, record)?)
}

async fn write_folder(
    settings: &Settings,
    folder: &Path,
    leaves: Option<Range<u64>>,
    openings: bool,
) -> Result<Outcome> {
    let db: Db = writer(settings).await?;
    let witnesses: Result<Vec<Verifier>, _> =
        settings.audit_witnesses.iter().map(|witness| Verifier::parse(&witness.key)).collect();
    let wanted = Wanted {
        folder: folder.to_path_buf(),
        log: Some(keys::verifier(settings)?),
        witnesses: witnesses.map_err(|error| Usage(format!("audit_witnesses: {error}")))?,
        leaves,
        openings: openings.then(|| keys::seal(settings)).transpose()?,
    };
    let mut progress = Progress::new("leaves");
    let done = export(&db, &wanted, |leaves| progress.set(leaves)).await;
    progress.done();
    match done {
        Ok(size) => {
            say(&format!("{size} leaves in {}", folder.display()));
            Ok(Outcome::Done)
        }
        Err(AuditError::Stored(StoredError::Missing(what))) => Ok(no(&format!("the log lacks {what}"))),
        Err(error) => Err(error.into()),
    }
}

async fn erase_subject(settings: &Settings, subject: &str, basis: &str) -> Result<Outcome> {
    let subject = Subject::parse(subject).ok_or_else(|| {
        Usage(format!("--subject is KIND:NAME, where KIND is one of {}", Subject::KINDS.join(", ")))
    })?;
    let erasure = Erasure {
        subject: &subject,
        basis,
        principal: "cli",
        retention_days: settings.audit_retention_days,
        now: now()?,
    };
    match erase(&writer(settings).await?, keys::seal(settings)?, &erasure).await {
        Ok(number) => {
            say(&format!(
                "the key of subject {number} is destroyed: its commitments and sealed values stay, and nobody can open them"
            ));
            Ok(Outcome::Done)
        }
        Err(error @ AuditError::NotErased(_)) => Ok(no(&error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// The answer is no, and why.
fn no(why: &str) -> Outcome {
    say_err(&format!("gpuledger: {why}"));
    Outcome::No
}
