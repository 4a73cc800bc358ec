//! Facts from the database, as the rules see them.

use crate::error::BooksError;
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::{NodeId, Source};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::alive::{self, AliveInstant};
use gpuledger_storage::facts::StoredFact;
use gpuledger_wire::{Event, decode_structured};

/// Reads a stored fact back into the event it was.
///
/// # Errors
/// The stored bytes are no event.
pub fn event_of(stored: &StoredFact) -> Result<Event, BooksError> {
    decode_structured(&stored.body).map_err(|error| BooksError::Fact {
        seq: stored.seq,
        source_name: stored.source.clone(),
        id: stored.id.clone(),
        why: error.to_string(),
    })
}

/// All accepted facts, telemetry's proofs of life among them.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn load_all(connection: &mut PgConnection) -> Result<Vec<Fact>, BooksError> {
    let stored = gpuledger_storage::facts::load_all(connection).await?;
    let mut facts = decode(&stored)?;
    facts.extend(alive::load_all(connection).await?.iter().map(proof));
    Ok(facts)
}

/// Decodes stored facts.
///
/// # Errors
/// One of them cannot be read.
pub fn decode(stored: &[StoredFact]) -> Result<Vec<Fact>, BooksError> {
    stored.iter().map(|fact| event_of(fact).map(|event| event.to_fact())).collect()
}

/// A collector was alive at the end of its window.
pub fn proof(heard: &AliveInstant) -> Fact {
    Fact {
        source: Source::new(&format!("/nodes/{}", heard.node)),
        id: heard.at_us.to_string(),
        at: Instant::from_micros(heard.at_us),
        body: FactBody::NodeAlive(NodeId::new(&heard.node)),
    }
}
