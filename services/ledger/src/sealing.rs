//! Admitted events as they are stored: what is personal in them is sealed before anything is written (L-3). The rules see what is stored, so that the read models never have
//! more than the facts.

use crate::RULE_SET;
use crate::decide::Parking;
use crate::error::LedgerError;
use crate::incoming::Incoming;
use gpuledger_books::facts::indexed;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::facts::NewFact;
use gpuledger_trail::personal;
use gpuledger_trail::sealed::{Record, keyed, seal, terms};
use gpuledger_wire::{Event, Stored, decode_structured};

/// An admitted event beside what is stored of it.
#[derive(Debug)]
pub(crate) struct Kept<'e> {
    /// As it came.
    pub(crate) incoming: &'e Incoming,
    /// What it says.
    pub(crate) event: &'e Event,
    /// What the rules see of it.
    pub(crate) said: Fact,
    /// Digest of its content, as it is stored.
    digest: [u8; 32],
    /// The same without a key.
    plain: [u8; 32],
}

/// What becomes of a batch's admitted events.
#[derive(Debug, Default)]
pub(crate) struct Keeping<'e> {
    /// Those that can be stored.
    pub(crate) kept: Vec<Kept<'e>>,
    /// What is stored of each.
    pub(crate) facts: Vec<NewFact>,
    /// Those that cannot.
    pub(crate) parked: Vec<(&'e Incoming, Parking)>,
}

/// Admitted events as they are stored. Most have nothing personal, and take no query.
pub(crate) async fn keep<'e>(
    tx: &mut Tx,
    admitted: Vec<(&'e Incoming, &'e Event)>,
    now: Instant,
) -> Result<Keeping<'e>, LedgerError> {
    let marked = terms(tx).marked.clone();
    let as_it_came = |(_, event): &(&Incoming, &Event)| {
        let Stored { bytes, digest } = event.stored();
        Record::new(bytes, digest)
    };
    let mut records: Vec<Record> = admitted.iter().map(as_it_came).collect();
    let plain: Vec<[u8; 32]> = records.iter().map(|record| record.digest).collect();
    let with_events = records.iter_mut().zip(&admitted);
    let mut personal: Vec<&mut Record> = with_events
        .filter(|(_, (_, event))| personal::is_in(&event.raw_data, &marked))
        .map(|(record, _)| record)
        .collect();
    seal(tx, &mut personal, now).await?;
    let mut keeping = Keeping::default();
    for (((incoming, event), record), plain) in admitted.into_iter().zip(records).zip(plain) {
        match said(event, &record) {
            Ok(said) => {
                let digest = record.digest;
                keeping.facts.push(new_fact(event, &said, record, now));
                keeping.kept.push(Kept { incoming, event, said, digest, plain });
            }
            Err(parking) => keeping.parked.push((incoming, parking)),
        }
    }
    Ok(keeping)
}

/// The fact as it will be read back. A sealed value is longer than what it seals, and may be too long for its field.
fn said(event: &Event, record: &Record) -> Result<Fact, Parking> {
    if !record.is_sealed {
        return Ok(event.to_fact());
    }
    let stored = decode_structured(&record.bytes).map_err(|error| Parking {
        reason: "bad_value",
        detail: format!(
            "cannot be kept: in the form it is stored in, with personal fields sealed, {}",
            error.fault
        ),
        subject: event.subject_of_finding(),
    })?;
    Ok(stored.to_fact())
}

fn new_fact(event: &Event, fact: &Fact, record: Record, now: Instant) -> NewFact {
    NewFact {
        source: event.source.clone(),
        id: event.id.clone(),
        kind: event.type_name().to_owned(),
        at_us: event.time.as_micros(),
        received_at_us: now.as_micros(),
        rule_set: RULE_SET.to_owned(),
        digest: record.digest,
        body: record.bytes,
        subjects: event.subjects(),
        indexed: indexed(fact),
    }
}

impl Kept<'_> {
    /// Whether a fact with this digest says the same (I-1). One that was accepted before personal fields were sealed has its plain digest, and one whose label was marked then
    /// and is not now has a keyed one.
    pub(crate) async fn is_repeated(&self, tx: &mut Tx, standing: &[u8; 32]) -> Result<bool, LedgerError> {
        if *standing == self.digest || *standing == self.plain {
            return Ok(true);
        }
        Ok(keyed(tx, &self.plain).await? == Some(*standing))
    }
}
