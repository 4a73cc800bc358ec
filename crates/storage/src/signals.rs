//! The outbox of signals: orders to allocators, written in the transaction of what causes them.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// A signal to be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignal {
    /// Its id, one over all deliveries.
    pub signal: String,
    /// What raises it once.
    pub cause: String,
    /// Whom it concerns.
    pub tenant: String,
    /// `quarantine`, `release_quarantine`, …
    pub action: String,
    /// The GPU it is about, where it is about one.
    pub gpu: Option<String>,
    /// Memory slices, where it is about some.
    pub slices: Option<String>,
    /// When its cause happened.
    pub since_us: i64,
    /// The event, as one canonical JSON text.
    pub event: Vec<u8>,
    /// When it was raised.
    pub raised_at_us: i64,
    /// When it is published.
    pub due_at_us: i64,
}

/// A signal as it stands.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SignalRow {
    /// Order of raising.
    pub seq: i64,
    /// Its id.
    pub signal: String,
    /// What raised it.
    pub cause: String,
    /// Whom it concerns.
    pub tenant: String,
    /// What is ordered.
    pub action: String,
    /// The GPU it is about.
    pub gpu: Option<String>,
    /// Memory slices.
    pub slices: Option<String>,
    /// When its cause happened.
    pub since_us: i64,
    /// The event.
    pub event: Vec<u8>,
    /// When it was raised.
    pub raised_at_us: i64,
    /// When it is published.
    pub due_at_us: i64,
    /// When it was withdrawn, before it was published.
    pub withdrawn_at_us: Option<i64>,
    /// When it was published first.
    pub published_at_us: Option<i64>,
    /// How often it was tried.
    pub attempts: i32,
    /// The latest answer.
    pub outcome: Option<String>,
    /// Time of the latest answer.
    pub answered_at_us: Option<i64>,
    /// When its quarantine was over.
    pub lifted_at_us: Option<i64>,
}

impl SignalRow {
    /// How far it has come.
    pub fn state(&self) -> &str {
        match self.outcome.as_deref() {
            _ if self.withdrawn_at_us.is_some() => "withdrawn",
            Some(outcome) => outcome,
            None if self.published_at_us.is_some() => "published",
            None => "raised",
        }
    }
}

/// What may be ordered.
pub const ACTIONS: [&str; 6] =
    ["deny_new", "throttle", "preempt", "resume", "quarantine", "release_quarantine"];

const COLUMNS: &str =
    "seq, signal, cause, tenant, action, gpu, slices, since_us, event, raised_at_us, due_at_us,
     withdrawn_at_us, published_at_us, attempts, outcome, answered_at_us, lifted_at_us";

/// Raises signals; one whose cause raised one before is left out, unless that did not leave and was withdrawn, or says something else: it is raised again. Returns the ids of those raised.
///
/// # Errors
/// Driver errors.
pub async fn raise(tx: &mut PgConnection, signals: &[NewSignal]) -> Result<Vec<String>, StorageError> {
    if signals.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_scalar(
        "INSERT INTO signal (signal, cause, tenant, action, gpu, slices, since_us, event, raised_at_us, due_at_us)
         SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::INT8[], $8::BYTEA[], $9::INT8[], $10::INT8[])
         ON CONFLICT (cause) DO UPDATE SET withdrawn_at_us = NULL, event = EXCLUDED.event, slices = EXCLUDED.slices, since_us = EXCLUDED.since_us,
             tenant = EXCLUDED.tenant, raised_at_us = EXCLUDED.raised_at_us, due_at_us = EXCLUDED.due_at_us
         WHERE signal.lifted_at_us IS NULL AND (signal.withdrawn_at_us IS NOT NULL
             OR signal.attempts = 0 AND (signal.slices, signal.since_us) IS DISTINCT FROM (EXCLUDED.slices, EXCLUDED.since_us))
         RETURNING signal",
    )
    .bind(signals.iter().map(|s| s.signal.as_str()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.cause.as_str()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.tenant.as_str()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.action.as_str()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.gpu.as_deref()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.slices.as_deref()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.since_us).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.event.as_slice()).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.raised_at_us).collect::<Vec<_>>())
    .bind(signals.iter().map(|s| s.due_at_us).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("raising signals")
}

/// Quarantines of these GPUs that are neither withdrawn nor over.
///
/// # Errors
/// Driver errors.
pub async fn quarantines(
    connection: &mut PgConnection,
    gpus: &[String],
) -> Result<Vec<SignalRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM signal WHERE gpu = ANY ($1) AND action = 'quarantine'
           AND withdrawn_at_us IS NULL AND lifted_at_us IS NULL ORDER BY seq"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(gpus)
        .fetch_all(connection)
        .await
        .doing("reading quarantines")
}

/// Withdraws signals that were not published yet; their cause turned out to be none. Returns those that were.
///
/// # Errors
/// Driver errors.
pub async fn withdraw(
    tx: &mut PgConnection,
    signals: &[String],
    now_us: i64,
) -> Result<Vec<String>, StorageError> {
    sqlx::query_scalar(
        "UPDATE signal SET withdrawn_at_us = $2
         WHERE signal = ANY ($1) AND published_at_us IS NULL AND withdrawn_at_us IS NULL AND attempts = 0
         RETURNING signal",
    )
    .bind(signals)
    .bind(now_us)
    .fetch_all(tx)
    .await
    .doing("withdrawing signals")
}

/// Marks quarantines as over.
///
/// # Errors
/// Driver errors.
pub async fn lift(tx: &mut PgConnection, signals: &[String], at_us: i64) -> Result<(), StorageError> {
    sqlx::query("UPDATE signal SET lifted_at_us = $2 WHERE signal = ANY ($1) AND lifted_at_us IS NULL")
        .bind(signals)
        .bind(at_us)
        .execute(tx)
        .await
        .doing("lifting quarantines")?;
    Ok(())
}

/// Signals that are due and not published, in order. They stay locked until the caller's transaction ends, and others pass them by.
///
/// # Errors
/// Driver errors.
pub async fn due(tx: &mut PgConnection, now_us: i64, most: i64) -> Result<Vec<SignalRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM signal WHERE published_at_us IS NULL AND withdrawn_at_us IS NULL AND due_at_us <= $1
         ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(now_us)
        .bind(most)
        .fetch_all(tx)
        .await
        .doing("reading signals that are due")
}

/// Counts a try. From then on a signal may have left, and is not withdrawn any more.
///
/// # Errors
/// Driver errors.
pub async fn tried(tx: &mut PgConnection, signals: &[String]) -> Result<(), StorageError> {
    sqlx::query("UPDATE signal SET attempts = attempts + 1 WHERE signal = ANY ($1)")
        .bind(signals)
        .execute(tx)
        .await
        .doing("trying signals")?;
    Ok(())
}

/// Marks a signal as published.
///
/// # Errors
/// Driver errors.
pub async fn published(tx: &mut PgConnection, signal: &str, now_us: i64) -> Result<(), StorageError> {
    sqlx::query("UPDATE signal SET published_at_us = $2 WHERE signal = $1 AND published_at_us IS NULL")
        .bind(signal)
        .bind(now_us)
        .execute(tx)
        .await
        .doing("marking a signal as published")?;
    Ok(())
}

/// Notes an allocator's answer; the latest by its own time stands. Whether the signal is known.
///
/// # Errors
/// Driver errors.
pub async fn answer(
    tx: &mut PgConnection,
    signal: &str,
    outcome: &str,
    at_us: i64,
) -> Result<bool, StorageError> {
    let known = sqlx::query(
        "UPDATE signal SET outcome = CASE WHEN COALESCE(answered_at_us, $3) <= $3 THEN $2 ELSE outcome END,
                answered_at_us = GREATEST(answered_at_us, $3)
         WHERE signal = $1",
    )
    .bind(signal)
    .bind(outcome)
    .bind(at_us)
    .execute(tx)
    .await
    .doing("noting an answer")?;
    Ok(known.rows_affected() > 0)
}

/// Which signals a page has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalQuery<'q> {
    /// Only those that concern this tenant.
    pub tenant: Option<&'q str>,
    /// Only this action.
    pub action: Option<&'q str>,
    /// Only about this GPU.
    pub gpu: Option<&'q str>,
    /// Only behind this `seq`.
    pub after: Option<i64>,
    /// How many at most.
    pub limit: i64,
}

/// Signals of a query, in the order of raising.
///
/// # Errors
/// Driver errors.
pub async fn page(
    connection: &mut PgConnection,
    query: &SignalQuery<'_>,
) -> Result<Vec<SignalRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM signal
         WHERE ($1::TEXT IS NULL OR tenant = $1) AND ($2::TEXT IS NULL OR action = $2) AND ($3::TEXT IS NULL OR gpu = $3)
           AND seq > $4 ORDER BY seq LIMIT $5"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(query.tenant)
        .bind(query.action)
        .bind(query.gpu)
        .bind(query.after.unwrap_or(i64::MIN))
        .bind(query.limit)
        .fetch_all(connection)
        .await
        .doing("reading signals")
}

/// All signals, in the order of raising.
///
/// # Errors
/// Driver errors.
pub async fn all(connection: &mut PgConnection) -> Result<Vec<SignalRow>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM signal ORDER BY seq");
    sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(connection).await.doing("reading signals")
}
