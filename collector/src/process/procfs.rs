//! The processes of a procfs.

use super::boot::{Boot, BootError};
use super::cgroup::belonging_of;
use super::environ;
use super::file::read_up_to;
use super::held::Held;
use super::identity::{Belonging, JobName, Owner, ProcessId, Processes, SlurmJob, Unknown};
use super::namespace::{Namespace, Standing};
use super::stat::started_us;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longest `stat` that is read. The command has 15 characters, the other fields are numbers.
const STAT_BYTES: u64 = 4096;
/// Longest `cgroup` that is read: a dozen lines, each a path.
const CGROUP_BYTES: u64 = 64 * 1024;
/// Longest environment that is searched for a job's number. It is read once a process.
const ENVIRON_BYTES: u64 = 1024 * 1024;
/// So many known owners are kept before those of ended processes are looked for.
const SWEEP_AT: usize = 4096;

/// The processes of the procfs below a folder, with the owners known so far.
#[derive(Debug)]
pub struct Procfs {
    root: PathBuf,
    boot: Boot,
    standing: Standing,
    known: Mutex<Known>,
    held: Option<Mutex<Held>>,
}

/// Owners by process, those of ended processes too, since a last reading may still want them.
#[derive(Debug)]
struct Known {
    owners: BTreeMap<ProcessId, Belonging>,
    sweep_at: usize,
}

impl Procfs {
    /// The procfs below `root`. The file `kept` remembers the beginning of the boot over restarts; none: nothing is remembered.
    ///
    /// # Errors
    /// There is no procfs at `root`.
    pub fn open(root: &Path, kept: Option<&Path>) -> Result<Self, BootError> {
        let boot = Boot::read(root, kept)?;
        let known = Mutex::new(Known { owners: BTreeMap::new(), sweep_at: SWEEP_AT });
        let held = Held::below(root).map(Mutex::new);
        Ok(Self { root: root.to_owned(), boot, standing: Standing::read(root), known, held })
    }

    /// The namespaces the collector stands in: whether it may attribute at all.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    fn folder(&self, pid: u32) -> PathBuf {
        self.root.join(pid.to_string())
    }

    fn read(&self, pid: u32, file: &str, limit: u64) -> io::Result<Vec<u8>> {
        read_up_to(&self.folder(pid).join(file), limit)
    }

    fn present(&self, pid: u32) -> Option<ProcessId> {
        let Some(held) = &self.held else { return self.read_identity(pid) };
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        held.identity(pid, || self.folder(pid), || self.read_identity(pid))
    }

    fn read_identity(&self, pid: u32) -> Option<ProcessId> {
        let since_boot_us = started_us(&self.read(pid, "stat", STAT_BYTES).ok()?)?;
        Some(ProcessId { pid, started_at: self.boot.began.plus(since_boot_us) })
    }

    /// Reads the owner between two looks at the start time. With one look only, before: the process ends, its number goes to a process of
    /// another tenant, and that one's control group is read for it.
    fn read_owner(&self, process: ProcessId) -> Result<Belonging, Unknown> {
        let cgroup = self.read(process.pid, "cgroup", CGROUP_BYTES).map_err(|why| unknown(&why))?;
        let mut belonging = belonging_of(&String::from_utf8_lossy(&cgroup))?;
        self.add_declared_job(process.pid, &mut belonging);
        if self.present(process.pid) == Some(process) { Ok(belonging) } else { Err(Unknown::Vanished) }
    }

    /// Work that left its job's control group (a container started by a daemon) still carries the job in its environment. In a pod the
    /// variable means nothing: whoever may start pods may write it.
    fn add_declared_job(&self, pid: u32, belonging: &mut Belonging) {
        let is_proven = belonging.slurm.as_ref().is_some_and(|job| job.name.proven_number().is_some());
        if is_proven || (belonging.pod_uid.is_some() && belonging.slurm.is_none()) {
            return;
        }
        let environment = self.read(pid, "environ", ENVIRON_BYTES).unwrap_or_default();
        let Some(number) = environ::slurm_job(&environment) else { return };
        match &mut belonging.slurm {
            Some(SlurmJob { name: JobName::Sluid { declared, .. }, .. }) => *declared = Some(number),
            Some(_) => {}
            none => {
                *none = Some(SlurmJob { name: JobName::Declared(number), step: None, is_daemon: false });
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, process: ProcessId, belonging: Belonging) {
        let mut known = self.known();
        known.owners.insert(process, belonging);
        if known.owners.len() >= known.sweep_at {
            known.owners.retain(|process, _| self.present(process.pid) == Some(*process));
            // Twice what is alive, so that a node with very many processes does not sweep at each new one.
            known.sweep_at = SWEEP_AT.max(2 * known.owners.len());
        }
    }

    fn refusal(&self) -> Option<Unknown> {
        match self.standing {
            Standing { pid: Namespace::Other(_), .. } => Some(Unknown::ForeignPidNamespace),
            Standing { cgroup: Namespace::Other(_), .. } => Some(Unknown::PrivateCgroupNamespace),
            Standing { .. } => None,
        }
    }
}

impl Processes for Procfs {
    fn boot_id(&self) -> &Name {
        &self.boot.id
    }

    fn identity(&self, pid: u32) -> Option<ProcessId> {
        if matches!(self.standing.pid, Namespace::Other(_)) {
            return None;
        }
        self.present(pid)
    }

    fn owner(&self, process: ProcessId) -> Owner {
        if let Some(why) = self.refusal() {
            return Owner::Unknown(why);
        }
        let last = self.known().owners.get(&process).cloned();
        match last {
            // Once in a container or job, always: what follows (a zombie moved to the root of its hierarchy) says less.
            Some(belonging) if !belonging.is_host() => Owner::Known(belonging),
            // A process of the host may be on its way into a container: the runtime starts it first and moves it then.
            last => match self.read_owner(process) {
                Ok(belonging) => {
                    self.remember(process, belonging.clone());
                    Owner::Known(belonging)
                }
                Err(why) => last.map_or(Owner::Unknown(why), Owner::Known),
            },
        }
    }
}

fn unknown(why: &io::Error) -> Unknown {
    match why.kind() {
        io::ErrorKind::PermissionDenied => Unknown::NoPermission,
        // Not found before it was opened, "no such process" after.
        _ => Unknown::Vanished,
    }
}

#[cfg(test)]
mod tests;
