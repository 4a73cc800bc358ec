//! Which leaf of the audit log holds a fact.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Leaf indexes by the `seq` of facts; facts that have no leaf yet are not among them.
///
/// # Errors
/// Driver errors.
pub async fn of_facts(
    connection: &mut PgConnection,
    seqs: &[i64],
) -> Result<BTreeMap<i64, i64>, StorageError> {
    let found: Vec<(i64, i64)> =
        sqlx::query_as("SELECT fact_seq, leaf_index FROM audit_leaf WHERE fact_seq = ANY ($1)")
            .bind(seqs)
            .fetch_all(connection)
            .await
            .doing("finding the leaves of facts")?;
    Ok(found.into_iter().collect())
}
