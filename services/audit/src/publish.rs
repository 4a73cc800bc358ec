//! Publishing: leaves since the last signed head are read back and hashed again, the new head is signed, and then it is published. Each step may be cut off by a kill;
//! the next round finds where it stands from the signed head and the published one.

use crate::edge::Edge;
use crate::error::AuditError;
use crate::points::point;
use crate::sequencer::unsigned;
use crate::signer::Request;
use crate::socket::Signing;
use gpuledger_domain::time::Instant;
use gpuledger_storage::audit_log::{self, CheckpointRow};
use gpuledger_storage::{Db, Tx};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_trail::hex;
use gpuledger_trail::stored;

/// Leaves read back at once.
const PAGE: u64 = 4_096;

/// Signs and publishes heads of a database.
#[derive(Debug)]
pub struct Publisher {
    db: Db,
    signing: Signing,
    /// The edge at the last signed head, made of leaves that were hashed again.
    edge: Option<Edge>,
}

impl Publisher {
    /// With a way to a signer.
    pub fn new(db: Db, signing: Signing) -> Self {
        Self { db, signing, edge: None }
    }

    /// Publishes the head of what is appended now; its size. What is published already is left alone.
    ///
    /// # Errors
    /// Refusals to sign ([`AuditError::Rehash`], [`AuditError::Behind`], [`AuditError::Rewritten`], the signer's own), or the database.
    pub async fn publish(&mut self, now: Instant) -> Result<u64, AuditError> {
        let done = self.round(now).await;
        if done.is_err() {
            self.edge = None;
        }
        done
    }

    async fn round(&mut self, now: Instant) -> Result<u64, AuditError> {
        let (signed, note) = self.signing.last().await?;
        // One state of the database for leaves, tiles and size.
        let mut tx = self.db.snapshot().await?;
        let size = unsigned(audit_log::size(&mut tx).await?);
        if size < signed.size {
            return Err(AuditError::Behind { signed: signed.size, stored: size });
        }
        let mut edge = self.edge_at(&mut tx, &signed).await?;
        let published = audit_log::latest_checkpoint(&mut tx).await?.map(|row| unsigned(row.size));
        if signed.size > 0 && published.is_none_or(|published| published < signed.size) {
            // A kill came between signing and publishing.
            self.put(&signed, &note, now).await?;
        }
        if size == signed.size {
            self.edge = Some(edge);
            return Ok(size);
        }
        let head = self.hashed_again(&mut tx, &mut edge, size).await?;
        let proof = stored::consistency(&mut tx, signed.size, size).await?;
        drop(tx);
        point("audit::before_signing");
        let note = self.signing.sign(Request { size, root: head, proof }).await?;
        point("audit::before_publishing");
        let signed = Checkpoint { size, root: head, ..signed };
        self.put(&signed, &note, now).await?;
        point("audit::after_publishing");
        self.edge = Some(edge);
        Ok(size)
    }

    /// The edge at the signed head. From the database it must have the root that was signed.
    async fn edge_at(&mut self, tx: &mut Tx, signed: &Checkpoint) -> Result<Edge, AuditError> {
        let edge = match self.edge.take().filter(|edge| edge.size() == signed.size) {
            Some(edge) => edge,
            None => Edge::load(tx, signed.size).await?,
        };
        let stored = edge.root()?;
        if stored != signed.root {
            return Err(AuditError::Rewritten {
                size: signed.size,
                stored: stored.to_string(),
                signed: signed.root.to_string(),
            });
        }
        Ok(edge)
    }

    /// Hashes the stored leaves from the edge on; they must lead to the root that the sequencer left.
    async fn hashed_again(&self, tx: &mut Tx, edge: &mut Edge, size: u64) -> Result<Hash, AuditError> {
        let mut full = Vec::new();
        while edge.size() < size {
            let to = size.min(edge.size() + PAGE);
            let page = audit_log::leaf_bytes(tx, signed(edge.size()), signed(to)).await?;
            if u64::try_from(page.len()) != Ok(to - edge.size()) {
                return Err(stored::StoredError::Missing(format!("a leaf before {to}")).into());
            }
            for leaf in &page {
                edge.push(Hash::of_leaf(leaf), &mut full);
            }
            full.clear();
        }
        let (again, (appended, root)) = (edge.root()?, audit_log::appended(tx).await?);
        if unsigned(appended) != size || root.as_deref() != Some(again.0.as_slice()) {
            return Err(AuditError::Rehash {
                leaves: size,
                again: again.to_string(),
                stored: format!(
                    "{} of {appended} leaves",
                    root.map_or_else(|| "none".to_owned(), |r| hex(&r))
                ),
            });
        }
        Ok(again)
    }

    async fn put(&self, head: &Checkpoint, note: &str, now: Instant) -> Result<(), AuditError> {
        let row = CheckpointRow {
            size: signed(head.size),
            root: head.root.0.to_vec(),
            note: note.as_bytes().to_vec(),
            signed_at_us: now.as_micros(),
        };
        let mut tx = self.db.begin().await?;
        audit_log::add_checkpoint(&mut tx, &row).await?;
        tx.commit().await?;
        Ok(())
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
