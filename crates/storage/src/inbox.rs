//! The queue between the API and the ledger: events that came over HTTP. The API may put and never read; the ledger takes rows in
//! the transaction of their effects, so that nothing is lost or counted twice (I-3).

use crate::connect::Db;
use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use sqlx::postgres::PgListener;
use std::time::Duration;

/// Channel that is notified when events were put.
const CHANNEL: &str = "gpuledger_inbox";

/// Who brought events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// Subject of its token, at most 1024 bytes.
    pub principal: String,
    /// Nodes whose GPUs it may speak of (I-5); none: any. Which GPU is on which node only the facts tell, so the ledger checks it.
    pub nodes: Option<Vec<String>>,
}

/// An event to put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// Why the speaker may not say it (I-5); none: it may.
    pub refusal: Option<String>,
    /// The structured event as canonical JSON.
    pub body: Vec<u8>,
}

/// An event that was taken.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Item {
    /// Its place in the queue.
    pub seq: i64,
    /// Subject of the token that brought it.
    pub principal: String,
    /// Nodes whose GPUs the principal may speak of; none: any.
    pub nodes: Option<Vec<String>>,
    /// Why the principal may not say it: to be parked as `not_entitled`; none: it may.
    pub refusal: Option<String>,
    /// The structured event as canonical JSON.
    pub body: Vec<u8>,
    /// When the API received it, microseconds UTC.
    pub received_at_us: i64,
}

/// Puts events of one request, in their order, and wakes the ledger when the transaction commits.
///
/// # Errors
/// [`StorageError::Refused`] for a principal of more than 1024 bytes; driver errors.
pub async fn put(
    tx: &mut PgConnection,
    speaker: &Speaker,
    received_at_us: i64,
    items: &[NewItem],
) -> Result<(), StorageError> {
    if items.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO inbox (principal, nodes, refusal, body, received_at_us)
         SELECT $1, $2, refusal, body, $3
         FROM UNNEST($4::TEXT[], $5::BYTEA[]) WITH ORDINALITY AS given (refusal, body, place) ORDER BY place",
    )
    .bind(&speaker.principal)
    .bind(&speaker.nodes)
    .bind(received_at_us)
    .bind(items.iter().map(|item| item.refusal.as_deref()).collect::<Vec<_>>())
    .bind(items.iter().map(|item| item.body.as_slice()).collect::<Vec<_>>())
    .execute(&mut *tx)
    .await
    .doing("putting events into the inbox")?;
    sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(tx).await.doing("waking the ledger")?;
    Ok(())
}

/// Takes up to `limit` events, oldest first. They are gone when the transaction commits and back when it does not; rows that
/// another ledger is just taking are passed over.
///
/// # Errors
/// Driver errors.
pub async fn take(tx: &mut PgConnection, limit: i64) -> Result<Vec<Item>, StorageError> {
    let mut items: Vec<Item> = sqlx::query_as(
        "DELETE FROM inbox
         WHERE seq IN (SELECT seq FROM inbox ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING seq, principal, nodes, refusal, body, received_at_us",
    )
    .bind(limit)
    .fetch_all(tx)
    .await
    .doing("taking events from the inbox")?;
    items.sort_by_key(|item| item.seq);
    Ok(items)
}

/// Waits for events in the inbox.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    /// Listens on a connection of its own.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] where none can be had.
    pub async fn new(db: &Db) -> Result<Self, StorageError> {
        let mut listener = PgListener::connect_with(&db.pool).await.doing("listening to the inbox")?;
        listener.listen(CHANNEL).await.doing("listening to the inbox")?;
        Ok(Self(listener))
    }

    /// Returns when events were put, after `at_most`, or when the connection was lost and is back: a hint only, so look into the
    /// inbox each time.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] where the connection is lost and does not come back.
    pub async fn wait(&mut self, at_most: Duration) -> Result<(), StorageError> {
        match tokio::time::timeout(at_most, self.0.try_recv()).await {
            Ok(received) => received.map(|_| ()).doing("listening to the inbox"),
            Err(_) => Ok(()),
        }
    }
}
