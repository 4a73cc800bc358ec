//! What an owner of processes is called, and whom that names.

use super::Owner;
use crate::fact::Runtime;
use crate::time::Instant;
use std::fmt;

impl Owner {
    /// Whether it bears a name that a grant may carry: of a Slurm job or a pod.
    pub const fn is_named(&self) -> bool {
        matches!(self, Self::Job(_) | Self::Pod(_))
    }

    /// Whether it bears one of the names of a grant.
    pub fn is_of(&self, runtime: &Runtime) -> bool {
        match self {
            Self::Job(job) => runtime.slurm_job.as_ref() == Some(job),
            Self::Pod(pod) => runtime.pod_uid.as_ref() == Some(pod),
            Self::Unit | Self::Container(_) | Self::Process(_) => false,
        }
    }

    /// Whether a grant has a name of the owner's kind at all.
    pub const fn is_kind_of(&self, runtime: &Runtime) -> bool {
        match self {
            Self::Job(_) => runtime.slurm_job.is_some(),
            Self::Pod(_) => runtime.pod_uid.is_some(),
            Self::Unit | Self::Container(_) | Self::Process(_) => false,
        }
    }
}

impl fmt::Display for Owner {
    /// In words, as a finding names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => write!(f, "the unit"),
            Self::Job(job) => write!(f, "processes of Slurm job {job}"),
            Self::Pod(pod) => write!(f, "processes of pod {pod}"),
            Self::Container(container) => write!(f, "processes of container {container}"),
            Self::Process(process) => {
                let mut words = process.split('/');
                let (boot, pid, start) = (words.next(), words.next(), words.next());
                let started = start.and_then(|us| us.parse().ok()).map(Instant::from_micros);
                match (boot, pid, started) {
                    (Some(boot), Some(pid), Some(at)) => {
                        write!(f, "process {pid}, started at {at} in boot {boot}")
                    }
                    _ => write!(f, "process {process}"),
                }
            }
        }
    }
}
