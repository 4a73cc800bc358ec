//! `GET /v1/signals`: orders to allocators, and what became of them.

use crate::cursor::Binding;
use crate::params::{Faults, one_more};
use crate::principal::{Principal, ReadScope};
use crate::problem::{Problem, ProblemBody};
use crate::state::State;
use actix_web::web::{Data, Query};
use actix_web::{HttpResponse, Responder};
use gpuledger_domain::time::Instant;
use gpuledger_storage::signals::{ACTIONS, SignalQuery, SignalRow, page};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Rows of a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// Rows of a page at most.
const MAX_LIMIT: u32 = 1_000;

/// Query of `GET /v1/signals`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SignalParams {
    /// Only this action: `deny_new`, `throttle`, `preempt`, `resume`, `quarantine` or `release_quarantine`.
    #[param(pattern = "^[a-z_]+$", max_length = 64, example = "quarantine")]
    action: Option<String>,
    /// Only about this GPU.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    gpu: Option<String>,
    /// Only this tenant. A tenant's token needs none and takes no other.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    tenant: Option<String>,
    /// `next_cursor` of the page before.
    #[param(min_length = 26, max_length = 16384, pattern = "^[0-9a-f]+$")]
    cursor: Option<String>,
    /// Rows of a page, 1 to 1000. Default: 100.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, example = 100)]
    limit: Option<String>,
}

/// A page of signals, in order of raising.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignalList {
    signals: Vec<Signal>,
    /// Send it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// An order to an allocator.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Signal {
    /// Its id: one, however often it is delivered.
    signal: String,
    /// What is ordered.
    action: String,
    /// Whom it concerns.
    tenant: String,
    /// The GPU it is about; null where it is about none.
    gpu: Option<String>,
    /// Memory slices, such as `0-3`; null where it is about none.
    slices: Option<String>,
    /// `raised`, `withdrawn`, `published`, and as the allocator answered: `accepted`, `effected`, `refused`.
    state: String,
    /// When its cause happened.
    since: String,
    /// When it was raised.
    raised_at: String,
    /// When it was published first; null before.
    published_at: Option<String>,
    /// When the allocator answered last; null before.
    answered_at: Option<String>,
    /// When its quarantine was over; null before.
    lifted_at: Option<String>,
}

impl From<&SignalRow> for Signal {
    fn from(row: &SignalRow) -> Self {
        let at = |us: i64| Instant::from_micros(us).to_string();
        Self {
            signal: row.signal.clone(),
            action: row.action.clone(),
            tenant: row.tenant.clone(),
            gpu: row.gpu.clone(),
            slices: row.slices.clone(),
            state: row.state().to_owned(),
            since: at(row.since_us),
            raised_at: at(row.raised_at_us),
            published_at: row.published_at_us.map(at),
            answered_at: row.answered_at_us.map(at),
            lifted_at: row.lifted_at_us.map(at),
        }
    }
}

/// Signals
///
/// Roles: `tenant` (those that concern it), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/signals",
    tag = "signals",
    operation_id = "listSignals",
    params(SignalParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of signals", body = SignalList),
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
    params: Query<SignalParams>,
) -> Result<impl Responder, Problem> {
    let mut faults = Faults::default();
    let limit = faults.limit(params.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    let gpu = faults.name("gpu", params.gpu.as_deref());
    let action = params.action.as_deref();
    if action.is_some_and(|word| !ACTIONS.contains(&word)) {
        faults.add("action", format_args!("expected one of {}", ACTIONS.join(", ")));
    }
    faults.tenant(params.tenant.as_deref());
    faults.done()?;
    let reads = principal.reads(params.tenant.as_deref())?;
    let binding = bind(&params, &reads);
    let after: Option<i64> = binding.read(params.cursor.as_deref())?;
    let query = SignalQuery { tenant: reads.tenant.as_deref(), action, gpu, after, limit: one_more(limit) };
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut rows = page(&mut tx, &query).await?;
    tx.commit().await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).and_then(|row| binding.write(&row.seq));
    Ok(HttpResponse::Ok().json(SignalList { signals: rows.iter().map(Into::into).collect(), next_cursor }))
}

fn bind(params: &SignalParams, reads: &ReadScope) -> Binding {
    Binding::new(&[
        Some("/v1/signals"),
        reads.tenant.as_deref(),
        params.action.as_deref(),
        params.gpu.as_deref(),
    ])
}
