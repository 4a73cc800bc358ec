//! `GET /v1/invoices[/{id}[/export]]`: documents as they were frozen.

use crate::cursor::Binding;
use crate::etag;
use crate::params::{Faults, one_more};
use crate::principal::Principal;
use crate::problem::{NOT_FOUND, Problem, ProblemBody};
use crate::state::State;
use actix_web::http::header::{self, ContentDisposition, DispositionParam, DispositionType};
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse, Responder};
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::Instant;
use gpuledger_storage::documents::DocumentRow;
use gpuledger_storage::pages::{DocumentHead, DocumentQuery, document, documents};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

/// Rows of a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// Rows of a page at most.
const MAX_LIMIT: u32 = 1_000;
/// What a document can be.
const STATUSES: [&str; 4] = ["draft", "issued", "paid", "discarded"];

/// Query of `GET /v1/invoices`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InvoiceParams {
    /// Only of this billing period.
    #[param(pattern = "^[0-9]{4}-(0[1-9]|1[0-2])$", example = "2026-10")]
    period: Option<String>,
    /// Only `draft`, `issued`, `paid` or `discarded` ones.
    #[param(pattern = "^(draft|issued|paid|discarded)$", example = "issued")]
    status: Option<String>,
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

/// Query of `GET /v1/invoices/{id}/export`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportParams {
    /// `json` (default): the document's bytes. Other formats: `gpuledger invoice export`.
    #[param(pattern = "^json$", example = "json")]
    format: Option<String>,
}

/// A page of documents, in order of period and id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceList {
    invoices: Vec<InvoiceHead>,
    /// Send it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// A document without its lines.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceHead {
    /// Its id.
    id: String,
    /// Given at issue.
    number: Option<String>,
    /// `invoice` or `credit_note`.
    kind: String,
    /// `draft`, `issued`, `paid` or `discarded`.
    status: String,
    /// Who issues.
    seller: String,
    /// Who pays.
    customer: String,
    /// Whose usage.
    tenant: String,
    /// The month.
    period: String,
    /// When it was drafted.
    created_at: String,
    /// When it was issued.
    issued_at: Option<String>,
    /// When it was paid.
    paid_at: Option<String>,
}

impl From<&DocumentHead> for InvoiceHead {
    fn from(head: &DocumentHead) -> Self {
        let time = |at: i64| Instant::from_micros(at).to_string();
        Self {
            id: head.id.clone(),
            number: head.number.clone(),
            kind: head.kind.clone(),
            status: head.status.clone(),
            seller: head.seller.clone(),
            customer: head.customer.clone(),
            tenant: head.tenant.clone(),
            period: head.period.clone(),
            created_at: time(head.created_at_us),
            issued_at: head.issued_at_us.map(time),
            paid_at: head.paid_at_us.map(time),
        }
    }
}

/// Documents
///
/// Roles: `tenant` (its own), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/invoices",
    tag = "invoices",
    operation_id = "listInvoices",
    params(InvoiceParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "A page of documents", body = InvoiceList),
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
    params: Query<InvoiceParams>,
) -> Result<impl Responder, Problem> {
    let mut faults = Faults::default();
    let limit = faults.limit(params.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    let period = params.period.as_deref();
    if period.is_some_and(|period| period.parse::<Period>().is_err()) {
        faults.add("period", "expected a month such as 2026-10");
    }
    let status = params.status.as_deref();
    if status.is_some_and(|status| !STATUSES.contains(&status)) {
        faults.add("status", "expected draft, issued, paid or discarded");
    }
    faults.tenant(params.tenant.as_deref());
    faults.done()?;
    let reads = principal.reads(params.tenant.as_deref())?;
    let binding = Binding::new(&[Some("/v1/invoices"), reads.tenant.as_deref(), period, status]);
    let after: Option<(String, String)> = binding.read(params.cursor.as_deref())?;
    let query = DocumentQuery {
        tenant: reads.tenant.as_deref(),
        period,
        status,
        after: after.as_ref().map(|(period, id)| (period.as_str(), id.as_str())),
        limit: one_more(limit),
    };
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let mut rows = documents(&mut tx, &query).await?;
    tx.commit().await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).and_then(|row| binding.write(&(&row.period, &row.id)));
    Ok(HttpResponse::Ok().json(InvoiceList { invoices: rows.iter().map(Into::into).collect(), next_cursor }))
}

/// One document
///
/// As `gpuledger invoice show --format json` prints it. Roles: `tenant` (its own), `finance`, `platform`, `auditor`, `admin`. Another
/// tenant's document is not found.
#[utoipa::path(
    get,
    path = "/v1/invoices/{id}",
    tag = "invoices",
    operation_id = "getInvoice",
    params(
        ("id" = String, Path, description = "Id of the document", min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$"),
        ("if-none-match" = Option<String>, Header, description = "ETag of what the client has"),
    ),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The document", body = Object, headers(("etag" = String, description = "Changes with the document"))),
        (status = 304, description = "The client has it already"),
        (status = 400, description = "The id", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No such document, or not yours", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    request: HttpRequest,
    principal: Principal,
    state: Data<State>,
    id: Path<String>,
) -> Result<impl Responder, Problem> {
    let row = find(&principal, &state, &id).await?;
    Ok(etag::answer(&request, text(&row), None))
}

/// One document as a file
///
/// Roles: `tenant` (its own), `finance`, `platform`, `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/invoices/{id}/export",
    tag = "invoices",
    operation_id = "exportInvoice",
    params(
        ("id" = String, Path, description = "Id of the document", min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$"),
        ExportParams,
        ("if-none-match" = Option<String>, Header, description = "ETag of what the client has"),
    ),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The document", body = Object, headers(("etag" = String, description = "Changes with the document"))),
        (status = 304, description = "The client has it already"),
        (status = 400, description = "The id or the format", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No such document, or not yours", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn export(
    request: HttpRequest,
    principal: Principal,
    state: Data<State>,
    id: Path<String>,
    params: Query<ExportParams>,
) -> Result<impl Responder, Problem> {
    let mut faults = Faults::default();
    if params.format.as_deref().is_some_and(|format| format != "json") {
        faults.add("format", "expected json; other formats: gpuledger invoice export");
    }
    faults.done()?;
    let row = find(&principal, &state, &id).await?;
    let name = row.number.as_deref().unwrap_or(&row.id);
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let file = ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename(format!("{safe}.json"))],
    };
    Ok(etag::answer(&request, text(&row), Some((header::CONTENT_DISPOSITION, file.to_string()))))
}

async fn find(principal: &Principal, state: &State, id: &str) -> Result<DocumentRow, Problem> {
    let reads = principal.reads(None)?;
    let mut faults = Faults::default();
    faults.name("id", Some(id));
    faults.done()?;
    let mut tx = state.db.snapshot_of(reads.scope()).await?;
    let found = document(&mut tx, id, reads.tenant.as_deref()).await?;
    tx.commit().await?;
    found.ok_or_else(|| Problem::with(NOT_FOUND, format!("document {id}")))
}

/// The frozen bytes. What was paid or discarded since then is the row's to say: those bytes never change.
fn text(row: &DocumentRow) -> String {
    let stands = |value: &Value| value.get("status").and_then(Value::as_str) == Some(&row.status);
    match serde_json::from_str::<Value>(&row.body) {
        Ok(mut value) if !stands(&value) && value.is_object() => {
            value["status"] = json!(row.status);
            value.to_string()
        }
        _ => row.body.clone(),
    }
}
