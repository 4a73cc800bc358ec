//! Events kept aside, with their reason; the same one is kept once. What becomes of one is decided by a person, or by the clock where its time
//! comes, and is on record.

mod correct;
mod decisions;
mod difference;
mod explain;
mod kept;
mod remedy;

pub use correct::{CorrectionError, correct};
pub use decisions::{Decider, discard, retry};
pub use difference::{Difference, differences};
pub use explain::{Explanation, explain};
pub(crate) use kept::kept_record;

use crate::batch::Tally;
use crate::decide::{Parking, SKEW_BOUND_US};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use gpuledger_domain::time::Instant;
use gpuledger_storage::parked::{self, Choice, NewParked, ParkedRow};
use gpuledger_storage::{Db, Tx};
use gpuledger_trail::sealed::{Record, seal};
use sha2::{Digest, Sha256};

/// Parks events; returns how many were not parked before.
pub(crate) async fn park(
    tx: &mut Tx,
    events: &[(&Incoming, Parking)],
    now: Instant,
) -> Result<u64, LedgerError> {
    let mut rows: Vec<NewParked> =
        events.iter().map(|(incoming, parking)| row(incoming, parking, now)).collect();
    let as_it_came = |row: &mut NewParked| {
        let bytes = std::mem::take(&mut row.body);
        let digest = Sha256::digest(&bytes).into();
        Record::new(bytes, digest)
    };
    let mut records: Vec<Record> = rows.iter_mut().map(as_it_came).collect();
    seal(tx, &mut records.iter_mut().collect::<Vec<_>>(), now).await?;
    for (row, record) in rows.iter_mut().zip(records) {
        row.digest = record.is_sealed.then_some(record.digest);
        row.body = record.bytes;
    }
    Ok(parked::insert(tx, &rows).await?)
}

fn row(incoming: &Incoming, parking: &Parking, now: Instant) -> NewParked {
    let (source, id, at) = match &incoming.event {
        Ok(event) => {
            (Some(event.source.clone()), Some(event.id.clone()), Some(event.time.max(event.fact_time())))
        }
        Err(error) => (error.about.source.clone(), error.about.id.clone(), error.about.time),
    };
    let storable = |name: Option<String>| name.filter(|n| gpuledger_storage::facts::is_storable_name(n));
    NewParked {
        reason: parking.reason.to_owned(),
        detail: parking.detail.clone(),
        source: storable(source),
        id: storable(id),
        subject: parking.subject.clone(),
        at_us: at.map(Instant::as_micros),
        received_at_us: now.as_micros(),
        origin: incoming.origin.clone(),
        body: incoming.kept(),
        digest: None,
        retry_of: incoming.retry_of,
    }
}

/// Takes parked events of the future in again whose time has come.
pub(crate) async fn retry_due(db: &Db, now: Instant) -> Result<Tally, LedgerError> {
    let waiting = Choice { reason: Some("future".to_owned()), ..Choice::default() };
    let mut tx = db.begin().await?;
    let due: Vec<ParkedRow> =
        parked::open(&mut tx, &waiting).await?.into_iter().filter(|row| is_due(row, now)).collect();
    let decider = Decider { principal: "ledger", reason: "its time has come", now };
    let (_, tally) = decisions::take_again(&mut tx, due, &decider).await?;
    tx.commit().await?;
    Ok(tally)
}

/// Number of parked events without a decision.
///
/// # Errors
/// The database.
pub async fn count_open(db: &Db) -> Result<i64, LedgerError> {
    let mut tx = db.snapshot().await?;
    Ok(parked::count_open(&mut tx).await?.iter().map(|(_, count)| count).sum())
}

fn is_due(row: &ParkedRow, now: Instant) -> bool {
    row.reason == "future" && row.at_us.is_some_and(|at| Instant::from_micros(at) <= now.plus(SKEW_BOUND_US))
}
