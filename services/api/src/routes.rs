//! Which handler answers which path.

use crate::problem::{BAD_PARAMETER, INTERNAL, NOT_FOUND, Problem};
use crate::{allocations, audit, docs, events, findings, invoices, openapi, signals, usage};
use actix_web::http::header;
use actix_web::web::{self, PathConfig, PayloadConfig, QueryConfig, ServiceConfig, get, post, resource};
use actix_web::{HttpResponse, Responder};
use gpuledger_wire::MAX_BATCH_BYTES;

/// Routes, limits, and errors of extractors in the shape of all others.
pub(crate) fn configure(config: &mut ServiceConfig) {
    config
        .app_data(PayloadConfig::new(MAX_BATCH_BYTES))
        .app_data(QueryConfig::default().error_handler(|error, _| Problem::with(BAD_PARAMETER, error).into()))
        .app_data(PathConfig::default().error_handler(|error, _| Problem::with(BAD_PARAMETER, error).into()))
        .service(resource("/v1/events").route(post().to(events::post)))
        .service(resource("/v1/usage").route(get().to(usage::get)))
        .service(resource("/v1/allocations").route(get().to(allocations::list)))
        .service(resource("/v1/allocations/{id}").route(get().to(allocations::get)))
        .service(resource("/v1/findings").route(get().to(findings::list)))
        .service(resource("/v1/signals").route(get().to(signals::list)))
        .service(resource("/v1/invoices").route(get().to(invoices::list)))
        .service(resource("/v1/invoices/{id}").route(get().to(invoices::get)))
        .service(resource("/v1/invoices/{id}/export").route(get().to(invoices::export)))
        .service(resource("/checkpoint").route(get().to(audit::checkpoint)))
        .service(resource("/tile/{path:.*}").route(get().to(audit::tile)))
        .service(resource("/v1/audit/records/{index}").route(get().to(audit::record)))
        .service(resource("/v1/audit/proof").route(get().to(audit::proof)))
        .service(resource("/openapi.json").route(get().to(document)))
        .service(resource("/docs").route(get().to(readable)))
        .default_service(web::to(nothing));
}

async fn nothing() -> Result<HttpResponse, Problem> {
    Err(Problem::with(NOT_FOUND, "no such path; /docs lists them"))
}

async fn document() -> Result<impl Responder, Problem> {
    let text = openapi::openapi_json().map_err(|_| Problem::new(INTERNAL))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(text))
}

async fn readable() -> Result<impl Responder, Problem> {
    let document = serde_json::to_value(openapi::openapi()).map_err(|_| Problem::new(INTERNAL))?;
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .content_type("text/html; charset=utf-8")
        .body(docs::page(&document)))
}
