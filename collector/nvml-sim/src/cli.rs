//! The command line. Results go to standard output; exit codes: 0 done, 1 the answer is no, 2 wrong usage or no such file.

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use gpuledger_nvml_sim::abi;
use gpuledger_nvml_sim::model::MODELS;
use gpuledger_nvml_sim::random::{self, Settings};
use gpuledger_nvml_sim::scenario::{self, Span};
use gpuledger_nvml_sim::truth::truth;
use gpuledger_nvml_sim::world::World;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Scenarios of a simulated NVML.
#[derive(Parser)]
#[command(name = "gpuledger-nvml-sim", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reads scenarios and says what is in them; exit code 1 where one cannot be.
    Check {
        /// Scenario files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints the ground truth of a span as JSON.
    Truth {
        /// Scenario file.
        file: PathBuf,
        /// Begin of the span, since the start.
        #[arg(long, default_value = "0s", value_parser = Span::parse)]
        from: Span,
        /// End of the span; by default the last change of the timeline.
        #[arg(long, value_parser = Span::parse)]
        to: Option<Span>,
    },
    /// Draws a scenario and prints it.
    Random {
        /// The same seed gives the same scenario.
        #[arg(long)]
        seed: u64,
        /// Number of GPUs, 1 to 16.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
        gpus: u8,
        /// Length of the timeline.
        #[arg(long, default_value = "10m", value_parser = Span::parse)]
        length: Span,
    },
    /// Makes the recorded calls of a client again, as cheaply as can be, and prints the CPU time they took. The scenario is that of the environment.
    Replay {
        /// What the library wrote to the file of `NVML_SIM_RECORD`.
        record: PathBuf,
        /// The library; by default the one beside this program.
        #[arg(long)]
        library: Option<PathBuf>,
        /// How often.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        times: u32,
    },
    /// Copies the library without the functions that a scenario's driver lacks, for clients that look at its symbols.
    Library {
        /// Scenario file.
        file: PathBuf,
        /// Where to write it: `…/libnvidia-ml.so.1`.
        to: PathBuf,
        /// The library; by default the one beside this program.
        #[arg(long)]
        library: Option<PathBuf>,
    },
    /// Lists the models a scenario may name, with their MIG profiles.
    Models,
}

pub(crate) fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Check { files } => check(&files),
        Command::Truth { file, from, to } => print_truth(&file, from, to),
        Command::Random { seed, gpus, length } => {
            let drawn = random::scenario(seed, Settings { gpus: gpus.into(), length });
            say(&drawn.yaml()?)
        }
        Command::Replay { record, library, times } => {
            let library = library.map_or_else(library_beside, Ok)?;
            say(&abi::replay(&record, &library, times)?.to_string())
        }
        Command::Library { file, to, library } => {
            let library = library.map_or_else(library_beside, Ok)?;
            let taken = abi::fit(&library, &scenario::read_file(&file)?, &to)
                .with_context(|| format!("{} to {}", library.display(), to.display()))?;
            let functions = if taken == 1 { "function" } else { "functions" };
            say(&format!("{}: without {taken} {functions}", to.display()))
        }
        Command::Models => say(&models()),
    }
}

fn library_beside() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the path of this program")?;
    Ok(program.with_file_name("libgpuledger_nvml_sim.so"))
}

fn say(text: &str) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()) {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        other => other.map(|()| ExitCode::SUCCESS).context("standard output"),
    }
}

fn check(files: &[PathBuf]) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match World::load(file) {
            Ok(world) => {
                say(&summary(file, &world))?;
            }
            Err(fault) => {
                code = ExitCode::FAILURE;
                eprintln!("{fault}");
            }
        }
    }
    Ok(code)
}

fn summary(file: &Path, world: &World) -> String {
    let scenario = world.scenario();
    format!(
        "{}: {} GPUs, {} steps over {}, {} instances, {} processes, covers {:?}",
        file.display(),
        world.gpu_count(),
        scenario.timeline.len(),
        Span(world.last_change_us()),
        world.gpu_instances().len(),
        world.processes().len(),
        scenario.covers,
    )
}

fn print_truth(file: &Path, from: Span, to: Option<Span>) -> Result<ExitCode> {
    let world = World::load(file)?;
    let to_us = to.map_or(world.last_change_us(), |to| to.0);
    say(&serde_json::to_string_pretty(&truth(&world, from.0, to_us))?)
}

fn models() -> String {
    let mut text = String::new();
    for model in &MODELS {
        let unsure = if model.is_unsure { "  (some numbers are not sourced)" } else { "" };
        let _ = writeln!(text, "{:<9} {} {} MiB{unsure}", model.key, model.name, model.memory_mib);
        for profile in model.mig.map_or(&[][..], |geometry| geometry.profiles) {
            let _ = writeln!(
                text,
                "          {:<11} id {:>2}  {} of {:?}  {:>6} MiB  {:>3} SM",
                profile.name,
                profile.id,
                profile.memory_slices,
                profile.starts,
                profile.memory_mib,
                profile.multiprocessors
            );
        }
    }
    text
}
