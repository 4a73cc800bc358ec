//! The OpenAPI 3.1 document, made from the handlers.

use crate::{allocations, audit, events, findings, invoices, signals, usage};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, OpenApiBuilder};
use utoipa::{Modify, OpenApi};

/// Collects the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "gpuledger",
        description = "Metering, billing and audit of GPU time.\n\nEvery number is text. Instants are RFC 3339 in UTC; windows are half-open. \
                       Every answer from 400 on is a problem (RFC 9457) whose `type` is `urn:gpuledger:problem:…`; every answer carries \
                       `x-request-id`. Lists are pages: send `next_cursor` as `cursor` with the same other parameters. Answers to a valid \
                       token carry `RateLimit` and `RateLimit-Policy`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(events::post, usage::get, allocations::list, allocations::get, findings::list, signals::list, invoices::list, invoices::get,
          invoices::export, audit::checkpoint, audit::tile, audit::record, audit::proof),
    tags(
        (name = "events", description = "What happened: the only way in"),
        (name = "usage", description = "Who held what, and how much of it counts"),
        (name = "findings", description = "What a person should look at"),
        (name = "signals", description = "What allocators are ordered to do"),
        (name = "invoices", description = "Documents, as they were frozen"),
        (name = "audit", description = "The transparency log: checkpoint, tiles, leaves and proofs"),
    ),
    modifiers(&Bearer),
)]
struct Handlers;

/// Tokens.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let description = "JWT (EdDSA or RS256) with the claims iss, aud, sub, exp, nbf and role, and tenant, source, nodes and pools as \
                           the role needs them. `gpuledger token` makes one for development.";
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some(description))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// The document.
pub fn openapi() -> Document {
    let document: OpenApiBuilder = Handlers::openapi().into();
    document.build()
}

/// The document as pretty JSON with a line feed at its end: `schemas/openapi.json`.
///
/// # Errors
/// The document cannot be written as JSON.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    let mut text = openapi().to_pretty_json()?;
    text.push('\n');
    Ok(text)
}
