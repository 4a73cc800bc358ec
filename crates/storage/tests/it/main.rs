//! The database itself: what it refuses, and what it gives back. Each test has a database of its own.

mod append_only;
mod batches;
mod catalog;
mod database;
mod documents;
mod facts;
mod journal_guards;
mod journals;
mod queues;
mod read_models;
mod row_security;
mod telemetry;
