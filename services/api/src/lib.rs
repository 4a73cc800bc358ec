//! The HTTP API: events in, usage and documents out. The only package that knows HTTP.
//!
//! Reads run under row security and name the tenant in the query besides: bound twice. Events go into an inbox that the ledger
//! empties; who may say what (I-5) is decided here and parked there. Errors are problems (RFC 9457), described with everything else in
//! the OpenAPI document.

mod admin;
mod allocations;
mod audit;
mod cursor;
mod docs;
mod entitle;
mod etag;
mod events;
mod findings;
mod invoices;
mod limit;
mod middleware;
mod openapi;
mod params;
mod principal;
mod problem;
mod routes;
mod serve;
mod signals;
mod state;
pub mod token;
mod usage;

pub use admin::serve_admin;
pub use limit::RateLimit;
pub use openapi::{openapi, openapi_json};
pub use serve::{ApiError, ApiSettings, Running, serve};
pub use state::Clock;
