//! The database itself: what it refuses, and what it gives back. Each test has a database of its own.

mod append_only;
mod archive;
mod batches;
mod blocks;
mod catalog;
mod database;
mod documents;
mod facts;
mod findings;
mod heard;
mod hours;
mod index;
mod journal_guards;
mod journals;
mod queues;
mod reach;
mod read_models;
mod row_security;
mod signals;
mod telemetry;
