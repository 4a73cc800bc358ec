//! Slurm's job states, and what they mean for the hold.

/// What a state says of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It has not begun.
    Never,
    /// It lasts.
    Open,
    /// It is over, for this reason.
    Over(&'static str),
    /// Slurm documents no such state.
    Unknown,
}

/// The state's word and who cancelled: `CANCELLED by 1000` gives `CANCELLED` and `1000`.
pub(super) fn parts(state: &str) -> (&str, Option<&str>) {
    match state.split_once(" by ") {
        Some((word, who)) => (word.trim(), Some(who.trim())),
        // The columns of a dump that was cut to a width end in a plus.
        None => (state.trim_end_matches('+'), None),
    }
}

/// What the state's word says of the hold.
pub(super) fn hold(word: &str) -> Hold {
    match word {
        "PENDING" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => Hold::Never,
        // A completing job still runs its epilog on its GPUs; a suspended or stopped one keeps them.
        "RUNNING" | "SUSPENDED" | "STOPPED" | "COMPLETING" | "CONFIGURING" | "SIGNALING" | "STAGE_OUT" => {
            Hold::Open
        }
        "COMPLETED" => Hold::Over("completed"),
        "FAILED" | "TIMEOUT" | "OUT_OF_MEMORY" | "NODE_FAIL" | "BOOT_FAIL" | "DEADLINE" | "LAUNCH_FAILED"
        | "RECONFIG_FAIL" => Hold::Over("failed"),
        "CANCELLED" | "REVOKED" => Hold::Over("cancelled"),
        "PREEMPTED" => Hold::Over("preempted"),
        "REQUEUED" => Hold::Over("requeued"),
        "RESIZING" => Hold::Over("resized"),
        _ => Hold::Unknown,
    }
}
