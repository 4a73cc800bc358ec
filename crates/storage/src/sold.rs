//! Facts about what is sold besides GPU time (V-13).

use crate::error::{Doing, StorageError};
use crate::facts::StoredFact;
use sqlx::PgConnection;

/// All facts of the types `usage.reported` and `charge.recorded`, in order of acceptance.
///
/// # Errors
/// Driver errors.
pub async fn load(connection: &mut PgConnection) -> Result<Vec<StoredFact>, StorageError> {
    // The types stand in the text, as in the index.
    sqlx::query_as(
        "SELECT seq, source, id, received_at_us, body FROM fact
         WHERE type IN ('gpuledger.usage.reported.v1', 'gpuledger.charge.recorded.v1') ORDER BY seq",
    )
    .fetch_all(connection)
    .await
    .doing("reading reported usage and recorded charges")
}
