//! `GET /v1/findings`: what a person should look at, as it held when it was last derived.

use crate::cursor::Binding;
use crate::params::{Faults, one_more};
use crate::principal::{Principal, ReadScope};
use crate::problem::{Problem, ProblemBody};
use crate::state::State;
use actix_web::web::{Data, Query};
use actix_web::{HttpResponse, Responder};
use gpuledger_domain::time::Instant;
use gpuledger_storage::findings::{FindingQuery, FindingRow, as_of, load};
use gpuledger_wire::findings::finding_kind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Rows of a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// Rows of a page at most.
const MAX_LIMIT: u32 = 1_000;

/// Query of `GET /v1/findings`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FindingParams {
    /// Only of this kind.
    #[param(pattern = "^[a-z_]+$", max_length = 64, example = "idle_allocation")]
    kind: Option<String>,
    /// Only about this allocation, GPU, node, tenant or event.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$", example = "a-1")]
    subject: Option<String>,
    /// `open`: only those that stand. Default: `all`.
    #[param(pattern = "^(open|all)$", example = "all")]
    status: Option<String>,
    /// Only as this tenant is told. A tenant's token needs none and takes no other.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    tenant: Option<String>,
    /// `next_cursor` of the page before.
    #[param(min_length = 26, max_length = 16384, pattern = "^[0-9a-f]+$")]
    cursor: Option<String>,
    /// Rows of a page, 1 to 1000. Default: 100.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, example = 100)]
    limit: Option<String>,
}

/// A page of findings, in order of kind and subject.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FindingList {
    /// Horizon at which they were derived; null before they ever were.
    as_of: Option<String>,
    findings: Vec<Finding>,
    /// Send it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// Something a person should look at: one per kind and subject.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Finding {
    /// What; `schemas/findings.json` says from when on it is raised.
    kind: String,
    /// `info`, `warning` or `critical`.
    severity: String,
    /// The allocation, else the GPU, else the node, else the tenant, else source and id of the event.
    subject: String,
    /// Since when.
    since: String,
    /// Until when; null while it stands.
    until: Option<String>,
    /// In words. A tenant is told what the kind means where the words would name others.
    detail: String,
}

impl From<&FindingRow> for Finding {
    fn from(row: &FindingRow) -> Self {
        let severity = finding_kind(&row.kind).map_or("warning", |kind| kind.severity.as_str());
        Self {
            kind: row.kind.clone(),
            severity: severity.to_owned(),
            subject: row.subject.clone(),
            since: Instant::from_micros(row.since_us).to_string(),
            until: row.until_us.map(|at| Instant::from_micros(at).to_string()),
            detail: row.detail.clone(),
        }
    }
}

/// Findings
///
/// Roles: `tenant` (about its own allocations and itself), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/findings",
    tag = "findings",
    operation_id = "listFindings",
    params(FindingParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of findings", body = FindingList),
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
    params: Query<FindingParams>,
) -> Result<impl Responder, Problem> {
    let mut faults = Faults::default();
    let limit = faults.limit(params.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    let subject = faults.name("subject", params.subject.as_deref());
    let kind = kind(&mut faults, params.kind.as_deref());
    let open = open(&mut faults, params.status.as_deref());
    faults.tenant(params.tenant.as_deref());
    faults.done()?;
    let reads = principal.reads(params.tenant.as_deref())?;
    let binding = bind(&params, &reads);
    let after: Option<(String, String)> = binding.read(params.cursor.as_deref())?;
    let query = FindingQuery {
        tenant: reads.tenant.as_deref(),
        kind,
        subject,
        open,
        after: after.as_ref().map(|(kind, subject)| (kind.as_str(), subject.as_str())),
        limit: one_more(limit),
    };
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut rows = load(&mut tx, &query).await?;
    let as_of = as_of(&mut tx).await?;
    tx.commit().await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).and_then(|row| binding.write(&(&row.kind, &row.subject)));
    Ok(HttpResponse::Ok().json(FindingList {
        as_of: as_of.map(|at| Instant::from_micros(at).to_string()),
        findings: rows.iter().map(Into::into).collect(),
        next_cursor,
    }))
}

fn kind<'a>(faults: &mut Faults, word: Option<&'a str>) -> Option<&'a str> {
    let word = word?;
    if finding_kind(word).is_none() {
        faults.add("kind", "expected a kind of schemas/findings.json");
    }
    Some(word)
}

fn open(faults: &mut Faults, word: Option<&str>) -> bool {
    match word {
        None | Some("all") => false,
        Some("open") => true,
        Some(_) => {
            faults.add("status", "expected open or all");
            false
        }
    }
}

fn bind(params: &FindingParams, reads: &ReadScope) -> Binding {
    Binding::new(&[
        Some("/v1/findings"),
        reads.tenant.as_deref(),
        params.kind.as_deref(),
        params.subject.as_deref(),
        Some(params.status.as_deref().unwrap_or("all")),
    ])
}
