//! The service on a real Postgres and a real socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod audit;
mod authorization;
mod client;
mod events;
mod findings;
mod fixture;
mod inbox;
mod measured;
mod openapi;
mod operation;
mod pages;
mod problems;
mod signals;
mod tenants;
