//! Decisions about parked events: one each, with its reason and an audit record in the same transaction (I-3, I-6, L-1).

use crate::batch::{Tally, apply};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use gpuledger_domain::time::Instant;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::parked::{self, Choice, Decision, ParkedRow};
use gpuledger_storage::{Db, Tx, retry as repeat};
use gpuledger_trail::sealed::{Gone, is_sealed, open, terms};
use gpuledger_wire::canonical_json;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Parked events decided in one transaction: a transaction holds the locks of all their subjects.
const DECIDED_AT_ONCE: usize = 500;

/// Who decides, why and when.
#[derive(Clone, Copy, Debug)]
pub struct Decider<'a> {
    /// Who: `cli`, or `ledger` where the clock decides.
    pub principal: &'a str,
    /// Why.
    pub reason: &'a str,
    /// When.
    pub now: Instant,
}

/// Takes parked events in again. Each retry is a recorded decision; what is still wrong is parked anew. One in which somebody was erased says no more what it said: it stays
/// open, to be corrected or discarded. Returns how many were taken in again, and what became of them.
///
/// # Errors
/// The database; a decision that somebody else took at the same moment.
pub async fn retry(db: &Db, choice: &Choice, decider: &Decider<'_>) -> Result<(usize, Tally), LedgerError> {
    let (mut retried, mut total) = (0, Tally::default());
    for numbers in numbers(db, choice).await?.chunks(DECIDED_AT_ONCE) {
        let (count, tally) = repeat::retry(async || {
            let mut tx = db.begin().await?;
            let rows = parked::open_among(&mut tx, numbers).await?;
            let taken = take_again(&mut tx, rows, decider).await?;
            tx.commit().await?;
            Ok::<_, LedgerError>(taken)
        })
        .await?;
        retried += count;
        total += tally;
    }
    Ok((retried, total))
}

/// Gives parked events up for good; returns how many.
///
/// # Errors
/// The database; a decision that somebody else took at the same moment.
pub async fn discard(db: &Db, choice: &Choice, decider: &Decider<'_>) -> Result<usize, LedgerError> {
    let mut discarded = 0;
    for numbers in numbers(db, choice).await?.chunks(DECIDED_AT_ONCE) {
        let mut tx = db.begin().await?;
        let rows = parked::open_among(&mut tx, numbers).await?;
        record(&mut tx, &rows, Decision::Discarded, decider, None).await?;
        tx.commit().await?;
        discarded += rows.len();
    }
    Ok(discarded)
}

async fn numbers(db: &Db, choice: &Choice) -> Result<Vec<i64>, LedgerError> {
    Ok(parked::numbers(&mut *db.snapshot().await?, choice).await?)
}

/// Offers rows again, in the caller's transaction; how many.
pub(super) async fn take_again(
    tx: &mut Tx,
    rows: Vec<ParkedRow>,
    decider: &Decider<'_>,
) -> Result<(usize, Tally), LedgerError> {
    let mut opened: Vec<Vec<u8>> = rows.iter().map(|row| row.body.clone()).collect();
    let terms = terms(tx);
    open(tx, &terms.seal, opened.iter_mut().collect(), Gone::Kept).await?;
    let (mut whole, mut incoming) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (row, raw) in rows.into_iter().zip(opened) {
        if is_sealed(&raw) {
            tracing::warn!(number = row.seq, "somebody in a parked event was erased: it is not retried");
            continue;
        }
        let again = Incoming::trusted(raw, row.origin.clone());
        incoming.push(Incoming { retry_of: Some(row.seq), ..again });
        whole.push(row);
    }
    if whole.is_empty() {
        return Ok((0, Tally::default()));
    }
    record(tx, &whole, Decision::Retried, decider, None).await?;
    Ok((whole.len(), apply(tx, &incoming, decider.now).await?.tally))
}

/// Records one decision about each row, and its audit record. `with` is the event that is taken in instead, personal fields sealed.
pub(super) async fn record(
    tx: &mut Tx,
    rows: &[ParkedRow],
    decision: Decision,
    decider: &Decider<'_>,
    with: Option<&[u8]>,
) -> Result<(), LedgerError> {
    let at = decider.now.as_micros();
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        parked::decide(tx, row.seq, decision, decider.reason, at, decider.principal).await?;
        records.push(PendingRecord {
            fact_seq: None,
            kind: "parked.decided".to_owned(),
            body: audit_body(row, decision, decider, with),
            recorded_at_us: at,
        });
    }
    append(tx, &records).await?;
    Ok(())
}

/// Canonical bytes. The event itself is named by the digest of what is stored: it may be anything, and names of persons could be tried on a digest of what came.
fn audit_body(row: &ParkedRow, decision: Decision, decider: &Decider<'_>, with: Option<&[u8]>) -> Vec<u8> {
    canonical_json(&json!({
        "number": row.seq.to_string(),
        "parked_for": row.reason,
        "source": row.source,
        "id": row.id,
        "origin": row.origin,
        "event_sha256": sha256(&row.body),
        "decision": decision.as_str(),
        "reason": decider.reason,
        "principal": decider.principal,
        "decided_at": decider.now.to_string(),
        "corrected_sha256": with.map(sha256),
    }))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
