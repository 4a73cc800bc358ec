//! `GET /v1/usage`: held and billed time at the ledger's horizon.

use crate::cursor::Binding;
use crate::params::Faults;
use crate::principal::{Principal, ReadScope};
use crate::problem::{Problem, ProblemBody};
use crate::state::State;
use actix_web::web::{self, Data, Query};
use actix_web::{HttpResponse, Responder};
use gpuledger_books::spans::span_of;
use gpuledger_books::usage::portions;
use gpuledger_books::usage_json::usage_json;
use gpuledger_domain::fact::Class;
use gpuledger_domain::ids::{AllocationId, ProjectId, Source, TenantId};
use gpuledger_domain::report::{GroupKey, Report, ReportContext, Weight};
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use gpuledger_domain::usage::{AllocationView, End, UsageSpan};
use gpuledger_storage::PgConnection;
use gpuledger_storage::pages::{AllocationQuery, allocations};
use gpuledger_storage::spans::{AllocationRow, SpanFilter, load_spans};
use gpuledger_trail::sealed::open_labels;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::{IntoParams, ToSchema};

/// Rows of a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 1_000;
/// Rows of a page at most.
const MAX_LIMIT: u32 = 10_000;
/// Longest window that is grouped by hour: 400 days.
const MAX_HOURLY_US: i64 = 400 * 24 * HOUR_US;
/// Group keys at most.
const MAX_KEYS: usize = 12;

/// Query of `GET /v1/usage`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// From this instant on, RFC 3339.
    #[param(required = true, example = "2026-10-01T00:00:00Z", format = "date-time")]
    from: Option<String>,
    /// Before this instant, RFC 3339.
    #[param(required = true, example = "2026-11-01T00:00:00Z", format = "date-time")]
    to: Option<String>,
    /// Keys of the rows, by comma: `tenant`, `project`, `sku`, `class`, `allocation`, `node`, `day`, `hour`, `month`, `label.NAME`;
    /// empty: one row for all. Default: `tenant`.
    #[param(example = "tenant,sku")]
    group_by: Option<String>,
    /// By what whole-GPU equivalents count: slices of `memory` (default) or `compute`, the larger of both (`dominant`), or SM-active time
    /// (`sm`).
    #[param(pattern = "^(memory|compute|dominant|sm)$", example = "memory")]
    weight: Option<String>,
    /// Only this tenant. A tenant's token needs none and takes no other.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    tenant: Option<String>,
    /// Only this project.
    #[param(min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    project: Option<String>,
    /// `next_cursor` of the page before.
    #[param(min_length = 26, max_length = 16384, pattern = "^[0-9a-f]+$")]
    cursor: Option<String>,
    /// Rows of a page, 1 to 10000. Default: 1000.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 10000, example = 1000)]
    limit: Option<String>,
}

/// A page of usage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageReport {
    /// As asked for.
    from: String,
    /// As asked for.
    to: String,
    /// Horizon of the ledger; null before anything was settled.
    as_of: Option<String>,
    /// Sorted by their keys.
    rows: Vec<UsageReportRow>,
    /// Send it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// One row of usage. Numbers are text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageReportRow {
    /// Time the tenant held units, in unit-microseconds.
    allocated_us: String,
    /// Time after shares, in seconds: what is billed.
    unit_seconds: String,
    /// Whole-GPU equivalents, in seconds; null where they are weighed by SM-active time and none was measured.
    gpu_seconds: Option<String>,
    /// Null where no unit was placed.
    compute_slice_us: Option<String>,
    /// Null where no unit was placed.
    memory_slice_us: Option<String>,
    /// Time with an active SM, in microseconds; null where it was not measured, which is not zero.
    sm_active_us: Option<String>,
    /// How SM-active time was measured: the weakest label that went in; where it is null, why.
    quality: String,
    /// Held time that the readings of SM-active time cover, in microseconds.
    covered_us: String,
    /// Memory in use, in bytes times microseconds; null where it was not measured.
    memory_byte_us: Option<String>,
    /// Energy in millijoules, of whole GPUs; null where it was not measured.
    energy_mj: Option<String>,
    /// The group keys; null where the row has none.
    #[serde(flatten)]
    keys: BTreeMap<String, Option<String>>,
}

/// What is asked for, checked.
struct Asked {
    window: Window,
    keys: Vec<GroupKey>,
    weight: Weight,
    limit: usize,
}

/// Usage at the ledger's horizon
///
/// Roles: `tenant` (its own rows), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/usage",
    tag = "usage",
    operation_id = "getUsage",
    params(UsageParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of rows", body = UsageReport),
        (status = 400, description = "A parameter or the cursor", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role or tenant", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    principal: Principal,
    state: Data<State>,
    params: Query<UsageParams>,
) -> Result<impl Responder, Problem> {
    let asked = check(&params)?;
    let reads = principal.reads(params.tenant.as_deref())?;
    let binding = bind(&params, &reads);
    let after: Option<Vec<Option<String>>> = binding.read(params.cursor.as_deref())?;

    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut found = load(&mut tx, &params, &reads, &asked).await?;
    open_labels(&mut tx, &state.seal, found.labelled.iter_mut().map(|view| &mut view.labels)).await?;
    let Asked { window, keys, weight, limit } = asked;
    let as_of = found.as_of;
    let (keys, mut report) = web::block(move || {
        let report = found.report(window, &keys, weight);
        (keys, report)
    })
    .await?;
    for portion in portions(&mut tx, &report).await? {
        let rollups = portion.load(&mut tx).await?;
        report = web::block(move || {
            report.measure(&rollups);
            report
        })
        .await?;
    }
    tx.commit().await?;

    let mut rows = report.into_rows();
    rows.retain(|row| after.as_ref().is_none_or(|last| row.keys > *last));
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).and_then(|row| binding.write(&row.keys));
    let mut report = usage_json(window.start(), window.end(), as_of.unwrap_or_default(), &keys, &rows);
    if as_of.is_none() {
        report["as_of"] = Value::Null;
    }
    report["next_cursor"] = json!(next);
    Ok(HttpResponse::Ok().json(report))
}

fn check(params: &UsageParams) -> Result<Asked, Problem> {
    let mut faults = Faults::default();
    let from = faults.needed_time("from", params.from.as_deref());
    let to = faults.needed_time("to", params.to.as_deref());
    let window = faults.window(from, to);
    let keys = keys(&mut faults, params.group_by.as_deref().unwrap_or("tenant"));
    let weight = Weight::parse(params.weight.as_deref().unwrap_or("memory")).unwrap_or_else(|| {
        faults.add("weight", "expected memory, compute, dominant or sm");
        Weight::Memory
    });
    let limit = faults.limit(params.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    faults.tenant(params.tenant.as_deref());
    faults.name("project", params.project.as_deref());
    if keys.contains(&GroupKey::Hour) && window.is_some_and(|window| window.micros() > MAX_HOURLY_US) {
        faults.add("group_by", "hour: the window is longer than 400 days");
    }
    faults.done()?;
    let window = window.ok_or_else(|| Problem::parameters(Vec::new()))?;
    Ok(Asked { window, keys, weight, limit })
}

fn keys(faults: &mut Faults, text: &str) -> Vec<GroupKey> {
    let mut keys = Vec::new();
    for word in text.split(',').filter(|_| !text.is_empty()) {
        match GroupKey::parse(word) {
            Some(key) if keys.contains(&key) => faults.add("group_by", format_args!("{word} stands twice")),
            Some(key) => keys.push(key),
            None => faults.add(
                "group_by",
                "expected tenant, project, sku, class, allocation, node, day, hour, month or label.NAME, by comma",
            ),
        }
    }
    if keys.len() > MAX_KEYS {
        faults.add("group_by", format_args!("expected at most {MAX_KEYS} keys"));
    }
    keys
}

/// A cursor belongs to its query and to whose rows it reads.
fn bind(params: &UsageParams, reads: &ReadScope) -> Binding {
    Binding::new(&[
        Some("/v1/usage"),
        reads.tenant.as_deref(),
        params.from.as_deref(),
        params.to.as_deref(),
        Some(params.group_by.as_deref().unwrap_or("tenant")),
        Some(params.weight.as_deref().unwrap_or("memory")),
        params.project.as_deref(),
    ])
}

/// What the rows are made of.
struct Found {
    as_of: Option<Instant>,
    spans: Vec<UsageSpan>,
    zones: BTreeMap<TenantId, chrono_tz::Tz>,
    labelled: Vec<AllocationView>,
}

impl Found {
    fn report(self, window: Window, keys: &[GroupKey], weight: Weight) -> Report {
        let allocations = self.labelled.iter().map(|view| (view.allocation.as_str(), view)).collect();
        let context = ReportContext { zones: self.zones, allocations, weight };
        Report::new(self.spans, window, keys, &context)
    }
}

async fn load(
    connection: &mut PgConnection,
    params: &UsageParams,
    reads: &ReadScope,
    asked: &Asked,
) -> Result<Found, Problem> {
    let standing = gpuledger_storage::state::load(connection).await?;
    let filter = SpanFilter {
        from_us: asked.window.start().as_micros(),
        to_us: asked.window.end().as_micros(),
        tenant: reads.tenant.as_deref(),
        project: params.project.as_deref(),
        allocation: None,
    };
    let rows = load_spans(connection, &filter).await?;
    let spans = rows.iter().map(span_of).collect::<Result<Vec<_>, _>>()?;
    let zones = gpuledger_books::objects::load(connection).await?.zones();
    let labelled = if asked.keys.iter().any(|key| matches!(key, GroupKey::Label(_))) {
        labels(connection, reads, &filter, &spans).await?
    } else {
        Vec::new()
    };
    Ok(Found { as_of: standing.horizon_us.map(Instant::from_micros), spans, zones, labelled })
}

/// Allocations of the spans, for their labels.
async fn labels(
    connection: &mut PgConnection,
    reads: &ReadScope,
    filter: &SpanFilter<'_>,
    spans: &[UsageSpan],
) -> Result<Vec<AllocationView>, Problem> {
    let wanted: BTreeSet<&str> = spans.iter().map(|span| span.allocation.as_str()).collect();
    let query = AllocationQuery {
        tenant: reads.tenant.as_deref(),
        project: None,
        slurm_job: None,
        pod_uid: None,
        from_us: filter.from_us,
        to_us: filter.to_us,
        after: None,
        limit: i64::MAX,
    };
    let rows = allocations(connection, &query).await?;
    Ok(rows.iter().filter(|row| wanted.contains(row.allocation.as_str())).filter_map(view).collect())
}

fn view(row: &AllocationRow) -> Option<AllocationView> {
    Some(AllocationView {
        allocation: AllocationId::new(&row.allocation),
        start: Instant::from_micros(row.start_us),
        end: End::Open,
        unit_ends: BTreeMap::new(),
        tenant: TenantId::new(&row.tenant),
        project: row.project.as_deref().map(ProjectId::new),
        class: Class::parse(&row.class)?,
        reason: None,
        labels: serde_json::from_str(&row.labels).unwrap_or_default(),
        slurm_job: None,
        pod_uid: None,
        source: Source::new(&row.source),
    })
}
