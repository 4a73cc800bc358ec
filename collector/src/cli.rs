//! The command line, as the contract has it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use gpuledger_domain::time::Instant;
use gpuledger_wire::time::parse_time;
use std::path::PathBuf;

/// Meters the GPUs of a node: every reading NVML can give, none it cannot.
#[derive(Debug, Parser)]
#[command(name = "gpuledger-collector", version, propagate_version = true)]
pub struct Cli {
    /// TOML file with settings; /etc/gpuledger/collector.toml where it is there
    #[arg(long, global = true, env = "GPULEDGER_COLLECTOR_CONFIG")]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure until stopped, and deliver
    Run {
        /// Also the metric names and labels of dcgm-exporter (beside one they double every sum)
        #[arg(long)]
        dcgm_names: bool,
        /// Drive the time of a simulated node in this file
        #[arg(long)]
        clock: Option<PathBuf>,
        /// End at this instant of the node's clock (RFC 3339), as a signal would
        #[arg(long, value_parser = instant)]
        until: Option<Instant>,
    },
    /// Say what can be measured here, why not the rest, and what would raise it; changes nothing
    Probe(Output),
    /// Measure for two sample periods and print the readings
    Sample {
        /// End after one sample; without it the next follows
        #[arg(long)]
        once: bool,
        /// How to print.
        #[command(flatten)]
        output: Output,
    },
}

fn instant(text: &str) -> Result<Instant, String> {
    parse_time(text).map_err(|why| why.to_string())
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Args)]
pub struct Output {
    /// Format; json is stable
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Formats of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs: one object.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_commands_of_the_contract_are_read() {
        let read = |line: &str| Cli::try_parse_from(line.split(' ')).unwrap().command;
        assert!(matches!(read("c run"), Command::Run { dcgm_names: false, clock: None, until: None }));
        assert!(matches!(read("c run --dcgm-names"), Command::Run { dcgm_names: true, .. }));
        assert!(matches!(read("c probe"), Command::Probe(Output { format: Format::Table })));
        let once = |line: &str, format: Format| matches!(read(line), Command::Sample { once: true, output } if output.format == format);
        assert!(once("c sample --once --format json", Format::Json));
        assert!(once("c sample --once --format table", Format::Table));
    }
}
