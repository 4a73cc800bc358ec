//! Keys of the subjects that leaves speak of (L-3). What the bytes mean, and who may have them, is the caller's.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Name of the lock between sealing and erasing.
const LOCK: i64 = 0x6770_756c_6b65_7973;

/// A subject whose key is not destroyed.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SubjectRow {
    /// Its number.
    pub no: i64,
    /// Keyed digest of kind and name.
    pub digest: Vec<u8>,
    /// `tenant`, `person`, …
    pub kind: String,
    /// The stored key, sealed or not; none once erased.
    pub key: Option<Vec<u8>>,
}

/// A subject that is met for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubject {
    /// Keyed digest of kind and name.
    pub digest: [u8; 32],
    /// `tenant`, `person`, …
    pub kind: String,
    /// Of kind `tenant`: its name.
    pub tenant: Option<String>,
    /// The stored key, sealed or not.
    pub key: Vec<u8>,
}

/// Live subjects by digest.
///
/// # Errors
/// Driver errors.
pub async fn by_digests(
    connection: &mut PgConnection,
    digests: &[[u8; 32]],
) -> Result<Vec<SubjectRow>, StorageError> {
    sqlx::query_as(
        "SELECT no, digest, kind, key FROM subject_key WHERE erased_at_us IS NULL AND digest = ANY($1::BYTEA[])",
    )
    .bind(digests.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
    .doing("reading keys of subjects")
}

/// Subjects by number, erased ones too; those that row security shows.
///
/// # Errors
/// Driver errors.
pub async fn by_numbers(
    connection: &mut PgConnection,
    numbers: &[i64],
) -> Result<Vec<SubjectRow>, StorageError> {
    sqlx::query_as("SELECT no, digest, kind, key FROM subject_key WHERE no = ANY($1::INT8[])")
        .bind(numbers)
        .fetch_all(connection)
        .await
        .doing("reading keys of subjects")
}

/// Holds off erasure until the end of the transaction. Whoever seals takes it before it reads keys: else a key is read, destroyed by another transaction, and then what
/// nobody can open any more is written.
///
/// # Errors
/// Driver errors.
pub async fn hold(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock_shared($1)")
        .bind(LOCK)
        .execute(tx)
        .await
        .doing("holding keys of subjects")?;
    Ok(())
}

/// Waits until nobody seals, and holds sealing off until the end of the transaction.
///
/// # Errors
/// Driver errors.
pub async fn hold_alone(tx: &mut PgConnection) -> Result<(), StorageError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(tx)
        .await
        .doing("waiting for who seals")?;
    Ok(())
}

/// Adds subjects; of those that live already the key stays.
///
/// # Errors
/// Driver errors.
pub async fn add(tx: &mut PgConnection, subjects: &[NewSubject], at_us: i64) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO subject_key (digest, kind, tenant, key, made_at_us)
         SELECT digest, kind, tenant, key, $5 FROM UNNEST($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::BYTEA[]) AS s (digest, kind, tenant, key)
         ON CONFLICT (digest) WHERE erased_at_us IS NULL DO NOTHING",
    )
    .bind(subjects.iter().map(|s| s.digest.as_slice()).collect::<Vec<_>>())
    .bind(subjects.iter().map(|s| s.kind.as_str()).collect::<Vec<_>>())
    .bind(subjects.iter().map(|s| s.tenant.as_deref()).collect::<Vec<_>>())
    .bind(subjects.iter().map(|s| s.key.as_slice()).collect::<Vec<_>>())
    .bind(at_us)
    .execute(tx)
    .await
    .doing("adding keys of subjects")?;
    Ok(())
}

/// Destroys a live subject's key; its number, none where it has none. Processes that keep keys in memory see the count of erasures move.
///
/// # Errors
/// Driver errors.
pub async fn destroy(
    tx: &mut PgConnection,
    digest: &[u8; 32],
    at_us: i64,
) -> Result<Option<i64>, StorageError> {
    let number = sqlx::query_scalar(
        "UPDATE subject_key SET key = NULL, erased_at_us = $2 WHERE digest = $1 AND erased_at_us IS NULL RETURNING no",
    )
    .bind(digest.as_slice())
    .bind(at_us)
    .fetch_optional(&mut *tx)
    .await
    .doing("destroying a key")?;
    if number.is_some() {
        sqlx::query("UPDATE audit_state SET erasures = erasures + 1")
            .execute(tx)
            .await
            .doing("counting an erasure")?;
    }
    Ok(number)
}

/// The stored key of digests, and how many keys were destroyed so far.
///
/// # Errors
/// Driver errors.
pub async fn state(connection: &mut PgConnection) -> Result<(Option<Vec<u8>>, i64), StorageError> {
    sqlx::query_as("SELECT pepper, erasures FROM audit_state")
        .fetch_one(connection)
        .await
        .doing("reading the state of the log")
}

/// Sets the key of digests where there is none yet; the one that stands then.
///
/// # Errors
/// Driver errors.
pub async fn have_pepper(tx: &mut PgConnection, pepper: &[u8]) -> Result<Vec<u8>, StorageError> {
    sqlx::query_scalar("UPDATE audit_state SET pepper = COALESCE(pepper, $1) RETURNING pepper")
        .bind(pepper)
        .fetch_one(tx)
        .await
        .doing("setting the key of digests")
}

/// The last leaf that names a subject.
///
/// # Errors
/// Driver errors.
pub async fn last_leaf_of(
    connection: &mut PgConnection,
    number: i64,
) -> Result<Option<Vec<u8>>, StorageError> {
    sqlx::query_scalar(
        "SELECT leaf FROM audit_leaf WHERE subjects @> ARRAY[$1::INT8] ORDER BY leaf_index DESC LIMIT 1",
    )
    .bind(number)
    .fetch_optional(connection)
    .await
    .doing("looking for a subject's last leaf")
}
