//! What every request gets: an id, a line in the log, a measurement, and errors in one shape.

use crate::limit::Standing;
use crate::problem::{PROBLEM_JSON, Problem};
use crate::state::State;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpResponse};
use std::time::{Duration, Instant};

/// The header of a request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over from the client.
const MAX_ID_BYTES: usize = 64;

/// Wraps a request: see the module.
pub(crate) async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let begun = Instant::now();
    let id = request_id(request.headers());
    let response = match next.call(request).await {
        Ok(response) => response.map_into_boxed_body(),
        // Nothing below answers with an error, the routing least of all; should it, there is no request to answer to.
        Err(error) => return Err(error),
    };
    let mut response = if needs_problem(&response) { explained(response, &id) } else { response };
    finish_headers(&mut response, &id);
    record(&response, &id, begun.elapsed());
    Ok(response)
}

/// The client's id where it is harmless, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let harmless = |text: &&str| {
        (1..=MAX_ID_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(harmless);
    given.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

fn needs_problem(response: &ServiceResponse<BoxBody>) -> bool {
    response.status().is_client_error() || response.status().is_server_error()
}

/// The same answer with a problem as its body.
fn explained(response: ServiceResponse<BoxBody>, id: &str) -> ServiceResponse<BoxBody> {
    let status = response.status();
    let error = response.response().error();
    let problem = match error.and_then(|error| error.as_error::<Problem>()) {
        Some(problem) => problem.clone(),
        None => Problem::of_response(status, error.map(ToString::to_string)),
    };
    let body = problem.body(response.request().path(), id);
    let (request, old) = response.into_parts();
    let mut new = HttpResponse::build(status);
    new.content_type(PROBLEM_JSON);
    for (name, value) in old.headers() {
        if !matches!(*name, header::CONTENT_TYPE | header::CONTENT_LENGTH) {
            new.append_header((name.clone(), value.clone()));
        }
    }
    let text = serde_json::to_string(&body).unwrap_or_default();
    ServiceResponse::new(request, new.body(text))
}

fn finish_headers(response: &mut ServiceResponse<BoxBody>, id: &str) {
    let standing = response.request().extensions().get::<Standing>().copied();
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, value) in standing.iter().flat_map(Standing::headers) {
        headers.insert(name, value);
    }
}

fn record(response: &ServiceResponse<BoxBody>, id: &str, took: Duration) {
    let request = response.request();
    // Only route templates: a path is anybody's text.
    let route = request.match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let method = match *request.method() {
        Method::GET | Method::POST | Method::HEAD | Method::OPTIONS => request.method().as_str(),
        _ => "other",
    };
    let status = response.status();
    if let Some(state) = request.app_data::<Data<State>>() {
        let labels = [method, &route, status.as_str()];
        state.requests.with_label_values(&labels).observe(took.as_secs_f64());
    }
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if status.is_server_error() {
        tracing::warn!(request_id = id, method, route, status = status.as_u16(), micros, "answered");
    } else {
        tracing::debug!(request_id = id, method, route, status = status.as_u16(), micros, "answered");
    }
}
