//! Versions of the business objects of `apply`.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// An object as it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// `Tenant`, `RateCard`, …
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// JSON text.
    pub body: String,
}

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ObjectVersion {
    /// Order of application.
    pub seq: i64,
    /// `Tenant`, `RateCard`, …
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// From 1 without holes.
    pub version: i32,
    /// JSON text as it was written.
    pub body: String,
    /// When it was applied.
    pub applied_at_us: i64,
    /// Who applied it.
    pub principal: String,
}

/// Writes `object` as a new version unless its last version says the same, as a JSON value. Returns the new version's
/// number, or none where nothing changed.
///
/// # Errors
/// [`StorageError::Refused`] where another transaction applies the same object at the same time; driver errors.
pub async fn apply(
    tx: &mut PgConnection,
    object: &NewObject,
    applied_at_us: i64,
    principal: &str,
) -> Result<Option<i32>, StorageError> {
    sqlx::query_scalar(
        "INSERT INTO object (kind, id, version, body, applied_at_us, principal)
         SELECT $1, $2, COALESCE(last.version, 0) + 1, $3::JSON, $4, $5
         FROM (VALUES (1)) AS one
         LEFT JOIN LATERAL (SELECT version, body FROM object WHERE kind = $1 AND id = $2 ORDER BY version DESC LIMIT 1) AS last ON true
         WHERE last.body IS NULL OR last.body::JSONB <> $3::JSONB
         RETURNING version",
    )
    .bind(&object.kind)
    .bind(&object.id)
    .bind(&object.body)
    .bind(applied_at_us)
    .bind(principal)
    .fetch_optional(tx)
    .await
    .doing("applying an object")
}

/// The last version of every object, by kind and id. Under [`crate::Role::Api`] only those the scope may see.
///
/// # Errors
/// Driver errors.
pub async fn latest(connection: &mut PgConnection) -> Result<Vec<ObjectVersion>, StorageError> {
    sqlx::query_as(
        "SELECT DISTINCT ON (kind, id) seq, kind, id, version, body::TEXT AS body, applied_at_us, principal
         FROM object ORDER BY kind, id, version DESC",
    )
    .fetch_all(connection)
    .await
    .doing("reading the objects")
}

/// Every version of every object, in the order of application.
///
/// # Errors
/// Driver errors.
pub async fn all_versions(connection: &mut PgConnection) -> Result<Vec<ObjectVersion>, StorageError> {
    sqlx::query_as(
        "SELECT seq, kind, id, version, body::TEXT AS body, applied_at_us, principal FROM object ORDER BY seq",
    )
    .fetch_all(connection)
    .await
    .doing("reading the objects' versions")
}

/// What changes with each version that is applied, each close, and each draft that is discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Changes {
    /// Versions of objects: how many, since one may commit later than one with a greater `seq`.
    versions: i64,
    /// The greatest `seq` of them.
    latest: i64,
    /// Closes.
    closes: i64,
    /// Drafts that were discarded.
    discarded: i64,
}

/// As long as this is the same, so is what follows from objects and closes. Read it in the transaction that uses it.
///
/// # Errors
/// Driver errors.
pub async fn changes(connection: &mut PgConnection) -> Result<Changes, StorageError> {
    sqlx::query_as(
        "SELECT count(*) AS versions, COALESCE(max(seq), 0) AS latest, (SELECT count(*) FROM period_close) AS closes,
                (SELECT count(*) FROM document WHERE status = 'discarded') AS discarded
         FROM object",
    )
    .fetch_one(connection)
    .await
    .doing("looking for changes of objects")
}
