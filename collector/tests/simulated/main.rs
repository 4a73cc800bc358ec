//! The collector as it is run, on simulated nodes, against the simulator's ground truth.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says how often the hard cases came up"
)]

mod checks;
mod node;
mod oracle;
mod output;
mod random;
mod scenarios;
