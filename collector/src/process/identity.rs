//! Which process, and whose.

use gpuledger_domain::time::Instant;
use gpuledger_wire::text::Name;

/// One process of one boot of the node. A process number comes back, the instant at which its holder began does not: the kernel counts it
/// in hundredths of a second since boot, and no number is given twice within one of them.
///
/// With the boot id this is the identity of a process: equal values mean the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Its number in the node's own PID namespace.
    pub pid: u32,
    /// When it began: the same each time it is read within one boot.
    pub started_at: Instant,
}

/// Whose a process is, as far as the node can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Its control group was read.
    Known(Belonging),
    /// Nobody can say any more, or may say at all.
    Unknown(Unknown),
}

/// Why the owner of a process cannot be told. Never a reason to leave out the process, only its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// It ended, or its number went to another process, before its control group was read.
    Vanished,
    /// Its control group may not be read.
    NoPermission,
    /// Paths are cut off (`/../..`): the collector stands in a control group namespace of its own.
    PrivateCgroupNamespace,
    /// The collector stands in a PID namespace of its own, where numbers mean other processes.
    ForeignPidNamespace,
}

impl Unknown {
    /// The word in labels and texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vanished => "owner_unknown",
            Self::NoPermission => "no_permission",
            Self::PrivateCgroupNamespace => "private_cgroup_namespace",
            Self::ForeignPidNamespace => "foreign_pid_namespace",
        }
    }
}

/// Where a process stands. All absent: a process of the host itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Belonging {
    /// The container it runs in. A runtime's monitor (conmon) stands beside its container and runs in none.
    pub container: Option<Container>,
    /// The pod, by its UID; of a static pod it is the hash of its file. The pause container belongs to it too and never holds GPU memory.
    pub pod_uid: Option<Name>,
    /// The Slurm job.
    pub slurm: Option<SlurmJob>,
}

impl Belonging {
    /// Nothing but the host.
    pub fn is_host(&self) -> bool {
        *self == Self::default()
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The innermost one: 64 hexadecimal digits.
    pub id: Name,
    /// The outermost one, where containers are nested.
    pub outer: Option<Name>,
}

/// A Slurm job as the node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    /// By what it is known.
    pub name: JobName,
    /// `0`, `batch`, `extern`, `interactive`, …; none where no path names it.
    pub step: Option<Name>,
    /// Whether the process is the step's daemon and not user work.
    pub is_daemon: bool,
}

/// By what a Slurm job is known, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobName {
    /// The kernel: the control group carries its number.
    Number(Name),
    /// The kernel says its SLUID (Slurm 26.05 and later), which holds no number; the number is what the process itself declares, if it does.
    Sluid {
        /// `s` and 13 digits or capitals.
        sluid: Name,
        /// `SLURM_JOB_ID` of the process's environment.
        declared: Option<Name>,
    },
    /// Only the process itself, by `SLURM_JOB_ID` in its environment: it may write there what it likes.
    Declared(Name),
}

impl JobName {
    /// The job's number, whoever says it.
    pub fn number(&self) -> Option<&Name> {
        match self {
            Self::Number(number) | Self::Declared(number) => Some(number),
            Self::Sluid { declared, .. } => declared.as_ref(),
        }
    }

    /// The job's number where the kernel says it.
    pub fn proven_number(&self) -> Option<&Name> {
        match self {
            Self::Number(number) => Some(number),
            Self::Sluid { .. } | Self::Declared(_) => None,
        }
    }
}

impl Owner {
    /// Its container id.
    pub fn container(&self) -> Option<&Name> {
        self.belonging()?.container.as_ref().map(|container| &container.id)
    }

    /// Its pod's UID.
    pub fn pod_uid(&self) -> Option<&Name> {
        self.belonging()?.pod_uid.as_ref()
    }

    /// Its Slurm job's number, whoever says it.
    pub fn slurm_job(&self) -> Option<&Name> {
        self.belonging()?.slurm.as_ref()?.name.number()
    }

    /// Where it stands, if that is known.
    pub fn belonging(&self) -> Option<&Belonging> {
        match self {
            Self::Known(belonging) => Some(belonging),
            Self::Unknown(_) => None,
        }
    }

    /// How the owner is known: `cgroup`, `self_declared` (the job's number is), `host`, or `unavailable(…)`.
    pub fn label(&self) -> String {
        match self {
            Self::Unknown(why) => format!("unavailable({})", why.as_str()),
            Self::Known(belonging) if belonging.is_host() => "host".to_owned(),
            Self::Known(Belonging { slurm: Some(job), .. })
                if job.name.number().is_some() && job.name.proven_number().is_none() =>
            {
                "self_declared".to_owned()
            }
            Self::Known(_) => "cgroup".to_owned(),
        }
    }
}

/// The processes of this node.
pub trait Processes: Send + Sync {
    /// Which boot of the node the identities belong to.
    fn boot_id(&self) -> &Name;

    /// The process that has this number now. None: it has ended, which is normal, or numbers mean other processes here.
    fn identity(&self, pid: u32) -> Option<ProcessId>;

    /// Whose it is. An ended process keeps the owner it was last known by.
    fn owner(&self, process: ProcessId) -> Owner;
}
