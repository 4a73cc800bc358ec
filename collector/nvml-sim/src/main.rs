//! `gpuledger-nvml-sim`: looks at scenarios without the library.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gpuledger-nvml-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}
