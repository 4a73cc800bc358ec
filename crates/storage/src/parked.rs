//! Events that could not be applied, and what was decided about them (I-4).

use crate::error::{Doing, StorageError};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

/// An event to be parked. Its texts come from input that was refused: U+0000, which no text column holds, is replaced by
/// U+FFFD; the bytes of the body are kept as they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewParked {
    /// Code: `bad_value`, `conflict`, `future`, `not_entitled`, …
    pub reason: String,
    /// What is wrong, in a sentence.
    pub detail: String,
    /// CloudEvents `source`, where it could be read.
    pub source: Option<String>,
    /// CloudEvents `id`, where it could be read.
    pub id: Option<String>,
    /// What it is about, or an empty text.
    pub subject: String,
    /// When it happened, where that could be read.
    pub at_us: Option<i64>,
    /// When it came.
    pub received_at_us: i64,
    /// `file:line`, or `topic/partition/offset`.
    pub origin: String,
    /// The bytes as they came, personal fields sealed.
    pub body: Vec<u8>,
    /// Keyed digest of the bytes as they came, where something of them is sealed: the same ones are known again when the key they were sealed by is gone.
    pub digest: Option<[u8; 32]>,
    /// The parked event this is a vain retry of: it is parked anew, beside the one that was retried.
    pub retry_of: Option<i64>,
}

/// A parked event.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ParkedRow {
    /// Its number.
    pub seq: i64,
    /// Code.
    pub reason: String,
    /// What is wrong.
    pub detail: String,
    /// CloudEvents `source`.
    pub source: Option<String>,
    /// CloudEvents `id`.
    pub id: Option<String>,
    /// What it is about.
    pub subject: String,
    /// When it happened.
    pub at_us: Option<i64>,
    /// When it came.
    pub received_at_us: i64,
    /// Where it came from.
    pub origin: String,
    /// The bytes as they came, personal fields sealed.
    pub body: Vec<u8>,
    /// The parked event it is a vain retry of.
    pub retry_of: Option<i64>,
}

/// The decision about a parked event.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DecisionRow {
    /// `retried`, `corrected` or `discarded`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// When.
    pub decided_at_us: i64,
    /// By whom.
    pub principal: String,
}

/// The fact that stands under an identity.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Standing {
    /// Its place in the order of acceptance.
    pub seq: i64,
    /// When it was accepted.
    pub received_at_us: i64,
    /// Canonical JSON of the whole event, personal fields sealed.
    pub body: Vec<u8>,
    /// Digest of its content (I-1).
    pub digest: Vec<u8>,
}

/// Which parked events are meant. Nothing asked for means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The one with this number.
    pub number: Option<i64>,
    /// Those with this code.
    pub reason: Option<String>,
    /// Those of this CloudEvents `source`.
    pub source: Option<String>,
}

/// What becomes of a parked event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was offered again; what came of that is a new acceptance.
    Retried,
    /// Another event was offered for it.
    Corrected,
    /// It is dropped for good.
    Discarded,
}

impl Decision {
    /// The word in tables and audit records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retried => "retried",
            Self::Corrected => "corrected",
            Self::Discarded => "discarded",
        }
    }
}

/// Parks events; those parked before (same reason, source, id and bytes) are left as they are. Returns how many are new.
///
/// # Errors
/// Driver errors.
pub async fn insert(tx: &mut PgConnection, events: &[NewParked]) -> Result<u64, StorageError> {
    if events.is_empty() {
        return Ok(0);
    }
    let texts = |field: fn(&NewParked) -> Option<&str>| -> Vec<Option<String>> {
        events.iter().map(|event| field(event).map(storable)).collect()
    };
    let done = sqlx::query(
        "INSERT INTO parked (reason, detail, source, id, subject, at_us, received_at_us, origin, body, fingerprint, retry_of)
         SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::INT8[], $7::INT8[], $8::TEXT[],
                              $9::BYTEA[], $10::BYTEA[], $11::INT8[])
         ON CONFLICT (fingerprint) DO NOTHING",
    )
    .bind(texts(|event| Some(&event.reason)))
    .bind(texts(|event| Some(&event.detail)))
    .bind(texts(|event| event.source.as_deref()))
    .bind(texts(|event| event.id.as_deref()))
    .bind(texts(|event| Some(&event.subject)))
    .bind(events.iter().map(|event| event.at_us).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.received_at_us).collect::<Vec<_>>())
    .bind(texts(|event| Some(&event.origin)))
    .bind(events.iter().map(|event| event.body.as_slice()).collect::<Vec<_>>())
    .bind(events.iter().map(fingerprint).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.retry_of).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("parking events")?;
    Ok(done.rows_affected())
}

fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// SHA-256 over reason, source, id and body, or its keyed digest; absent texts count as empty, lengths keep the parts apart.
fn fingerprint(event: &NewParked) -> Vec<u8> {
    let source = event.source.as_deref().unwrap_or_default();
    let id = event.id.as_deref().unwrap_or_default();
    let mut hash = Sha256::new();
    let content = event.digest.as_ref().map_or(event.body.as_slice(), <[u8; 32]>::as_slice);
    for part in [event.reason.as_bytes(), source.as_bytes(), id.as_bytes(), content] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.update(event.retry_of.map(i64::to_be_bytes).as_ref().map_or(&[][..], <[u8; 8]>::as_slice));
    hash.finalize().to_vec()
}

/// Parked events of the choice without a decision, in the order they were parked.
///
/// # Errors
/// Driver errors.
pub async fn open(connection: &mut PgConnection, choice: &Choice) -> Result<Vec<ParkedRow>, StorageError> {
    sqlx::query_as(
        "SELECT seq, reason, detail, source, id, subject, at_us, received_at_us, origin, body, retry_of FROM parked AS p
         WHERE ($1::INT8 IS NULL OR seq = $1) AND ($2::TEXT IS NULL OR reason = $2) AND ($3::TEXT IS NULL OR source = $3)
           AND NOT EXISTS (SELECT FROM parked_decision WHERE parked_seq = p.seq) ORDER BY seq",
    )
    .bind(choice.number)
    .bind(&choice.reason)
    .bind(&choice.source)
    .fetch_all(connection)
    .await
    .doing("reading parked events")
}

/// Numbers of the parked events of the choice without a decision, in the order they were parked.
///
/// # Errors
/// Driver errors.
pub async fn numbers(connection: &mut PgConnection, choice: &Choice) -> Result<Vec<i64>, StorageError> {
    sqlx::query_scalar(
        "SELECT seq FROM parked AS p
         WHERE ($1::INT8 IS NULL OR seq = $1) AND ($2::TEXT IS NULL OR reason = $2) AND ($3::TEXT IS NULL OR source = $3)
           AND NOT EXISTS (SELECT FROM parked_decision WHERE parked_seq = p.seq) ORDER BY seq",
    )
    .bind(choice.number)
    .bind(&choice.reason)
    .bind(&choice.source)
    .fetch_all(connection)
    .await
    .doing("reading numbers of parked events")
}

/// Those of these parked events that have no decision yet, in the order they were parked.
///
/// # Errors
/// Driver errors.
pub async fn open_among(
    connection: &mut PgConnection,
    numbers: &[i64],
) -> Result<Vec<ParkedRow>, StorageError> {
    sqlx::query_as(
        "SELECT seq, reason, detail, source, id, subject, at_us, received_at_us, origin, body, retry_of FROM parked AS p
         WHERE seq = ANY($1) AND NOT EXISTS (SELECT FROM parked_decision WHERE parked_seq = p.seq) ORDER BY seq",
    )
    .bind(numbers)
    .fetch_all(connection)
    .await
    .doing("reading parked events")
}

/// The parked event with this number, decided or not.
///
/// # Errors
/// Driver errors.
pub async fn find(connection: &mut PgConnection, seq: i64) -> Result<Option<ParkedRow>, StorageError> {
    sqlx::query_as(
        "SELECT seq, reason, detail, source, id, subject, at_us, received_at_us, origin, body, retry_of FROM parked WHERE seq = $1",
    )
    .bind(seq)
    .fetch_optional(connection)
    .await
    .doing("reading a parked event")
}

/// What was decided about the parked event with this number.
///
/// # Errors
/// Driver errors.
pub async fn decision(connection: &mut PgConnection, seq: i64) -> Result<Option<DecisionRow>, StorageError> {
    sqlx::query_as(
        "SELECT decision, reason, decided_at_us, principal FROM parked_decision WHERE parked_seq = $1",
    )
    .bind(seq)
    .fetch_optional(connection)
    .await
    .doing("reading the decision about a parked event")
}

/// Numbers of the vain retries of a parked event.
///
/// # Errors
/// Driver errors.
pub async fn retries(connection: &mut PgConnection, seq: i64) -> Result<Vec<i64>, StorageError> {
    sqlx::query_scalar("SELECT seq FROM parked WHERE retry_of = $1 ORDER BY seq")
        .bind(seq)
        .fetch_all(connection)
        .await
        .doing("reading retries of a parked event")
}

/// The accepted fact of this identity.
///
/// # Errors
/// Driver errors.
pub async fn standing(
    connection: &mut PgConnection,
    source: &str,
    id: &str,
) -> Result<Option<Standing>, StorageError> {
    sqlx::query_as(
        "SELECT f.seq, f.received_at_us, f.body, f.digest FROM identity AS i JOIN fact AS f ON f.seq = i.fact_seq
         WHERE i.source = $1 AND i.id = $2",
    )
    .bind(source)
    .bind(id)
    .fetch_optional(connection)
    .await
    .doing("reading the fact that stands")
}

/// Open parked events, counted by reason.
///
/// # Errors
/// Driver errors.
pub async fn count_open(connection: &mut PgConnection) -> Result<Vec<(String, i64)>, StorageError> {
    sqlx::query_as(
        r#"SELECT reason, count(*) FROM parked AS p
           WHERE NOT EXISTS (SELECT FROM parked_decision WHERE parked_seq = p.seq)
           GROUP BY reason ORDER BY reason COLLATE "C""#,
    )
    .fetch_all(connection)
    .await
    .doing("counting parked events")
}

/// Records the one decision about a parked event.
///
/// # Errors
/// [`StorageError::Refused`] where it was decided before (`parked_decision_pkey`) or does not exist
/// (`parked_decision_parked_seq_fkey`).
pub async fn decide(
    tx: &mut PgConnection,
    seq: i64,
    decision: Decision,
    reason: &str,
    decided_at_us: i64,
    principal: &str,
) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO parked_decision (parked_seq, decision, reason, decided_at_us, principal) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(seq)
    .bind(decision.as_str())
    .bind(reason)
    .bind(decided_at_us)
    .bind(principal)
    .execute(tx)
    .await
    .doing("deciding about a parked event")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{NewParked, fingerprint, storable};

    fn event(source: Option<&str>, id: Option<&str>) -> NewParked {
        NewParked {
            reason: "bad_value".to_owned(),
            detail: String::new(),
            source: source.map(str::to_owned),
            id: id.map(str::to_owned),
            subject: String::new(),
            at_us: None,
            received_at_us: 0,
            origin: "f:1".to_owned(),
            body: b"{".to_vec(),
            digest: None,
            retry_of: None,
        }
    }

    #[test]
    fn the_fingerprint_keeps_parts_apart_and_forgets_the_origin() {
        assert_ne!(fingerprint(&event(Some("ab"), Some("c"))), fingerprint(&event(Some("a"), Some("bc"))));
        let elsewhere = NewParked { origin: "f:2".to_owned(), received_at_us: 7, ..event(None, None) };
        assert_eq!(fingerprint(&event(None, None)), fingerprint(&elsewhere));
    }

    #[test]
    fn what_is_sealed_is_known_again_by_its_digest_l_3() {
        let sealed = |body: &[u8], digest: u8| NewParked {
            body: body.to_vec(),
            digest: Some([digest; 32]),
            ..event(Some("a"), None)
        };
        assert_eq!(fingerprint(&sealed(b"x", 1)), fingerprint(&sealed(b"y", 1)));
        assert_ne!(fingerprint(&sealed(b"x", 1)), fingerprint(&sealed(b"x", 2)));
    }

    #[test]
    fn no_text_column_gets_a_nul() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
    }
}
