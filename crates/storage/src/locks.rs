//! Locks on what a batch is about, held to the end of its transaction.
//!
//! Facts of one GPU come through several consumers, and what a fact touches is known only from facts that stand already: a release names
//! an allocation, its grant names the GPU, an inventory names the node. Locking GPU rows alone would let this happen: A grants `a` on
//! GPU g, B releases `a` without seeing the grant, finds no GPU to post, and commits; A posts without the release. So the lock is on
//! *subjects* (`alloc:a`, `gpu:g`, `node:n`), hashed to a few keys, taken in order of key; see ADR 3.

use crate::error::{Doing, StorageError};
use sqlx::{Executor, PgConnection};
use std::collections::BTreeSet;

/// Number of lock keys: few enough that a batch about a whole fleet stays far below `max_locks_per_transaction`.
pub const LOCK_KEYS: u32 = 64;
/// First half of the advisory lock's name, ours alone.
const CLASS: i32 = 0x6770_756c;

/// The lock key of a subject (FNV-1a, so that every process computes the same).
pub fn key_of(subject: &str) -> i32 {
    let hash = subject
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    i32::try_from(hash % LOCK_KEYS).unwrap_or(0)
}

/// Every key there is.
pub fn all_keys() -> BTreeSet<i32> {
    (0..LOCK_KEYS).filter_map(|key| i32::try_from(key).ok()).collect()
}

/// Takes the locks, lowest key first, behind a savepoint: [`give_back`] undoes them and all that was written since.
///
/// # Errors
/// Driver errors.
pub async fn hold(tx: &mut PgConnection, keys: &BTreeSet<i32>) -> Result<(), StorageError> {
    tx.execute("SAVEPOINT subjects").await.doing("beginning a batch")?;
    let keys: Vec<i32> = keys.iter().copied().collect();
    // UNNEST keeps the order of the array, so every batch takes its locks in the same order and none waits in a circle.
    sqlx::query("SELECT pg_advisory_xact_lock($1, key) FROM UNNEST($2::INT4[]) AS key")
        .bind(CLASS)
        .bind(&keys)
        .execute(tx)
        .await
        .doing("locking subjects")?;
    Ok(())
}

/// Gives the locks of the last [`hold`] back, with everything written since.
///
/// # Errors
/// Driver errors.
pub async fn give_back(tx: &mut PgConnection) -> Result<(), StorageError> {
    tx.execute("ROLLBACK TO SAVEPOINT subjects").await.doing("giving locks back")?;
    tx.execute("RELEASE SAVEPOINT subjects").await.doing("giving locks back")?;
    Ok(())
}
