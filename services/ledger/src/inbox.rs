//! The inbox: events that came by HTTP, taken in the transaction of their effects.

use crate::batch::{Tally, apply};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use gpuledger_books::{grantors, whereabouts};
use gpuledger_domain::time::Instant;
use gpuledger_storage::inbox::{Item, take};
use gpuledger_storage::{Db, Tx, retry};
use gpuledger_wire::{Event, EventData, decode_structured};

/// Events taken in one transaction.
const TAKEN_AT_ONCE: i64 = 1_000;

/// Takes what waits, at most one batch, and says what became of it; none: the inbox is empty.
///
/// # Errors
/// The database.
pub async fn drain(db: &Db, now: Instant) -> Result<Option<Tally>, LedgerError> {
    retry::retry(async || {
        let mut tx = db.begin().await?;
        let items = take(&mut tx, TAKEN_AT_ONCE).await?;
        if items.is_empty() {
            tx.rollback().await?;
            return Ok(None);
        }
        let mut incoming = Vec::with_capacity(items.len());
        for item in items {
            incoming.push(read(&mut tx, item).await?);
        }
        let applied = apply(&mut tx, &incoming, now).await?;
        tx.commit().await?;
        Ok(Some(applied.tally))
    })
    .await
}

/// The API judged what the token alone tells; which node a GPU is on only the ledger knows (I-5).
async fn read(tx: &mut Tx, item: Item) -> Result<Incoming, LedgerError> {
    let event = decode_structured(&item.body);
    let not_entitled = match (&item.refusal, &item.nodes, &event) {
        (None, Some(nodes), Ok(event)) => foreign_node(tx, event, nodes).await?,
        (refusal, ..) => refusal.clone(),
    };
    Ok(Incoming {
        event,
        origin: format!("http:{}", item.principal),
        not_entitled,
        raw: Some(item.body),
        retry_of: None,
    })
}

async fn foreign_node(tx: &mut Tx, event: &Event, nodes: &[String]) -> Result<Option<String>, LedgerError> {
    match &event.data {
        // A node's own list names its node, which the API has judged; a GPU in it may have moved here.
        EventData::NodeInventory(_) => return Ok(None),
        EventData::AllocationGranted(_)
        | EventData::AllocationReleased(_)
        | EventData::AllocationTransferred(_)
        | EventData::AllocationState(_) => {
            let granted_by = grantors(tx, &event.subjects()).await?;
            if let Some(other) = granted_by.into_iter().find(|source| source.as_str() != event.source) {
                return Ok(Some(format!(
                    "the allocation was granted by {other}, which alone may speak of it"
                )));
            }
        }
        _ => {}
    }
    let places = whereabouts(tx, &event.subjects()).await?;
    let foreign = places.into_iter().find(|(_, node)| !nodes.iter().any(|own| own == node.as_str()));
    Ok(foreign
        .map(|(gpu, node)| format!("{gpu} is on node {node}, the token speaks for {}", nodes.join(", "))))
}
