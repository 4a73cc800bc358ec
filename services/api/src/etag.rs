//! `ETag`s: a client that has the bytes already gets none.

use crate::cursor::hex;
use actix_web::http::header::{self, HeaderName};
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

/// A JSON answer with its `ETag`, or 304 where the client has it.
pub(crate) fn answer(
    request: &HttpRequest,
    body: String,
    extra: Option<(HeaderName, String)>,
) -> HttpResponse {
    let digest = Sha256::digest(body.as_bytes());
    let tag = format!("\"{}\"", hex(digest.iter().take(16)));
    let known = known(request, &tag);
    let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header((header::ETAG, tag)).insert_header((header::CACHE_CONTROL, "private, no-cache"));
    if known {
        return response.finish();
    }
    if let Some(header) = extra {
        response.insert_header(header);
    }
    response.content_type("application/json").body(body)
}

/// Weak comparison, as RFC 9110 has it for `If-None-Match`.
fn known(request: &HttpRequest, tag: &str) -> bool {
    let values = request.headers().get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
    values
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .any(|given| given == "*" || given.trim_start_matches("W/") == tag)
}
