//! Erasure (L-3): a subject's key is destroyed, and the record of it becomes a leaf. Every proof stays valid; what nobody can do any more is open the subject's
//! commitments, and what is sealed under its key in facts, parked events and pending records.

use crate::error::AuditError;
use gpuledger_domain::time::Instant;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::{Db, Tx, audit_log, subject_keys};
use gpuledger_trail::keys::Seal;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::private::Subject;
use gpuledger_trail::sealed;
use gpuledger_trail::subjects::Subjects;
use gpuledger_wire::canonical_json;
use serde_json::json;

/// Kind of the record of an erasure.
pub const ERASED: &str = "subject.erased";
const DAY_US: i64 = 24 * 3_600 * 1_000_000;

/// What is to be erased, and under which rule.
#[derive(Clone, Debug)]
pub struct Erasure<'a> {
    /// Whom.
    pub subject: &'a Subject,
    /// On which legal basis; it is on record.
    pub basis: &'a str,
    /// Who does it.
    pub principal: &'a str,
    /// How long records are kept by law after they were made, in days; none: nobody said, and nothing is erased.
    pub retention_days: Option<u32>,
    /// The clock.
    pub now: Instant,
}

/// Destroys a subject's key; its number, by which the leaf of the erasure names it.
///
/// # Errors
/// Nobody said how long records are kept, a record of the subject is younger than that or has no leaf yet, there is no such subject, or the database.
pub async fn erase(db: &Db, seal: Seal, erasure: &Erasure<'_>) -> Result<i64, AuditError> {
    let refused = |why: String| Err(AuditError::NotErased(why));
    let Some(days) = erasure.retention_days else {
        return refused("set `audit_retention_days`: how long the law wants records kept".to_owned());
    };
    if erasure.basis.trim().is_empty() {
        return refused("--basis is empty: say under which rule, it is on record".to_owned());
    }
    let mut tx = db.begin().await?;
    match erase_in(&mut tx, seal, erasure, days).await {
        Ok(no) => {
            tx.commit().await?;
            Ok(no)
        }
        Err(error) => {
            // Not left to whoever uses the connection next: until then the lock would keep the sequencer from the log.
            tx.rollback().await?;
            Err(error)
        }
    }
}

async fn erase_in(tx: &mut Tx, seal: Seal, erasure: &Erasure<'_>, days: u32) -> Result<i64, AuditError> {
    let refused = |why: String| Err(AuditError::NotErased(why));
    // No sequencer composes a leaf with this key meanwhile, or afterwards from memory.
    audit_log::lock(tx).await?;
    // Nor does anybody seal with it: what was sealed before is visible now, and waits for its leaf.
    subject_keys::hold_alone(tx).await?;
    let subjects = Subjects::load(tx, seal).await?;
    let digest = subjects.digest(erasure.subject);
    let Some(row) = subject_keys::by_digests(tx, &[digest]).await?.into_iter().next() else {
        return refused("nothing names this subject, or it was erased before".to_owned());
    };
    if audit_log::is_waiting(tx, &sealed::mark(row.no)).await? {
        // Its leaf commits to what it says, which nobody could read any more.
        return refused("a record of it has no leaf yet: try again when `serve` has given it one".to_owned());
    }
    let last = subject_keys::last_leaf_of(tx, row.no).await?;
    let last = last.and_then(|bytes| Leaf::parse(&bytes)?.recorded_at());
    let kept_until = last.map(|at| at.as_micros().saturating_add(i64::from(days).saturating_mul(DAY_US)));
    if let Some(until) = kept_until.filter(|until| *until > erasure.now.as_micros()) {
        return refused(format!("a record of it is kept until {}", Instant::from_micros(until)));
    }
    subject_keys::destroy(tx, &digest, erasure.now.as_micros()).await?;
    let body = json!({
        "basis": erasure.basis,
        "principal": erasure.principal,
        "subject": row.no.to_string(),
        "subject_kind": row.kind,
    });
    let record = PendingRecord {
        fact_seq: None,
        kind: ERASED.to_owned(),
        body: canonical_json(&body),
        recorded_at_us: erasure.now.as_micros(),
    };
    append(tx, &[record]).await?;
    Ok(row.no)
}
