//! From the control group of a process to its container, pod and Slurm job.
//!
//! A pure function of the text of `PID/cgroup`. Control group version 2 has one line, `0::/path`; version 1 has a line for each hierarchy,
//! `4:memory:/path`, and not all of them carry the same path.

mod container;
mod pod;
mod slurm;
#[cfg(test)]
mod tests;

use super::identity::{Belonging, Unknown};
pub use pod::pod_uid_in;

/// What the kernel appends to the path of a group that was removed before its last process (a zombie) was.
const REMOVED: &str = " (deleted)";

/// Where a process with this text in `PID/cgroup` belongs.
///
/// # Errors
/// A path is cut off, because the reader stands in a control group namespace of its own.
pub fn belonging_of(text: &str) -> Result<Belonging, Unknown> {
    let mut paths: Vec<(u8, &str)> = text.lines().filter_map(ranked).collect();
    paths.sort_by_key(|(rank, _)| *rank);
    let mut found = Belonging::default();
    for (_, path) in paths {
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        if steps.contains(&"..") {
            return Err(Unknown::PrivateCgroupNamespace);
        }
        // Of one line, so that a container never stands beside the pod of another hierarchy.
        if found.container.is_none() && found.pod_uid.is_none() {
            found.container = container::innermost(&steps);
            found.pod_uid = pod::innermost(&steps);
        }
        found.slurm = found.slurm.or_else(|| slurm::innermost(&steps));
    }
    Ok(found)
}

/// A line's path with the rank of its hierarchy: those that runtimes and Slurm always fill come first.
fn ranked(line: &str) -> Option<(u8, &str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let has = |name: &str| controllers.split(',').any(|controller| controller == name);
    let rank = match () {
        () if controllers.is_empty() => 0,
        () if has("memory") => 1,
        () if has("pids") => 2,
        () if has("name=systemd") => 3,
        () => 4,
    };
    Some((rank, path.strip_suffix(REMOVED).unwrap_or(path)))
}
