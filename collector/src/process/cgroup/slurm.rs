//! The Slurm job in a path.
//!
//! Version 2: `[NODE_]slurmstepd.scope/job_N/step_X/{user/task_T, slurm}`. Version 1: `slurm[_NODE]/uid_U/job_N/step_X/task_T`. From
//! release 26.05 on a SLUID stands in place of `job_N`, unless `CgroupJobIdPaths=yes`.

use crate::process::environ::job_number;
use crate::process::identity::{JobName, SlurmJob};
use gpuledger_wire::text::Name;

/// The last job of the path. Not all that looks like its beginning is one: the daemon of a step lies in a folder `slurm` of its own.
pub(super) fn innermost(steps: &[&str]) -> Option<SlurmJob> {
    let anchors = (0..steps.len()).rev().filter(|place| is_anchor(steps[*place]));
    anchors.into_iter().find_map(|anchor| job_below(&steps[anchor + 1..]))
}

fn job_below(steps: &[&str]) -> Option<SlurmJob> {
    let mut rest = steps.iter().copied().skip_while(|step| step.starts_with("uid_"));
    let job = rest.next()?;
    let name = match job.strip_prefix("job_") {
        Some(number) => JobName::Number(job_number(number)?),
        None => JobName::Sluid { sluid: sluid(job)?, declared: None },
    };
    let step = rest.next().and_then(|step| step.strip_prefix("step_")).and_then(|step| Name::new(step).ok());
    let is_daemon = step.is_some() && rest.next() == Some("slurm");
    Some(SlurmJob { name, step, is_daemon })
}

fn is_anchor(step: &str) -> bool {
    let node_before =
        step.strip_suffix("slurmstepd.scope").is_some_and(|node| node.is_empty() || node.ends_with('_'));
    node_before || step == "slurm" || step.starts_with("slurm_")
}

/// `s` and 13 digits or capitals.
fn sluid(step: &str) -> Option<Name> {
    let code = step.strip_prefix('s')?;
    let fits =
        code.len() == 13 && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    fits.then(|| Name::new(step).ok()).flatten()
}
