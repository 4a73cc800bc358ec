use super::*;
use gpuledger_domain::time::Instant;
use std::fs;
use tempfile::TempDir;

const POD: &str = "0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00000000000a.slice";
const JOB: &str = "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0";

/// A node in a folder, with processes that come and go.
struct Node {
    dir: TempDir,
}

impl Node {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("sys/kernel/random")).unwrap();
        fs::create_dir_all(dir.path().join("self/ns")).unwrap();
        fs::write(dir.path().join("sys/kernel/random/boot_id"), "b7\n").unwrap();
        fs::write(dir.path().join("stat"), "btime 1000\n").unwrap();
        Self { dir }
    }

    fn procfs(&self) -> Procfs {
        Procfs::open(self.dir.path(), None).unwrap()
    }

    fn start(&self, pid: u32, ticks: u32, cgroup: &str) {
        let folder = self.dir.path().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let stat = format!("{pid} (work) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0\n");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cgroup"), format!("{cgroup}\n")).unwrap();
        fs::write(folder.join("environ"), "").unwrap();
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join(path), text).unwrap();
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.dir.path().join(pid.to_string())).unwrap();
    }
}

fn uid(owner: &Owner) -> Option<&str> {
    owner.pod_uid().map(Name::as_str)
}

#[test]
fn a_reused_number_is_another_process() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, POD);
    let first = procfs.identity(7).unwrap();
    assert_eq!(first, ProcessId { pid: 7, started_at: Instant::from_micros(1_001_500_000) });
    assert_eq!(uid(&procfs.owner(first)), Some("0a1b2c3d-0000-4000-8000-00000000000a"));

    node.start(7, 151, JOB);
    let second = procfs.identity(7).unwrap();
    assert_ne!(first, second);
    assert_eq!(procfs.owner(second).slurm_job().unwrap().as_str(), "42");
    assert!(procfs.owner(first).pod_uid().is_some(), "the first keeps its owner");
}

#[test]
fn an_ended_process_keeps_its_last_owner_and_one_never_read_is_unknown() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, POD);
    node.start(8, 150, POD);
    let (read, unread) = (procfs.identity(7).unwrap(), procfs.identity(8).unwrap());
    procfs.owner(read);
    node.end(7);
    node.end(8);
    assert_eq!(procfs.identity(7), None);
    assert_eq!(procfs.owner(read).label(), "cgroup");
    assert_eq!(procfs.owner(unread), Owner::Unknown(Unknown::Vanished));
    assert_eq!(procfs.owner(unread).label(), "unavailable(owner_unknown)");
}

#[test]
fn a_number_that_changes_hands_before_the_lookup_gives_no_owner() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, "0::/");
    let first = procfs.identity(7).unwrap();
    node.start(7, 151, POD);
    assert_eq!(procfs.owner(first), Owner::Unknown(Unknown::Vanished));
}

#[test]
fn a_process_of_the_host_may_still_enter_a_container_and_never_leaves_it() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, "0::/system.slice/containerd.service");
    let process = procfs.identity(7).unwrap();
    assert_eq!(procfs.owner(process).label(), "host");
    node.write("7/cgroup", POD);
    assert!(procfs.owner(process).pod_uid().is_some());
    node.write("7/cgroup", "0::/");
    assert!(procfs.owner(process).pod_uid().is_some(), "a zombie of version 1 stands in the root");
}

#[test]
fn a_job_is_taken_from_the_environment_only_where_the_kernel_names_none() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, JOB);
    node.start(8, 150, "0::/system.slice/docker.service");
    node.start(9, 150, "0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_batch/user/task_0");
    node.start(10, 150, POD);
    for pid in [7, 8, 9, 10] {
        node.write(&format!("{pid}/environ"), "A=1\0SLURM_JOB_ID=99\0");
    }
    let owner = |pid| procfs.owner(procfs.identity(pid).unwrap());
    let told = |pid| (owner(pid).slurm_job().unwrap().to_string(), owner(pid).label());
    assert_eq!(told(7), ("42".into(), "cgroup".into()));
    assert_eq!(told(8), ("99".into(), "self_declared".into()));
    assert_eq!(told(9), ("99".into(), "self_declared".into()));
    assert_eq!(owner(10).slurm_job(), None, "the kernel names a pod");
    let Owner::Known(Belonging { slurm: Some(job), .. }) = owner(9) else { panic!("{:?}", owner(9)) };
    assert_eq!(job.name.proven_number(), None);
    assert!(matches!(job.name, JobName::Sluid { sluid, .. } if sluid.as_str() == "s5K1KKYAYG5D00"));
}

#[test]
fn from_another_pid_namespace_nothing_is_attributed() {
    let node = Node::new();
    node.start(7, 150, POD);
    let process = node.procfs().identity(7).unwrap();
    node.write("self/ns/pid", "pid:[4026532999]");
    let procfs = node.procfs();
    assert_eq!(procfs.identity(7), None);
    assert_eq!(procfs.owner(process), Owner::Unknown(Unknown::ForeignPidNamespace));
    assert!(procfs.standing().to_string().contains("hostPID"));
}

#[test]
fn from_another_control_group_namespace_processes_are_known_and_owners_not() {
    let node = Node::new();
    node.start(7, 150, "0::/");
    node.write("self/ns/cgroup", "cgroup:[4026532999]");
    let procfs = node.procfs();
    let process = procfs.identity(7).unwrap();
    assert_eq!(procfs.owner(process), Owner::Unknown(Unknown::PrivateCgroupNamespace));

    node.write("self/ns/cgroup", "cgroup:[4026531835]");
    node.write("7/cgroup", "0::/../../kubepods.slice");
    assert_eq!(node.procfs().owner(process), Owner::Unknown(Unknown::PrivateCgroupNamespace));
}

#[test]
fn owners_of_ended_processes_are_forgotten_when_there_are_many() {
    let node = Node::new();
    let procfs = node.procfs();
    node.start(7, 150, POD);
    let process = procfs.identity(7).unwrap();
    let belonging = procfs.owner(process).belonging().unwrap().clone();
    for pid in 1000..1000 + u32::try_from(SWEEP_AT).unwrap() {
        procfs.remember(ProcessId { pid, ..process }, belonging.clone());
    }
    let known = procfs.known();
    assert!(known.owners.len() < 10, "{}", known.owners.len());
    assert!(known.owners.contains_key(&process));
}

#[test]
fn the_real_procfs_knows_this_process() {
    let Ok(procfs) = Procfs::open(Path::new("/proc"), None) else { return };
    let pid = std::process::id();
    if procfs.standing().pid == Namespace::Init {
        let here = procfs.identity(pid).unwrap();
        assert_eq!(procfs.identity(pid), Some(here));
        assert!(here.started_at > procfs.boot.began);
    }
}
