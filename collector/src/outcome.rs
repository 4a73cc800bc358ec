//! Exit codes: 0 done, 1 the answer is no, 2 wrong usage or configuration, 3 a dependency is out of reach.

use gpuledger_collector::driver::DriverError;
use gpuledger_collector::run::RunError;
use gpuledger_collector::sample::TakeError;
use gpuledger_collector::settings::SettingsError;
use gpuledger_telemetry::logs::LogError;
use gpuledger_telemetry::terminal::{error_line, say_err};
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done.
    Done,
    /// Some GPU cannot be read.
    No,
}

/// Something the command needs is out of reach: the library, the driver.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct OutOfReach(pub(crate) String);

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::No => Self::from(1),
        }
    }
}

impl Outcome {
    /// Prints what clap has to say; help and version are no errors.
    pub(crate) fn usage(error: &clap::Error) -> ExitCode {
        match (error.use_stderr(), error.print()) {
            (false, Ok(())) => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }

    /// Prints an error with its causes and gives its exit code.
    pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
        say_err(&error_line("gpuledger-collector", error.chain().map(ToString::to_string)));
        ExitCode::from(code(error))
    }
}

fn code(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_configuration) {
        2
    } else if error.chain().any(|cause| cause.is::<OutOfReach>() || is_out_of_reach(cause)) {
        3
    } else {
        1
    }
}

/// What a restart may mend is out of reach for now; the rest of a failed start is configuration.
fn is_out_of_reach(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<DriverError>()
        || matches!(cause.downcast_ref(), Some(TakeError::Driver(_)))
        || matches!(
            cause.downcast_ref(),
            Some(RunError::Restart(_) | RunError::System { .. } | RunError::Spool(_))
        )
}

fn is_configuration(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<SettingsError>()
        || cause.is::<LogError>()
        || matches!(
            cause.downcast_ref(),
            Some(RunError::NoSink | RunError::Sink(_) | RunError::Node(_) | RunError::Clock { .. })
        )
}
