//! Windows that an earlier version staged one by one go into blocks, from which their hours are packed anew.

use crate::error::LedgerError;
use crate::telemetry::seal;
use gpuledger_storage::telemetry::{remove_alone, staged_alone};
use gpuledger_storage::{Db, blocks};
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::decode_structured;

/// Windows of one transaction.
const AT_ONCE: i64 = 2_000;

/// Moves all of them.
pub(super) async fn all(db: &Db) -> Result<(), LedgerError> {
    loop {
        let mut tx = db.begin().await?;
        let staged = staged_alone(&mut tx, AT_ONCE).await?;
        if staged.is_empty() {
            return Ok(());
        }
        let mut windows = Vec::with_capacity(staged.len());
        for one in &staged {
            let event = decode_structured(&one.body).map_err(|why| LedgerError::Block(why.to_string()))?;
            windows.extend(Arrived::from_event(&event));
        }
        let sealed = seal(&windows, (0..windows.len()).collect())
            .map_err(|why| LedgerError::Block(why.to_string()))?;
        let made: Vec<_> = sealed.iter().map(|sealed| &sealed.block).collect();
        blocks::stage(&mut tx, &made).await?;
        let gone: Vec<String> = staged.into_iter().map(|one| one.place).collect();
        remove_alone(&mut tx, &gone).await?;
        tx.commit().await?;
    }
}
