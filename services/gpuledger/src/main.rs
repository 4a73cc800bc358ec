//! `gpuledger`: the command line and the composition of the services.

mod cli;
mod clock;
mod commands;
mod demo;
mod findings;
mod outcome;
mod progress;
mod settings;
mod table;

use clap::Parser;
use outcome::Outcome;
use std::process::ExitCode;

/// Batches are made on one thread and freed on another, megabytes at a time: glibc's heaps of each thread keep what the largest batch needed.
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Reads FAILPOINTS; the places it names act until the end.
    // A release build looks at no failpoint, whatever its features.
    #[cfg(all(feature = "failpoints", debug_assertions))]
    let _failpoints = fail::FailScenario::setup();
    let arguments = match cli::Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::report(&error.into()),
    };
    match runtime.block_on(commands::run(arguments)) {
        Ok(outcome) => outcome.into(),
        Err(error) => Outcome::report(&error),
    }
}
