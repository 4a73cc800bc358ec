//! Processes held open: whether one is still there is asked without reading what it is.
//!
//! An open file of a process in procfs stays that process's own, whoever gets its number later: once the process is reaped, reading it fails with
//! "no such process". So one short read says as much as reading the start time anew, at a tenth of the cost.

use super::identity::ProcessId;
use rustix::fs::{PROC_SUPER_MAGIC, statfs};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// So many are held at most: a service may open 1,024 files by default.
const MOST_HELD: usize = 256;

/// A held process.
#[derive(Debug)]
struct One {
    /// Its `comm`, the cheapest of its files to read.
    file: File,
    process: ProcessId,
}

/// Held processes by number.
#[derive(Debug, Default)]
pub(super) struct Held {
    processes: BTreeMap<u32, One>,
}

impl Held {
    /// None where `root` is no procfs of the kernel: plain files stay as they are when a process ends.
    pub(super) fn below(root: &Path) -> Option<Self> {
        let is_procfs = statfs(root).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
        is_procfs.then(Self::default)
    }

    /// The process with this number, from what is held, or else as `read` finds it. `folder`: where its files are.
    pub(super) fn identity(
        &mut self,
        pid: u32,
        folder: impl FnOnce() -> PathBuf,
        read: impl FnOnce() -> Option<ProcessId>,
    ) -> Option<ProcessId> {
        if let Some(one) = self.processes.get(&pid) {
            if is_there(&one.file) {
                return Some(one.process);
            }
            self.processes.remove(&pid);
        }
        let file = File::open(folder().join("comm")).ok();
        let process = read()?;
        // What was opened is what was read only if it is still there behind it; else its number may have gone to another in between.
        if let Some(file) = file.filter(is_there)
            && self.has_room()
        {
            self.processes.insert(pid, One { file, process });
        }
        Some(process)
    }

    fn has_room(&mut self) -> bool {
        if self.processes.len() >= MOST_HELD {
            self.processes.retain(|_, one| is_there(&one.file));
        }
        self.processes.len() < MOST_HELD
    }
}

fn is_there(file: &File) -> bool {
    file.read_at(&mut [0], 0).is_ok_and(|read| read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::time::Instant;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, u32) {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        (child, pid)
    }

    fn process(pid: u32, us: i64) -> Option<ProcessId> {
        Some(ProcessId { pid, started_at: Instant::from_micros(us) })
    }

    fn folder(pid: u32) -> PathBuf {
        Path::new("/proc").join(pid.to_string())
    }

    #[test]
    fn a_process_is_read_once_and_known_until_it_is_reaped() {
        let Some(mut held) = Held::below(Path::new("/proc")) else { return };
        let (mut child, pid) = sleeper();
        let mut ask = |us| held.identity(pid, || folder(pid), || process(pid, us));
        assert_eq!(ask(1), process(pid, 1));
        assert_eq!(ask(2), process(pid, 1), "it is not read again");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ask(3), process(pid, 3), "who has its number now is read");
        assert_eq!(held.processes.len(), 0, "and is not held by the file of the one before");
    }

    #[test]
    fn a_process_that_ends_while_it_is_read_is_not_held() {
        let Some(mut held) = Held::below(Path::new("/proc")) else { return };
        let (mut child, pid) = sleeper();
        let read = || {
            child.kill().unwrap();
            child.wait().unwrap();
            process(pid, 1)
        };
        assert_eq!(held.identity(pid, || folder(pid), read), process(pid, 1));
        assert_eq!(held.processes.len(), 0);
    }

    #[test]
    fn only_so_many_are_held() {
        let Some(mut held) = Held::below(Path::new("/proc")) else { return };
        let me = folder(std::process::id());
        for pid in 0..1_000 {
            assert_eq!(held.identity(pid, || me.clone(), || process(pid, 1)), process(pid, 1));
        }
        assert_eq!(held.processes.len(), MOST_HELD);
    }

    #[test]
    fn a_folder_of_plain_files_is_no_procfs() {
        let plain = tempfile::TempDir::new().unwrap();
        assert!(Held::below(plain.path()).is_none());
    }
}
