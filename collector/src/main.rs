//! `gpuledger-collector`: the command line.

mod outcome;

use anyhow::Result;
use clap::Parser;
use gpuledger_collector::cli::{Cli, Command, Format, Output};
use gpuledger_collector::clock::{Clock, FileClock, RealClock};
use gpuledger_collector::run::{Finished, run};
use gpuledger_collector::settings::Settings;
use gpuledger_collector::{driver, probe, sample};
use gpuledger_domain::time::Instant;
use gpuledger_telemetry::logs::{LogFormat, init};
use gpuledger_telemetry::terminal::{say, say_err};
use outcome::{OutOfReach, Outcome};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // Where the allocator refuses, the process is larger, and right all the same.
    let _ = gpuledger_footprint::keep_heap_small();
    // Reads FAILPOINTS; the places it names act until the end. A release build looks at no failpoint, whatever its features.
    #[cfg(all(feature = "failpoints", debug_assertions))]
    let _failpoints = fail::FailScenario::setup();
    let arguments = match Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::usage(&error),
    };
    match carry_out(arguments) {
        Ok(outcome) => outcome.into(),
        Err(error) => Outcome::report(&error),
    }
}

fn carry_out(arguments: Cli) -> Result<Outcome> {
    let mut settings = Settings::load(arguments.config.as_deref())?;
    match arguments.command {
        Command::Run { dcgm_names, clock, until } => {
            settings.dcgm_names |= dcgm_names;
            settings.clock_file = clock.or(settings.clock_file);
            measure(&settings, until)
        }
        Command::Probe(output) => print_probe(&settings, output),
        Command::Sample { once, output } => print_samples(&settings, once, output),
    }
}

fn measure(settings: &Settings, until: Option<Instant>) -> Result<Outcome> {
    init(if settings.log_json { LogFormat::Json } else { LogFormat::Human }, &settings.log)?;
    let shown =
        |address| tracing::info!("metrics at http://{address}/metrics, health at /healthz and /readyz");
    let Finished { left } = run(settings, until, shown)?;
    if left > 0 {
        tracing::warn!(left, "records stay in the spool; the next start sends them");
    }
    Ok(Outcome::Done)
}

fn print_probe(settings: &Settings, output: Output) -> Result<Outcome> {
    let driver = driver::load(settings.nvml_library.clone())?;
    let report = probe::probe(&driver, settings)?;
    match output.format {
        Format::Table => say(probe::table(&report).trim_end()),
        Format::Json => say(&serde_json::to_string(&report)?),
    }
    Ok(if report.is_complete() { Outcome::Done } else { Outcome::No })
}

fn print_samples(settings: &Settings, once: bool, output: Output) -> Result<Outcome> {
    let driver = driver::load(settings.nvml_library.clone())?;
    let clock = clock(settings.clock_file.as_deref())?;
    loop {
        let sampled = sample::take(&driver, settings, &clock)?;
        match output.format {
            Format::Table => say(sample::table(&sampled).trim_end()),
            Format::Json => {
                say(&sample::json(&sampled)?);
                sampled
                    .unreadable
                    .iter()
                    .for_each(|(index, why)| say_err(&format!("GPU {index} cannot be read: {why}")));
            }
        }
        if once || sampled.hangs() {
            return Ok(if sampled.unreadable.is_empty() { Outcome::Done } else { Outcome::No });
        }
    }
}

/// The machine's clock, or that of a simulated node.
fn clock(file: Option<&Path>) -> Result<Arc<dyn Clock>> {
    Ok(match file {
        None => Arc::new(RealClock),
        Some(file) => {
            let opened = FileClock::open(file);
            Arc::new(opened.map_err(|error| OutOfReach(format!("clock file {}: {error}", file.display())))?)
        }
    })
}
