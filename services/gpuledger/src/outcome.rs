//! Exit codes: 0 done, 1 the answer is no, 2 wrong usage or configuration, 3 a dependency is out of reach.

use gpuledger_archive::ArchiveError;
use gpuledger_storage::StorageError;
use gpuledger_telemetry::terminal::{error_line, say_err};
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done.
    Done,
    /// A verification failed, or what was asked for cannot be done now.
    No,
}

/// An error of the user's making: wrong arguments, configuration or input.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Something the command needs is out of reach.
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
        let printed = error.print();
        match (error.use_stderr(), printed) {
            (false, Ok(())) => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }

    /// Prints an error with its causes and gives its exit code.
    pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
        say_err(&error_line("gpuledger", error.chain().map(ToString::to_string)));
        ExitCode::from(code(error))
    }
}

fn code(error: &anyhow::Error) -> u8 {
    let storage = error.chain().find_map(|cause| cause.downcast_ref::<StorageError>());
    if let Some(StorageError::Unreachable { .. }) = storage {
        return 3;
    }
    if error.chain().any(|cause| cause.is::<OutOfReach>()) {
        return 3;
    }
    let archive = error.chain().find_map(|cause| cause.downcast_ref::<ArchiveError>());
    if archive.is_some_and(ArchiveError::is_out_of_reach) {
        return 3;
    }
    if matches!(archive, Some(ArchiveError::Setting { .. } | ArchiveError::Secret { .. })) {
        return 2;
    }
    let wrong = matches!(
        storage,
        Some(
            StorageError::BadUrl
                | StorageError::TooOld { .. }
                | StorageError::NotMigrated { .. }
                | StorageError::Invalid { .. }
        )
    );
    if wrong || error.chain().any(|cause| cause.is::<Usage>()) { 2 } else { 1 }
}
