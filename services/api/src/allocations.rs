//! `GET /v1/allocations[/{id}]`: who holds what, at the ledger's horizon.

use crate::cursor::Binding;
use crate::params::{Faults, one_more};
use crate::principal::{Principal, ReadScope};
use crate::problem::{NOT_FOUND, Problem, ProblemBody};
use crate::state::State;
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpResponse, Responder};
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::pages::{AllocationQuery, allocation, allocations};
use gpuledger_storage::spans::AllocationRow;
use gpuledger_trail::sealed::open_labels;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Rows of a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// Rows of a page at most.
const MAX_LIMIT: u32 = 1_000;

/// Query of `GET /v1/allocations`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AllocationParams {
    /// Only those that run or end after this instant, RFC 3339.
    #[param(example = "2026-10-01T00:00:00Z", format = "date-time")]
    from: Option<String>,
    /// Only those that begin before this instant, RFC 3339.
    #[param(example = "2026-11-01T00:00:00Z", format = "date-time")]
    to: Option<String>,
    /// Only of this Slurm job.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$", example = "4711")]
    slurm_job: Option<String>,
    /// Only of this pod.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    pod_uid: Option<String>,
    /// Only this tenant. A tenant's token needs none and takes no other.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    tenant: Option<String>,
    /// Only this project.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    project: Option<String>,
    /// `next_cursor` of the page before.
    #[param(min_length = 26, max_length = 16384, pattern = "^[0-9a-f]+$")]
    cursor: Option<String>,
    /// Rows of a page, 1 to 1000. Default: 100.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, example = 100)]
    limit: Option<String>,
}

/// A page of allocations, in order of begin and id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AllocationList {
    allocations: Vec<Allocation>,
    /// Send it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// An allocation as it stands at the ledger's horizon.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Allocation {
    /// Its id.
    id: String,
    /// Who owns it, after the last transfer.
    tenant: String,
    /// Which of the owner's projects.
    project: Option<String>,
    /// `on_demand`, `reserved` or `spot`.
    class: String,
    /// When it was granted.
    start: String,
    /// When it ended; null while it runs.
    end: Option<String>,
    /// Why it ended, or `running`, `unconfirmed`.
    state: String,
    /// Slurm job, pod.
    #[schema(value_type = Object)]
    runtime: Value,
    /// Labels of the grant. Of one that names a person the value is `sealed` to who may not have the key, and `erased` once that is destroyed.
    #[schema(value_type = Object)]
    labels: Value,
    /// Who granted it.
    source: String,
}

impl From<&AllocationRow> for Allocation {
    fn from(row: &AllocationRow) -> Self {
        let object = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Self {
            id: row.allocation.clone(),
            tenant: row.tenant.clone(),
            project: row.project.clone(),
            class: row.class.clone(),
            start: Instant::from_micros(row.start_us).to_string(),
            end: row.end_us.map(|at| Instant::from_micros(at).to_string()),
            state: row.end_kind.clone(),
            runtime: object(&row.runtime),
            labels: object(&row.labels),
            source: row.source.clone(),
        }
    }
}

/// Allocations
///
/// Roles: `tenant` (its own rows), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/allocations",
    tag = "usage",
    operation_id = "listAllocations",
    params(AllocationParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of allocations", body = AllocationList),
        (status = 400, description = "A parameter or the cursor", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role or tenant", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(
    principal: Principal,
    state: Data<State>,
    params: Query<AllocationParams>,
) -> Result<impl Responder, Problem> {
    let mut faults = Faults::default();
    let from = faults.time("from", params.from.as_deref());
    let to = faults.time("to", params.to.as_deref());
    faults.window(from, to);
    let limit = faults.limit(params.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    let project = faults.name("project", params.project.as_deref());
    let slurm_job = faults.name("slurm_job", params.slurm_job.as_deref());
    let pod_uid = faults.name("pod_uid", params.pod_uid.as_deref());
    faults.tenant(params.tenant.as_deref());
    faults.done()?;
    let reads = principal.reads(params.tenant.as_deref())?;
    let binding = bind(&params, &reads);
    let after: Option<(i64, String)> = binding.read(params.cursor.as_deref())?;
    let query = AllocationQuery {
        tenant: reads.tenant.as_deref(),
        project,
        slurm_job,
        pod_uid,
        from_us: from.unwrap_or(Instant::MIN).as_micros(),
        to_us: to.unwrap_or(Instant::MAX).as_micros(),
        after: after.as_ref().map(|(at, id)| (*at, id.as_str())),
        limit: one_more(limit),
    };
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut rows = allocations(&mut tx, &query).await?;
    open(&mut tx, &state, &mut rows).await?;
    tx.commit().await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor =
        rows.last().filter(|_| more).and_then(|row| binding.write(&(row.start_us, &row.allocation)));
    Ok(HttpResponse::Ok()
        .json(AllocationList { allocations: rows.iter().map(Into::into).collect(), next_cursor }))
}

/// Opens labels that are sealed, as far as row security shows their keys: those of persons to who reads all tenants (L-3).
async fn open(tx: &mut Tx, state: &State, rows: &mut [AllocationRow]) -> Result<(), Problem> {
    let read = |row: &AllocationRow| serde_json::from_str(&row.labels).unwrap_or_default();
    let mut labels: Vec<BTreeMap<String, String>> = rows.iter().map(read).collect();
    open_labels(tx, &state.seal, labels.iter_mut()).await?;
    for (row, labels) in rows.iter_mut().zip(labels) {
        row.labels = json!(labels).to_string();
    }
    Ok(())
}

fn bind(params: &AllocationParams, reads: &ReadScope) -> Binding {
    Binding::new(&[
        Some("/v1/allocations"),
        reads.tenant.as_deref(),
        params.from.as_deref(),
        params.to.as_deref(),
        params.slurm_job.as_deref(),
        params.pod_uid.as_deref(),
        params.project.as_deref(),
    ])
}

/// One allocation
///
/// Roles: `tenant` (its own), `finance`, `platform`, `auditor`, `admin`. Another tenant's allocation is not found.
#[utoipa::path(
    get,
    path = "/v1/allocations/{id}",
    tag = "usage",
    operation_id = "getAllocation",
    params(("id" = String, Path, description = "Id of the allocation", min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$", example = "a-1")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The allocation", body = Allocation),
        (status = 400, description = "The id", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No such allocation, or not yours", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    principal: Principal,
    state: Data<State>,
    id: Path<String>,
) -> Result<impl Responder, Problem> {
    let reads = principal.reads(None)?;
    let mut faults = Faults::default();
    faults.name("id", Some(id.as_str()));
    faults.done()?;
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut found: Vec<AllocationRow> =
        allocation(&mut tx, &id, reads.tenant.as_deref()).await?.into_iter().collect();
    open(&mut tx, &state, &mut found).await?;
    tx.commit().await?;
    match found.first() {
        Some(row) => Ok(HttpResponse::Ok().json(Allocation::from(row))),
        None => Err(Problem::with(NOT_FOUND, format!("allocation {id}"))),
    }
}
