//! Read models at the ledger's horizon: held time per unit, and allocations.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use crate::index::Asked;
use sqlx::PgConnection;

/// Held time of one unit of an allocation with unchanged holders and shares.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SpanRow {
    /// Owner of the time.
    pub tenant: String,
    /// Its project.
    pub project: Option<String>,
    /// Allocation.
    pub allocation: String,
    /// Index of the unit within it, from 0.
    pub unit: i32,
    /// Alike units: above 1 for unplaced units only.
    pub count: i32,
    /// Priced kind of unit.
    pub sku: String,
    /// `on_demand`, `reserved`, `spot`.
    pub class: String,
    /// None: unplaced.
    pub gpu: Option<String>,
    /// None: unplaced.
    pub node: Option<String>,
    /// Begin.
    pub start_us: i64,
    /// End, exclusive.
    pub end_us: i64,
    /// Since when holders and shares are what they are; none: held alone.
    pub since_us: Option<i64>,
    /// Rationals of all holders of the unit in order of allocation id, the free rest last; empty: held alone.
    pub weights: Vec<String>,
    /// Place of this allocation in `weights`.
    pub position: i32,
    /// None: unplaced.
    pub compute_slices: Option<i16>,
    /// None: unplaced.
    pub memory_slices: Option<i16>,
    /// Compute slices of the whole GPU; none: unplaced.
    pub gpu_compute_slices: Option<i16>,
    /// Memory slices of the whole GPU; none: unplaced.
    pub gpu_memory_slices: Option<i16>,
    /// Whole-GPU equivalent of the unit, a rational as text.
    pub weight: String,
    /// Whether the tenant holds the unit, rather than being served by a pool that does.
    pub held: bool,
    /// Billing state over the time.
    pub state: Option<String>,
    /// First memory slice of the unit; none: unplaced.
    pub memory_start: Option<i16>,
    /// Slurm job by which process owners tell this span.
    pub slurm_job: Option<String>,
    /// Pod by which process owners tell this span.
    pub pod_uid: Option<String>,
    /// Held by these names in the minute of the start, before it.
    pub before_us: i32,
    /// Held by these names in the minute of the end, from it on.
    pub after_us: i32,
    /// Whether the unit is held exclusively.
    pub alone: bool,
}

/// End of a span that goes on with the horizon, as it is stored; read it is the horizon.
pub const OPEN: i64 = i64::MAX;

/// An allocation as it stands.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AllocationRow {
    /// Its id.
    pub allocation: String,
    /// Last owner.
    pub tenant: String,
    /// Last owner's project.
    pub project: Option<String>,
    /// `on_demand`, `reserved`, `spot`.
    pub class: String,
    /// Begin.
    pub start_us: i64,
    /// End; none while it runs.
    pub end_us: Option<i64>,
    /// Why it ended, or `running`, `unconfirmed`.
    pub end_kind: String,
    /// JSON object: `slurm_job`, `pod_uid`, …
    pub runtime: String,
    /// JSON object.
    pub labels: String,
    /// Who granted it.
    pub source: String,
}

/// Which spans: all conditions must hold. Under [`crate::Role::Api`] row security narrows it further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanFilter<'a> {
    /// Spans that end after this.
    pub from_us: i64,
    /// Spans that begin before this.
    pub to_us: i64,
    /// Of this tenant.
    pub tenant: Option<&'a str>,
    /// Of this project.
    pub project: Option<&'a str>,
    /// Of this allocation.
    pub allocation: Option<&'a str>,
}

/// A page of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationPage<'a> {
    /// Allocations that end after this, or run.
    pub from_us: i64,
    /// Allocations that begin before this.
    pub to_us: i64,
    /// Of this tenant.
    pub tenant: Option<&'a str>,
    /// Of this project.
    pub project: Option<&'a str>,
    /// Ids above this one; empty: from the first.
    pub after: &'a str,
    /// At most so many.
    pub limit: i64,
}

/// Replaces all spans on `gpus`, and the unplaced ones of `allocations`, by `spans`.
///
/// # Errors
/// [`StorageError::Refused`] for a span that is no interval; driver errors.
pub async fn replace_spans(
    tx: &mut PgConnection,
    allocations: &[String],
    gpus: &[String],
    spans: &[SpanRow],
) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM usage_span WHERE gpu = ANY($2) OR (gpu IS NULL AND allocation = ANY($1))")
        .bind(allocations)
        .bind(gpus)
        .execute(&mut *tx)
        .await
        .doing("replacing usage")?;
    insert_spans(tx, spans).await
}

/// Removes every span and allocation, before all is derived anew.
///
/// # Errors
/// Driver errors.
pub async fn clear(tx: &mut PgConnection) -> Result<(), StorageError> {
    for statement in ["DELETE FROM usage_span", "DELETE FROM allocation"] {
        sqlx::query(statement).execute(&mut *tx).await.doing("replacing usage")?;
    }
    Ok(())
}

/// Adds spans.
///
/// # Errors
/// [`StorageError::Refused`] for a span that is no interval; driver errors.
pub async fn insert_spans(tx: &mut PgConnection, spans: &[SpanRow]) -> Result<(), StorageError> {
    let mut rows = CopyRows::default();
    for span in spans {
        push_span(&mut rows, span);
    }
    let statement = "COPY usage_span (tenant, project, allocation, unit, count, sku, class, gpu, node, start_us, end_us, since_us,
                     weights, position, compute_slices, memory_slices, gpu_compute_slices, gpu_memory_slices, weight,
                     held, state, memory_start, slurm_job, pod_uid, before_us, after_us, alone) FROM STDIN";
    rows.send(tx, statement, "replacing usage").await?;
    Ok(())
}

fn push_span(rows: &mut CopyRows, span: &SpanRow) {
    rows.text(&span.tenant).text_or_null(span.project.as_deref());
    rows.text(&span.allocation).plain(span.unit).plain(span.count).text(&span.sku).text(&span.class);
    rows.text_or_null(span.gpu.as_deref()).text_or_null(span.node.as_deref());
    rows.plain(span.start_us).plain(span.end_us).plain_or_null(span.since_us);
    // Rationals are digits and a stroke: nothing in them needs quotes.
    rows.text(&format!("{{{}}}", span.weights.join(","))).plain(span.position);
    rows.plain_or_null(span.compute_slices).plain_or_null(span.memory_slices);
    rows.plain_or_null(span.gpu_compute_slices)
        .plain_or_null(span.gpu_memory_slices)
        .text(&span.weight)
        .plain(span.held)
        .text_or_null(span.state.as_deref())
        .plain_or_null(span.memory_start)
        .text_or_null(span.slurm_job.as_deref())
        .text_or_null(span.pod_uid.as_deref())
        .plain(span.before_us)
        .plain(span.after_us)
        .plain(span.alone)
        .end_row();
}

/// A span as it stands, with the place of its row, which holds until the row changes.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct StandingSpan {
    /// Place of the row.
    pub ctid: String,
    /// What it says; its end is [`OPEN`] where it goes on with the horizon.
    #[sqlx(flatten)]
    pub span: SpanRow,
}

/// Spans on each GPU that end after its instant, as they are stored. The GPUs must be locked.
///
/// # Errors
/// Driver errors.
pub async fn standing_spans(
    tx: &mut PgConnection,
    asked: &[Asked],
) -> Result<Vec<StandingSpan>, StorageError> {
    sqlx::query_as(
        "SELECT found.* FROM UNNEST($1::TEXT[], $2::INT8[]) AS asked (gpu, from_us) CROSS JOIN LATERAL (
            SELECT ctid::TEXT, tenant, project, allocation, unit, count, sku, class, gpu, node, start_us, end_us, since_us, weights,
                   position, compute_slices, memory_slices, gpu_compute_slices, gpu_memory_slices, weight, held, state, memory_start,
                   slurm_job, pod_uid, before_us, after_us, alone
            FROM usage_span AS s WHERE s.gpu = asked.gpu AND s.end_us > asked.from_us OFFSET 0) AS found",
    )
    .bind(asked.iter().map(|(gpu, _)| gpu.as_str()).collect::<Vec<_>>())
    .bind(asked.iter().map(|(_, us)| *us).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("reading usage")
}

/// Removes the spans at these places, read in the same transaction.
///
/// # Errors
/// Driver errors.
pub async fn remove_spans(tx: &mut PgConnection, ctids: &[String]) -> Result<(), StorageError> {
    if ctids.is_empty() {
        return Ok(());
    }
    sqlx::query("DELETE FROM usage_span WHERE ctid = ANY($1::TEXT[]::TID[])")
        .bind(ctids)
        .execute(tx)
        .await
        .doing("replacing usage")?;
    Ok(())
}

/// Spans by allocation, unit and begin. One that goes on ends at the horizon.
///
/// # Errors
/// Driver errors.
pub async fn load_spans(
    connection: &mut PgConnection,
    filter: &SpanFilter<'_>,
) -> Result<Vec<SpanRow>, StorageError> {
    sqlx::query_as(
        r#"SELECT tenant, project, allocation, unit, count, sku, class, gpu, node, start_us,
                  CASE WHEN end_us = 9223372036854775807 THEN COALESCE(horizon_us, end_us) ELSE end_us END AS end_us, since_us, weights, position,
                  compute_slices, memory_slices, gpu_compute_slices, gpu_memory_slices, weight, held, state, memory_start,
                  slurm_job, pod_uid, before_us, after_us, alone
           FROM usage_span CROSS JOIN (SELECT horizon_us FROM ledger_state) AS state
           WHERE end_us > $1 AND start_us < $2 AND ($3::TEXT IS NULL OR tenant = $3)
             AND ($4::TEXT IS NULL OR project = $4) AND ($5::TEXT IS NULL OR allocation = $5)
             AND (end_us < 9223372036854775807 OR COALESCE(horizon_us > $1, TRUE))
           ORDER BY allocation COLLATE "C", unit, start_us, gpu COLLATE "C", tenant COLLATE "C", project COLLATE "C" NULLS FIRST, held"#,
    )
    .bind(filter.from_us)
    .bind(filter.to_us)
    .bind(filter.tenant)
    .bind(filter.project)
    .bind(filter.allocation)
    .fetch_all(connection)
    .await
    .doing("reading usage")
}

/// Replaces the rows of `allocations` by `rows`; those without a new row disappear.
///
/// # Errors
/// Driver errors.
pub async fn replace_allocations(
    tx: &mut PgConnection,
    allocations: &[String],
    rows: &[AllocationRow],
) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM allocation WHERE allocation = ANY($1)")
        .bind(allocations)
        .execute(&mut *tx)
        .await
        .doing("replacing allocations")?;
    let mut copy = CopyRows::default();
    for row in rows {
        copy.text(&row.allocation).text(&row.tenant).text_or_null(row.project.as_deref()).text(&row.class);
        copy.plain(row.start_us).plain_or_null(row.end_us).text(&row.end_kind);
        copy.text(&row.runtime).text(&row.labels).text(&row.source).end_row();
    }
    let statement = "COPY allocation (allocation, tenant, project, class, start_us, end_us, end_kind, runtime, labels, source) FROM STDIN";
    copy.send(tx, statement, "replacing allocations").await?;
    Ok(())
}

/// One page of allocations, by the bytes of their ids.
///
/// # Errors
/// Driver errors.
pub async fn load_allocations(
    connection: &mut PgConnection,
    page: &AllocationPage<'_>,
) -> Result<Vec<AllocationRow>, StorageError> {
    sqlx::query_as(
        r#"SELECT allocation, tenant, project, class, start_us, end_us, end_kind, runtime::TEXT AS runtime,
                  labels::TEXT AS labels, source
           FROM allocation
           WHERE COALESCE(end_us > $1, true) AND start_us < $2 AND ($3::TEXT IS NULL OR tenant = $3)
             AND ($4::TEXT IS NULL OR project = $4) AND allocation COLLATE "C" > $5
           ORDER BY allocation COLLATE "C" LIMIT $6"#,
    )
    .bind(page.from_us)
    .bind(page.to_us)
    .bind(page.tenant)
    .bind(page.project)
    .bind(page.after)
    .bind(page.limit)
    .fetch_all(connection)
    .await
    .doing("reading allocations")
}

/// The rows of these allocations, as far as row security shows them.
///
/// # Errors
/// Driver errors.
pub async fn allocations_of(
    connection: &mut PgConnection,
    allocations: &[String],
) -> Result<Vec<AllocationRow>, StorageError> {
    sqlx::query_as(
        "SELECT allocation, tenant, project, class, start_us, end_us, end_kind, runtime::TEXT AS runtime, labels::TEXT AS labels, source
         FROM allocation WHERE allocation = ANY($1)",
    )
    .bind(allocations)
    .fetch_all(connection)
    .await
    .doing("reading allocations")
}
