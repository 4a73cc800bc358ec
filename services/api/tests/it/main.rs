//! The service on a real Postgres and a real socket.

mod authorization;
mod client;
mod events;
mod fixture;
mod inbox;
mod openapi;
mod operation;
mod pages;
mod problems;
mod tenants;
