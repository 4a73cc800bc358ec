//! Every shape of path that is known, from runtimes, drivers and their bug reports.

use super::*;
use crate::process::identity::JobName;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const UNDER: &str = "1f2e3d4c_5b6a_4789_8a9b_0c1d2e3f4a5b";
const UID: &str = "1f2e3d4c-5b6a-4789-8a9b-0c1d2e3f4a5b";
const HASH: &str = "0123456789abcdef0123456789abcdef";

/// A path with `$A`, `$B`, `$UNDER`, `$UID`, `$HASH` filled in, and what it says: container, outer container, pod, job, step.
type Row = (&'static str, &'static str, [&'static str; 5]);

const N: &str = "";

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("containerd, systemd, burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$UNDER.slice/cri-containerd-$A.scope", ["$A", N, "$UID", N, N]),
    ("containerd, systemd, guaranteed", "/kubepods.slice/kubepods-pod$UNDER.slice/cri-containerd-$A.scope", ["$A", N, "$UID", N, N]),
    ("CRI-O", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod$UNDER.slice/crio-$A.scope", ["$A", N, "$UID", N, N]),
    ("CRI-O with a group below", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod$UNDER.slice/crio-$A.scope/container", ["$A", N, "$UID", N, N]),
    ("CRI-O's monitor", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod$UNDER.slice/crio-conmon-$A.scope", [N, N, "$UID", N, N]),
    ("CRI-O, cgroupfs", "/kubepods/burstable/pod$UID/crio-$A", ["$A", N, "$UID", N, N]),
    ("Docker under Kubernetes", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$UNDER.slice/docker-$A.scope", ["$A", N, "$UID", N, N]),
    ("cgroupfs, burstable", "/kubepods/burstable/pod$UID/$A", ["$A", N, "$UID", N, N]),
    ("cgroupfs, guaranteed", "/kubepods/pod$UID/$A", ["$A", N, "$UID", N, N]),
    ("colons", "/system.slice/containerd.service/kubepods-burstable-pod$UNDER.slice:cri-containerd:$A", ["$A", N, "$UID", N, N]),
    ("static pod, systemd", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$HASH.slice/cri-containerd-$A.scope", ["$A", N, "$HASH", N, N]),
    ("static pod, cgroupfs", "/kubepods/burstable/pod$HASH/$A", ["$A", N, "$HASH", N, N]),
    ("kind's kubelet.slice", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod$UNDER.slice/cri-containerd-$A.scope", ["$A", N, "$UID", N, N]),
    ("kind in Docker", "/system.slice/docker-$B.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod$UNDER.slice/cri-containerd-$A.scope", ["$A", "$B", "$UID", N, N]),
    ("minikube", "/docker/$B/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod$UNDER.slice/docker-$A.scope", ["$A", "$B", "$UID", N, N]),
    ("Docker in Docker", "/docker/$B/docker/$A", ["$A", "$B", N, N, N]),
    ("Docker in a pod", "/kubepods/burstable/pod$UID/$B/docker/$A", ["$A", "$B", "$UID", N, N]),
    ("Docker, cgroupfs", "/docker/$A", ["$A", N, N, N, N]),
    ("Docker, systemd", "/system.slice/docker-$A.scope", ["$A", N, N, N, N]),
    ("buildkit", "/docker/buildkit/x8k2m4n6p8q0r2s4t6u8v0w2x", [N, N, N, N, N]),
    ("Podman, root", "/machine.slice/libpod-$A.scope", ["$A", N, N, N, N]),
    ("Podman, root, with a group below", "/machine.slice/libpod-$A.scope/container", ["$A", N, N, N, N]),
    ("Podman, rootless", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-$A.scope", ["$A", N, N, N, N]),
    ("Podman's monitor", "/machine.slice/libpod-conmon-$A.scope", [N, N, N, N, N]),
    ("Podman's pod is no pod of Kubernetes", "/machine.slice/machine-libpod_pod_$B.slice/libpod-$A.scope", ["$A", N, N, N, N]),
    ("Slurm v2", "/system.slice/slurmstepd.scope/job_3385/step_0/user/task_0", [N, N, N, "3385", "0"]),
    ("Slurm v2, batch", "/system.slice/slurmstepd.scope/job_3385/step_batch/user/task_special", [N, N, N, "3385", "batch"]),
    ("Slurm v2, extern", "/system.slice/slurmstepd.scope/job_3385/step_extern/user/task_special", [N, N, N, "3385", "extern"]),
    ("Slurm v2, interactive", "/system.slice/slurmstepd.scope/job_3385/step_interactive/user/task_0", [N, N, N, "3385", "interactive"]),
    ("Slurm v2, daemon", "/system.slice/slurmstepd.scope/job_3385/step_0/slurm", [N, N, N, "3385", "0 daemon"]),
    ("Slurm v2, job alone", "/system.slice/slurmstepd.scope/job_3385", [N, N, N, "3385", N]),
    ("Slurm v2, no job", "/system.slice/slurmstepd.scope/system", [N, N, N, N, N]),
    ("Slurm v2, several slurmd", "/system.slice/gpu-01_slurmstepd.scope/job_7/step_0/user/task_1", [N, N, N, "7", "0"]),
    ("Slurm v2, SLUID", "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", [N, N, N, "s5K1KKYAYG5D00", "0"]),
    ("Slurm v1", "/slurm/uid_1000/job_42/step_0/task_0", [N, N, N, "42", "0"]),
    ("Slurm v1, several slurmd", "/slurm_gpu-01/uid_1000/job_42/step_batch/task_0", [N, N, N, "42", "batch"]),
    ("Slurm in a pod", "/kubepods/burstable/pod$UID/$A/system.slice/slurmstepd.scope/job_9/step_0/user/task_0", ["$A", N, "$UID", "9", "0"]),
    ("Podman in a job", "/system.slice/slurmstepd.scope/job_9/step_0/user/task_0/libpod-$A.scope", ["$A", N, N, "9", "0"]),
    ("the group was removed", "/kubepods/pod$UID/$A (deleted)", ["$A", N, "$UID", N, N]),
    ("service of the host", "/system.slice/nvidia-persistenced.service", [N, N, N, N, N]),
    ("kernel and root", "/", [N, N, N, N, N]),
    ("digits too few for a container", "/docker/abcdef0123456789", [N, N, N, N, N]),
    ("a pod without a UID", "/kubepods/burstable/podracer/$A", ["$A", N, N, N, N]),
    ("a job without a number", "/system.slice/slurmstepd.scope/job_x/step_0", [N, N, N, N, N]),
    ("a user's own folder", "/user.slice/slurmy/job_1/step_0", [N, N, N, N, N]),
];

fn fill(text: &str) -> String {
    let pairs = [("$A", A), ("$B", B), ("$UNDER", UNDER), ("$UID", UID), ("$HASH", HASH)];
    pairs.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn said(belonging: &Belonging) -> [String; 5] {
    let text = |name: Option<&gpuledger_wire::text::Name>| name.map(ToString::to_string).unwrap_or_default();
    let job = belonging.slurm.as_ref();
    let name = job.map(|job| match &job.name {
        JobName::Number(name) | JobName::Declared(name) | JobName::Sluid { sluid: name, .. } => name,
    });
    let daemon = if job.is_some_and(|job| job.is_daemon) { " daemon" } else { "" };
    [
        text(belonging.container.as_ref().map(|container| &container.id)),
        text(belonging.container.as_ref().and_then(|container| container.outer.as_ref())),
        text(belonging.pod_uid.as_ref()),
        text(name),
        text(job.and_then(|job| job.step.as_ref())) + daemon,
    ]
}

#[test]
fn every_shape_of_path_is_read() {
    for (what, path, expected) in TABLE {
        for text in [
            format!("0::{}\n", fill(path)),
            format!("5:cpu,cpuacct:/\n4:memory:{}\n1:name=systemd:/\n", fill(path)),
        ] {
            let belonging = belonging_of(&text).unwrap();
            assert_eq!(said(&belonging), expected.map(fill), "{what}: {text}");
        }
    }
}

#[test]
fn of_several_hierarchies_those_that_are_always_filled_come_first() {
    let text = fill(
        "9:devices:/docker/$B\n7:memory:/kubepods/pod$UID/$A\n3:name=systemd:/docker/$B\n0::/system.slice/docker.service\n",
    );
    assert_eq!(said(&belonging_of(&text).unwrap()), ["$A", N, "$UID", N, N].map(fill));
}

#[test]
fn slurm_may_fill_other_hierarchies_than_the_runtime() {
    let text = fill(
        "9:freezer:/slurm/uid_0/job_42/step_0\n7:memory:/docker/$A\n1:name=systemd:/system.slice/slurmd.service\n",
    );
    assert_eq!(said(&belonging_of(&text).unwrap()), ["$A", N, N, "42", "0"].map(fill));
}

#[test]
fn a_path_that_is_cut_off_is_said() {
    for path in
        ["/..", "/../cri-containerd-$A.scope", "/../../kubepods-pod$UNDER.slice/cri-containerd-$A.scope"]
    {
        assert_eq!(
            belonging_of(&fill(&format!("0::{path}\n"))),
            Err(Unknown::PrivateCgroupNamespace),
            "{path}"
        );
    }
}

#[test]
fn what_is_no_line_is_left_out() {
    assert!(belonging_of("").unwrap().is_host());
    assert!(belonging_of("nonsense\n0:\n").unwrap().is_host());
}
