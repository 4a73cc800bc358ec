//! A `/proc` that belongs to the timeline: the processes alive at the simulated now, and what a collector reads about the node.

use crate::scenario::Namespace;
use crate::world::{Process, ProcessState, World};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Name of the variable with the folder.
pub const PROC_VARIABLE: &str = "NVML_SIM_PROC";

/// Inode of the init PID namespace.
const INIT_NAMESPACE: u64 = 4_026_531_836;
/// One that is not.
const OTHER_NAMESPACE: u64 = 4_026_533_001;

/// The folder, kept equal to the timeline.
#[derive(Debug)]
pub struct FakeProc {
    root: PathBuf,
    generation: Option<usize>,
    uptime_s: Option<u64>,
    shown: BTreeMap<u32, (usize, ProcessState)>,
}

impl FakeProc {
    /// A folder that will be made.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), generation: None, uptime_s: None, shown: BTreeMap::new() }
    }

    /// Makes the folder equal to an instant. Cheap where no process came or went and the second is the same.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn refresh(&mut self, world: &World, t_us: u64) -> io::Result<()> {
        if self.generation.is_none() {
            self.make(world)?;
        }
        let generation = world.process_generation(t_us);
        if self.generation != Some(generation) {
            if self.generation.is_none() {
                self.drop_what_others_left(world, t_us)?;
            }
            self.update(world, t_us)?;
            self.generation = Some(generation);
        }
        let uptime_s = world.since_boot_us(t_us) / 1_000_000;
        if self.uptime_s != Some(uptime_s) {
            std::fs::write(self.root.join("uptime"), format!("{uptime_s}.00 {uptime_s}.00\n"))?;
            self.uptime_s = Some(uptime_s);
        }
        Ok(())
    }

    fn make(&self, world: &World) -> io::Result<()> {
        let random = self.root.join("sys/kernel/random");
        std::fs::create_dir_all(&random)?;
        std::fs::write(random.join("boot_id"), format!("{}\n", world.scenario().boot_id))?;
        let boot_s = world.boot_us().div_euclid(1_000_000);
        std::fs::write(self.root.join("stat"), format!("cpu  0 0 0 0 0 0 0 0 0 0\nbtime {boot_s}\n"))?;
        // The caller itself, and the first process of its namespace: what a check of the namespace looks at.
        let is_host = world.scenario().namespace == Namespace::Host;
        let inode = if is_host { INIT_NAMESPACE } else { OTHER_NAMESPACE };
        let (own_pids, first) = if is_host { ("4242", "systemd") } else { ("4242\t7", "pause") };
        self.fixed("self", own_pids, "gpuledger-colle", inode)?;
        self.fixed("1", if is_host { "1" } else { "4200\t1" }, first, inode)
    }

    /// Removes entries of an earlier run in the same folder.
    fn drop_what_others_left(&self, world: &World, t_us: u64) -> io::Result<()> {
        let is_alive = |pid| {
            world.processes().iter().any(|it| shown_pid(world, it) == Some(pid) && it.state(t_us).is_some())
        };
        for entry in std::fs::read_dir(&self.root)? {
            let entry = entry?;
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if pid.is_some_and(|pid: u32| pid != 1 && !is_alive(pid)) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn fixed(&self, entry: &str, ns_pids: &str, comm: &str, inode: u64) -> io::Result<()> {
        let folder = self.root.join(entry);
        std::fs::create_dir_all(folder.join("ns"))?;
        point(&folder.join("ns/pid"), &format!("pid:[{inode}]"))?;
        let pid = ns_pids.rsplit('\t').next().unwrap_or(ns_pids);
        std::fs::write(folder.join("comm"), format!("{comm}\n"))?;
        std::fs::write(folder.join("cgroup"), "0::/system.slice/gpuledger-collector.service\n")?;
        std::fs::write(folder.join("stat"), stat(pid, comm, 'S', 100))?;
        std::fs::write(folder.join("status"), status(pid, ns_pids, comm, "S (sleeping)", 0))
    }

    fn update(&mut self, world: &World, t_us: u64) -> io::Result<()> {
        let wanted: BTreeMap<u32, (usize, ProcessState)> = world
            .processes()
            .iter()
            .enumerate()
            .filter_map(|(index, process)| {
                let pid = shown_pid(world, process)?;
                Some((pid, (index, process.state(t_us)?)))
            })
            .collect();
        for pid in self.shown.keys().filter(|pid| !wanted.contains_key(pid)) {
            remove(&self.root.join(pid.to_string()))?;
        }
        for (pid, entry) in &wanted {
            if self.shown.get(pid) != Some(entry) {
                self.write(world, *pid, world.process(entry.0), entry.1)?;
            }
        }
        self.shown = wanted;
        Ok(())
    }

    fn write(&self, world: &World, pid: u32, process: &Process, state: ProcessState) -> io::Result<()> {
        let folder = self.root.join(pid.to_string());
        remove(&folder)?;
        std::fs::create_dir_all(&folder)?;
        let (letter, words) = match state {
            ProcessState::Alive => ('S', "S (sleeping)"),
            ProcessState::Zombie => ('Z', "Z (zombie)"),
            ProcessState::Stuck => ('D', "D (disk sleep)"),
        };
        let is_host = world.scenario().namespace == Namespace::Host;
        let ns_pids = match process.ns_pid {
            Some(inner) if is_host => format!("{pid}\t{inner}"),
            _ => pid.to_string(),
        };
        let environ = process.environ.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, "{name}={value}\0");
            text
        });
        let pid = pid.to_string();
        std::fs::write(folder.join("comm"), format!("{}\n", process.comm))?;
        std::fs::write(folder.join("cgroup"), format!("{}\n", process.cgroup.trim_end()))?;
        std::fs::write(folder.join("environ"), environ)?;
        std::fs::write(folder.join("status"), status(&pid, &ns_pids, &process.comm, words, process.uid))?;
        std::fs::write(folder.join("stat"), stat(&pid, &process.comm, letter, process.start_ticks))
    }
}

/// The number under which `/proc` shows a process: in a container only its own.
fn shown_pid(world: &World, process: &Process) -> Option<u32> {
    match world.scenario().namespace {
        Namespace::Host => Some(process.pid),
        Namespace::Container => process.ns_pid,
    }
}

/// Makes a link, or one that an earlier run left point elsewhere.
fn point(link: &Path, to: &str) -> io::Result<()> {
    match std::fs::read_link(link) {
        Ok(before) if before == Path::new(to) => return Ok(()),
        Ok(_) => std::fs::remove_file(link)?,
        Err(_) => {}
    }
    symlink(to, link)
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The line of `stat`: the start time is field 22.
fn stat(pid: &str, comm: &str, letter: char, start_ticks: u64) -> String {
    let zeros = |count| "0 ".repeat(count);
    let comm: String = comm.chars().take(15).collect();
    format!("{pid} ({comm}) {letter} 1 {pid} {pid} {}{start_ticks} {}0\n", zeros(15), zeros(29))
}

fn status(pid: &str, ns_pids: &str, comm: &str, state: &str, uid: u32) -> String {
    format!(
        "Name:\t{comm}\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{ns_pids}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::read;

    fn world(head: &str, timeline: &str) -> World {
        let text = format!(
            "name: t\nuptime: 1h\nstart: 2026-10-01T00:00:00Z\n{head}gpus: [{{uuid: GPU-1, model: t4}}]\ntimeline:\n{timeline}"
        );
        World::new(read(&text, "t.yaml").unwrap()).unwrap()
    }

    fn field(root: &Path, pid: u32, number: usize) -> Option<String> {
        let text = std::fs::read_to_string(root.join(pid.to_string()).join("stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        // The first field after the name is the third.
        rest.split_whitespace().nth(number - 3).map(str::to_owned)
    }

    #[test]
    fn a_reused_pid_has_another_start_time() {
        let world = world(
            "",
            "- {at: 0s, start: {pid: 7, started_before: 10s}}\n- {at: 5s, stop: {pid: 7}}\n- {at: 6s, start: {pid: 7}}\n",
        );
        let dir = tempfile::tempdir().unwrap();
        let mut proc = FakeProc::new(dir.path());
        let mut seen = |t| {
            proc.refresh(&world, t).unwrap();
            field(dir.path(), 7, 22)
        };
        assert_eq!(seen(0), Some("359000".to_owned()));
        assert_eq!(seen(5_500_000), None);
        assert_eq!(seen(6_000_000), Some("360600".to_owned()));
        let uptime = std::fs::read_to_string(dir.path().join("uptime")).unwrap();
        assert_eq!(uptime, "3606.00 3606.00\n");
    }

    #[test]
    fn a_zombie_is_shown_as_one_until_it_is_reaped() {
        let world = world(
            "",
            "- {at: 0s, start: {pid: 7}}\n- {at: 5s, stop: {pid: 7, leaves: zombie}}\n- {at: 6s, reap: {pid: 7}}\n",
        );
        let dir = tempfile::tempdir().unwrap();
        let mut proc = FakeProc::new(dir.path());
        let letters = [0, 5_000_000, 6_000_000].map(|t| {
            proc.refresh(&world, t).unwrap();
            field(dir.path(), 7, 3)
        });
        assert_eq!(letters, [Some("S".to_owned()), Some("Z".to_owned()), None]);
    }

    #[test]
    fn a_container_sees_its_own_numbers_and_another_namespace() {
        let world = world(
            "namespace: container\n",
            "- {at: 0s, start: {pid: 700, ns_pid: 7, environ: {SLURM_JOB_ID: '42'}}}\n- {at: 0s, start: {pid: 800}}\n",
        );
        let dir = tempfile::tempdir().unwrap();
        FakeProc::new(dir.path()).refresh(&world, 0).unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(at("7").exists() && !at("700").exists() && !at("800").exists());
        assert_eq!(std::fs::read_to_string(at("7/environ")).unwrap(), "SLURM_JOB_ID=42\0");
        let link = std::fs::read_link(at("self/ns/pid")).unwrap();
        assert_ne!(link, Path::new("pid:[4026531836]"));
        assert!(std::fs::read_to_string(at("stat")).unwrap().contains("btime 1790809200\n"));
    }
    #[test]
    fn a_folder_that_is_used_again_shows_the_namespace_of_its_new_node() {
        let dir = tempfile::tempdir().unwrap();
        let links = ["", "namespace: container\n", ""].map(|head| {
            FakeProc::new(dir.path()).refresh(&world(head, " []\n"), 0).unwrap();
            ["self", "1"].map(|entry| std::fs::read_link(dir.path().join(entry).join("ns/pid")).unwrap())
        });
        let [host, container, again] = links;
        assert_eq!(host, ["pid:[4026531836]"; 2].map(PathBuf::from));
        assert_eq!(container, ["pid:[4026533001]"; 2].map(PathBuf::from));
        assert_eq!(again, host);
    }
}
