//! This room against a real broker: `KAFKA_BOOTSTRAP` if set, else the local stack's.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says why it is skipped"
)]

mod group;
mod offsets;
mod publish;
mod restart;
mod support;
mod topics;
