//! In which namespaces the collector itself stands.

use std::fmt;
use std::fs;
use std::path::Path;

/// Inode of the first PID namespace: `PROC_PID_INIT_INO` of the kernel.
const INIT_PID: u64 = 0xEFFF_FFFC;
/// Inode of the first control group namespace: `PROC_CGROUP_INIT_INO` of the kernel.
const INIT_CGROUP: u64 = 0xEFFF_FFFB;

/// Whether a namespace is that of the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// The node's own.
    Init,
    /// Another one, by its inode.
    Other(u64),
    /// The procfs does not say.
    Untold,
}

/// The collector's own standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Of process numbers. In another one NVML's numbers and those of the procfs may mean different processes, so nothing is attributed.
    pub pid: Namespace,
    /// Of control groups. In another one their paths are cut off, so no owner can be read.
    pub cgroup: Namespace,
}

impl Standing {
    /// Reads it from the procfs below `root`.
    pub fn read(root: &Path) -> Self {
        let of = |name: &str, init: u64| namespace(&root.join("self/ns").join(name), init);
        Self { pid: of("pid", INIT_PID), cgroup: of("cgroup", INIT_CGROUP) }
    }
}

impl fmt::Display for Standing {
    /// What hinders attribution, and what would help, in one sentence a hindrance; empty where nothing does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Namespace::Other(inode) = self.pid {
            write!(
                f,
                "the collector stands in PID namespace {inode}, not in the node's own ({INIT_PID}), so that no process is attributed: run it with the host's PID namespace (hostPID)"
            )?;
        }
        if let Namespace::Other(inode) = self.cgroup {
            let and = if matches!(self.pid, Namespace::Other(_)) { "; " } else { "" };
            write!(
                f,
                "{and}the collector stands in control group namespace {inode}, not in the node's own ({INIT_CGROUP}), so that no owner can be read: run it with the host's control group namespace"
            )?;
        }
        Ok(())
    }
}

/// A link to `pid:[4026531836]`; a copy of a procfs has the same as a file.
fn namespace(path: &Path, init: u64) -> Namespace {
    let link = fs::read_link(path).map(|target| target.to_string_lossy().into_owned());
    match link.or_else(|_| fs::read_to_string(path)).ok().as_deref().and_then(inode) {
        Some(inode) if inode == init => Namespace::Init,
        Some(inode) => Namespace::Other(inode),
        None => Namespace::Untold,
    }
}

fn inode(text: &str) -> Option<u64> {
    text.trim().split_once(":[")?.1.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn the_first_namespaces_are_told_from_others() {
        let dir = TempDir::new().unwrap();
        let ns = dir.path().join("self/ns");
        fs::create_dir_all(&ns).unwrap();
        assert_eq!(
            Standing::read(dir.path()),
            Standing { pid: Namespace::Untold, cgroup: Namespace::Untold }
        );

        std::os::unix::fs::symlink("pid:[4026531836]", ns.join("pid")).unwrap();
        fs::write(ns.join("cgroup"), "cgroup:[4026532198]\n").unwrap();
        let standing = Standing::read(dir.path());
        assert_eq!(standing, Standing { pid: Namespace::Init, cgroup: Namespace::Other(4_026_532_198) });
        let text = standing.to_string();
        assert!(text.starts_with("the collector stands in control group namespace 4026532198"), "{text}");
    }
}
