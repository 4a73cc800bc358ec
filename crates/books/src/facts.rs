//! Facts from the database, as the rules see them.

use crate::error::BooksError;
use gpuledger_domain::fact::{Fact, FactBody, State, UnitState};
use gpuledger_domain::ids::{NodeId, Source};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::alive::{self, AliveInstant};
use gpuledger_storage::facts::{Indexed, NewInventory, StoredFact};
use gpuledger_storage::index::kind;
use gpuledger_wire::{Event, decode_structured};
use sha2::{Digest, Sha256};

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

/// How an accepted event is found again; `fact` is what the rules see of it.
pub fn indexed(fact: &Fact) -> Indexed {
    let at = match &fact.body {
        FactBody::Work(work) => work.end,
        _ => fact.at,
    };
    let inventory = match &fact.body {
        FactBody::Inventory(inventory) => Some(NewInventory {
            // What it is made of says no more than the rules see, and equal hashes of one build mean equal content.
            content: Sha256::digest(format!("{inventory:?}")).into(),
            node: inventory.node.to_string(),
            gpus: inventory.gpus.iter().map(|listed| listed.gpu.to_string()).collect(),
        }),
        _ => None,
    };
    Indexed { kind: kind_of(&fact.body), at_us: at.as_micros(), inventory }
}

fn kind_of(body: &FactBody) -> char {
    match body {
        FactBody::Inventory(_) => kind::INVENTORY,
        FactBody::UnitState(UnitState { placement: None, state: State::Ok, .. }) => kind::OK,
        FactBody::UnitState(_) => kind::STATE,
        FactBody::ScrubStarted { .. } => kind::SCRUB_BEGIN,
        FactBody::ScrubFinished { .. } => kind::SCRUB_END,
        FactBody::QuarantineReleased { .. } => kind::QUARANTINE_END,
        FactBody::NodeDecommissioned(_) | FactBody::GpuDecommissioned(_) => kind::DECOMMISSION,
        FactBody::Granted(_) => kind::GRANT,
        FactBody::Placed(_) => kind::PLACED,
        FactBody::Released { .. } => kind::RELEASE,
        FactBody::Transferred { .. } => kind::TRANSFER,
        FactBody::AllocationState { .. } => kind::ALLOCATION_STATE,
        FactBody::Snapshot { .. } => kind::SNAPSHOT,
        FactBody::Work(_) => kind::WORK,
        FactBody::NodeAlive(_) | FactBody::Other => kind::OTHER,
    }
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
