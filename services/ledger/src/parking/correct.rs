//! A corrected event in place of a parked one.

use super::decisions::{Decider, record};
use crate::batch::{Tally, apply};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use gpuledger_storage::Db;
use gpuledger_storage::parked::{self, Choice, Decision, ParkedRow};
use gpuledger_trail::sealed::{Record, seal};
use gpuledger_wire::{Event, EventError, decode_structured};

/// Why a correction was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CorrectionError {
    /// No such parked event is open.
    #[error("no parked event {0} is open")]
    NotOpen(i64),
    /// The correction is no event.
    #[error("the correction cannot be read: {}", .0.fault)]
    Unreadable(Box<EventError>),
    /// The correction is of another event.
    #[error("{0}")]
    Identity(String),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Takes another event in for a parked one: a recorded decision, and an acceptance like any other. What is wrong with the correction is parked
/// anew, as with a retry.
///
/// # Errors
/// As [`CorrectionError`] says; nothing is decided then.
pub async fn correct(
    db: &Db,
    number: i64,
    with: Vec<u8>,
    decider: &Decider<'_>,
) -> Result<Tally, CorrectionError> {
    let event = decode_structured(&with).map_err(|error| CorrectionError::Unreadable(Box::new(error)))?;
    let mut tx = db.begin().await.map_err(LedgerError::from)?;
    let choice = Choice { number: Some(number), ..Choice::default() };
    let rows = parked::open(&mut tx, &choice).await.map_err(LedgerError::from)?;
    let row = rows.first().ok_or(CorrectionError::NotOpen(number))?;
    check(row, &event).map_err(CorrectionError::Identity)?;
    let mut sealed = Record::new(with.clone(), [0; 32]);
    seal(&mut tx, &mut [&mut sealed], decider.now).await.map_err(LedgerError::from)?;
    record(&mut tx, &rows, Decision::Corrected, decider, Some(&sealed.bytes)).await?;
    let incoming =
        Incoming { retry_of: Some(number), ..Incoming::trusted(with, format!("correction of {number}")) };
    let tally = apply(&mut tx, &[incoming], decider.now).await?.tally;
    tx.commit().await.map_err(LedgerError::from)?;
    Ok(tally)
}

/// A correction says better what the same source said. Under the identity of a conflict something else stands already (I-1): only another id helps.
fn check(row: &ParkedRow, event: &Event) -> Result<(), String> {
    if let Some(source) = row.source.as_deref().filter(|source| *source != event.source) {
        return Err(format!(
            "the correction is of source {}, expected {source}: only its own words are corrected",
            event.source
        ));
    }
    match &row.id {
        Some(id) if row.reason == "conflict" && *id == event.id => Err(format!(
            "another content stands under {} {id} and stays there: give the correction an id of its own, or discard number {}",
            event.source, row.seq
        )),
        Some(id) if row.reason != "conflict" && *id != event.id => {
            Err(format!("the correction has the id {}, expected {id}: it is the same event", event.id))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(reason: &str, source: Option<&str>, id: Option<&str>) -> ParkedRow {
        ParkedRow {
            seq: 7,
            reason: reason.to_owned(),
            detail: String::new(),
            source: source.map(str::to_owned),
            id: id.map(str::to_owned),
            subject: String::new(),
            at_us: None,
            received_at_us: 0,
            origin: String::new(),
            body: Vec::new(),
            retry_of: None,
        }
    }

    fn event(source: &str, id: &str) -> Event {
        let text = format!(
            r#"{{"specversion":"1.0","id":"{id}","source":"{source}","type":"gpuledger.allocation.released.v1","time":"2026-10-01T00:00:00Z","data":{{"allocation":"a"}}}}"#
        );
        decode_structured(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_correction_keeps_its_source_and_its_id() {
        let row = parked("bad_value", Some("/a"), Some("x"));
        assert_eq!(check(&row, &event("/a", "x")), Ok(()));
        assert!(check(&row, &event("/b", "x")).unwrap_err().contains("expected /a"));
        assert!(check(&row, &event("/a", "y")).unwrap_err().contains("expected x"));
        assert_eq!(
            check(&parked("bad_value", None, None), &event("/b", "y")),
            Ok(()),
            "nothing could be read"
        );
    }

    #[test]
    fn a_conflict_is_corrected_under_another_id_only_i_1() {
        let row = parked("conflict", Some("/a"), Some("x"));
        assert!(check(&row, &event("/a", "x")).unwrap_err().contains("give the correction an id of its own"));
        assert_eq!(check(&row, &event("/a", "x-2")), Ok(()));
    }
}
