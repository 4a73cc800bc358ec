//! A parked event explained: what was wrong, what it says, what stands instead, what would make it right.

use super::difference::{Difference, differences};
use super::remedy::remedies;
use crate::error::LedgerError;
use gpuledger_storage::Db;
use gpuledger_storage::parked::{self, DecisionRow, ParkedRow, Standing};
use gpuledger_trail::sealed::{Gone, keyed, open, terms};
use gpuledger_wire::{Event, decode_structured};
use serde_json::Value;

/// Everything there is to know about one parked event.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// As it was parked.
    pub row: ParkedRow,
    /// As it reads, where it is JSON.
    pub event: Option<Value>,
    /// The fact that stands under its identity, and what that says.
    pub stands: Option<(Standing, Value)>,
    /// In what the two differ, identity apart; none where they cannot be compared.
    pub differences: Option<Vec<Difference>>,
    /// What was decided, where it was.
    pub decision: Option<DecisionRow>,
    /// Its vain retries.
    pub retries: Vec<i64>,
    /// What can be done, where it is open.
    pub remedies: Vec<String>,
}

/// Explains the parked event with this number, sealed values opened or [`gpuledger_trail::sealed::ERASED`]; none: there is none.
///
/// # Errors
/// The database.
pub async fn explain(db: &Db, number: i64) -> Result<Option<Explanation>, LedgerError> {
    let mut tx = db.snapshot().await?;
    let Some(mut row) = parked::find(&mut tx, number).await? else { return Ok(None) };
    let mut stands = match (&row.source, &row.id) {
        (Some(source), Some(id)) => parked::standing(&mut tx, source, id).await?,
        _ => None,
    };
    let decision = parked::decision(&mut tx, number).await?;
    let retries = parked::retries(&mut tx, number).await?;
    let bodies = [Some(&mut row.body), stands.as_mut().map(|fact| &mut fact.body)];
    let terms = terms(&tx);
    open(&mut tx, &terms.seal, bodies.into_iter().flatten().collect(), Gone::Said).await?;
    let keyed = match decode_structured(&row.body) {
        Ok(event) => keyed(&mut tx, &event.content_digest()).await?,
        Err(_) => None,
    };
    Ok(Some(explanation(row, stands, decision, retries, keyed)))
}

/// `keyed` is the keyed digest of what the parked event says.
fn explanation(
    row: ParkedRow,
    stands: Option<Standing>,
    decision: Option<DecisionRow>,
    retries: Vec<i64>,
    keyed: Option<[u8; 32]>,
) -> Explanation {
    let read = decode_structured(&row.body).ok();
    let event = match &read {
        Some(event) => value_of(&event.canonical_bytes()),
        None => value_of(&row.body),
    };
    let standing = stands.as_ref().and_then(|fact| decode_structured(&fact.body).ok());
    let differences =
        read.as_ref().zip(standing.as_ref()).map(|(one, other)| differences(&content(one), &content(other)));
    // By the digests, as when it came: who is erased in what stands is still the one that it was (I-1).
    let digests = read.map(|event| [Some(event.content_digest()), keyed]);
    let same = digests.zip(stands.as_ref()).is_some_and(|(digests, fact)| {
        digests.into_iter().flatten().any(|digest| digest.as_slice() == fact.digest)
    });
    let remedies = if decision.is_none() { remedies(&row, same) } else { Vec::new() };
    let stands = stands.and_then(|fact| value_of(&fact.body).map(|value| (fact, value)));
    Explanation { row, event, stands, differences, decision, retries, remedies }
}

/// What makes two events of one identity the same: type, time and data (I-1).
fn content(event: &Event) -> Value {
    let whole = value_of(&event.canonical_bytes()).unwrap_or_default();
    let member = |name: &str| whole.get(name).cloned().unwrap_or_default();
    serde_json::json!({"type": member("type"), "time": member("time"), "data": member("data")})
}

fn value_of(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests;
