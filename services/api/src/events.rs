//! `POST /v1/events`: events into the ledger's inbox.

use crate::entitle::{refusal, speaker};
use crate::principal::Principal;
use crate::problem::{BAD_EVENT, FieldProblem, MEDIA_TYPE, Problem, ProblemBody, TOO_LARGE};
use crate::state::State;
use crate::token::Claims;
use actix_web::http::header;
use actix_web::web::{self, Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, Responder};
use gpuledger_storage::inbox::{NewItem, put};
use gpuledger_wire::{Event, EventError, Fault, decode_batch, decode_structured, encode_structured};
use serde::Serialize;
use utoipa::ToSchema;

/// Media type of one event.
const ONE: &str = "application/cloudevents+json";
/// Media type of several.
const BATCH: &str = "application/cloudevents-batch+json";

/// A structured event (CloudEvents 1.0). What `data` holds depends on `type`: see `schemas/events`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventBody {
    /// `1.0`.
    #[schema(pattern = r"^1\.0$")]
    specversion: String,
    /// Unique within its source; the same event again does nothing.
    #[schema(min_length = 1, max_length = 512)]
    id: String,
    /// Who says it; must lie under the token's `source`.
    #[schema(min_length = 1, max_length = 512)]
    source: String,
    /// `gpuledger.….v1`.
    #[schema(min_length = 1, max_length = 512)]
    r#type: String,
    /// When it happened, RFC 3339 with up to 6 fractional digits.
    #[schema(format = "date-time")]
    time: String,
    /// What is said.
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// What became of the events of a request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Taken {
    /// Events on their way to the ledger. It decides each by itself; `gpuledger parked list` names what it could not apply.
    accepted: usize,
    /// Events the token does not allow: they are parked as `not_entitled`.
    not_entitled: Vec<Set>,
    /// Events that are none: nothing is kept of them.
    refused: Vec<Set>,
}

/// One event that was set aside.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Set {
    /// Its place in the request, from 0.
    index: usize,
    /// Which place of the event is wrong, such as `data.units[0].count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Why.
    detail: String,
}

/// Send events
///
/// One structured event (CloudEvents 1.0), or a batch of them; the types are in `schemas/events`. Sending an event again does nothing: its
/// `source` and `id` are its identity. Roles: `node`, `allocator`, `gateway`, `platform`, `admin`, each for what its token names.
#[utoipa::path(
    post,
    path = "/v1/events",
    tag = "events",
    operation_id = "postEvents",
    request_body(
        description = "At most 1 MiB an event and 16 MiB a batch",
        content(
            (EventBody = "application/cloudevents+json", example = json!({
                "specversion": "1.0", "id": "a-1-released", "source": "/allocators/slurm-1", "type": "gpuledger.allocation.released.v1",
                "time": "2026-10-01T03:00:00Z", "data": {"allocation": "a-1", "reason": "completed"},
            })),
            (Vec<serde_json::Value> = "application/cloudevents-batch+json"),
        ),
    ),
    security(("bearer" = [])),
    responses(
        (status = 202, description = "Taken", body = Taken),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "Not a content type of events", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "No event, or no list of them", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn post(
    request: HttpRequest,
    principal: Principal,
    state: Data<State>,
    body: Bytes,
) -> Result<impl Responder, Problem> {
    principal.may_send()?;
    let claims = principal.0;
    let speaker = speaker(&claims);
    let batch = is_batch(&request)?;
    let (items, taken) =
        web::block(move || if batch { read_batch(&body, &claims) } else { read_one(&body, &claims) })
            .await??;
    let mut tx = state.db.begin().await?;
    put(&mut tx, &speaker, (state.now)().as_micros(), &items).await?;
    tx.commit().await?;
    Ok(HttpResponse::Accepted().json(taken))
}

fn is_batch(request: &HttpRequest) -> Result<bool, Problem> {
    let value =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media.as_str() {
        ONE => Ok(false),
        BATCH => Ok(true),
        _ => Err(Problem::with(MEDIA_TYPE, format!("send {ONE} or {BATCH}"))),
    }
}

fn read_one(body: &[u8], claims: &Claims) -> Result<(Vec<NewItem>, Taken), Problem> {
    let event = decode_structured(body).map_err(|error| problem(&error))?;
    let mut taken = Taken::default();
    Ok((vec![item(0, &event, claims, &mut taken)], taken))
}

fn read_batch(body: &[u8], claims: &Claims) -> Result<(Vec<NewItem>, Taken), Problem> {
    let mut taken = Taken::default();
    let mut items = Vec::new();
    for (index, element) in decode_batch(body).map_err(|error| problem(&error))?.into_iter().enumerate() {
        match element.event {
            Ok(event) => items.push(item(index, &event, claims, &mut taken)),
            Err(error) => {
                let (field, detail) = split(&error);
                taken.refused.push(Set { index, field, detail });
            }
        }
    }
    Ok((items, taken))
}

fn item(index: usize, event: &Event, claims: &Claims, taken: &mut Taken) -> NewItem {
    let refusal = refusal(claims, event);
    match &refusal {
        None => taken.accepted += 1,
        Some(why) => taken.not_entitled.push(Set { index, field: None, detail: why.clone() }),
    }
    NewItem { refusal, body: encode_structured(event) }
}

/// Where, and what.
fn split(error: &EventError) -> (Option<String>, String) {
    match &error.fault {
        Fault::TooLong { .. } => (None, error.to_string()),
        Fault::Malformed { field, problem } | Fault::BadField { field, problem } => {
            (Some(field.clone()), problem.clone())
        }
    }
}

fn problem(error: &EventError) -> Problem {
    if matches!(error.fault, Fault::TooLong { .. }) {
        return Problem::with(TOO_LARGE, error);
    }
    let (field, detail) = split(error);
    Problem::with(BAD_EVENT, error).error(FieldProblem { parameter: None, field, detail })
}
