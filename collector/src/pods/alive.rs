//! Which pods live: those that have a control group. The kubelet removes it when the pod is finished.

use crate::process::pod_uid_in;
use gpuledger_wire::text::Name;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Below the root lie the groups themselves, or, in version 1, one tree for each of these.
const TREES: [&str; 4] = ["", "memory", "pids", "systemd"];
/// `kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/` is the deepest place of a pod.
const DEPTH: usize = 4;

/// The UIDs of the living pods. None: no tree of Kubernetes can be read below the root, which says nothing about pods.
pub(super) fn pods(root: &Path) -> Option<BTreeSet<Name>> {
    let mut level: Vec<PathBuf> = TREES.iter().map(|tree| root.join(tree)).collect();
    let mut found = BTreeSet::new();
    let mut any = false;
    for _ in 0..DEPTH {
        let mut below = Vec::new();
        for folder in level.iter().flat_map(fs::read_dir).flatten().flatten() {
            let name = folder.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(uid) = pod_uid_in(name) {
                found.insert(uid);
            } else if is_above_pods(name) {
                any = true;
                below.push(folder.path());
            }
        }
        level = below;
    }
    any.then_some(found)
}

fn is_above_pods(name: &str) -> bool {
    name.contains("kube") || matches!(name, "burstable" | "besteffort")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const UNDER: &str = "1f2e3d4c_5b6a_4789_8a9b_0c1d2e3f4a5";

    fn node(folders: &[String]) -> TempDir {
        let dir = TempDir::new().unwrap();
        for folder in folders {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        dir
    }

    #[test]
    fn pods_of_every_layout_are_found() {
        for (what, slice) in [
            ("version 2", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"),
            (
                "kind",
                "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod",
            ),
            ("version 1", "memory/kubepods.slice/kubepods-pod"),
        ] {
            let dir = node(&[
                format!("{slice}{UNDER}1.slice/cri-containerd-x.scope"),
                format!("{slice}{UNDER}2.slice"),
            ]);
            let found = pods(dir.path()).unwrap();
            let found: Vec<&str> = found.iter().map(Name::as_str).collect();
            let uid = UNDER.replace('_', "-");
            assert_eq!(found, [format!("{uid}1"), format!("{uid}2")], "{what}");
        }
        let dir = node(&[format!("systemd/kubepods/burstable/pod{}1", UNDER.replace('_', "-"))]);
        assert_eq!(pods(dir.path()).unwrap().len(), 1, "cgroupfs");
    }

    #[test]
    fn no_tree_of_kubernetes_says_nothing_and_an_empty_one_that_none_lives() {
        assert_eq!(pods(node(&["system.slice".to_owned()]).path()), None);
        assert_eq!(
            pods(node(&["kubepods.slice/kubepods-burstable.slice".to_owned()]).path()),
            Some(BTreeSet::new())
        );
    }
}
