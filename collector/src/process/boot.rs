//! The node's boot: its id, and the instant from which the kernel counts.

use gpuledger_domain::time::{Instant, SECOND_US};
use gpuledger_wire::text::Name;
use std::fs;
use std::path::{Path, PathBuf};

/// A boot of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's random id of it.
    pub id: Name,
    /// When it began, in whole seconds.
    pub began: Instant,
}

/// The boot cannot be told, so that no process has an identity.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {why}; expected a procfs there", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// A file says something else.
    #[error("{}: {what}", .path.display())]
    Unexpected {
        /// Which file.
        path: PathBuf,
        /// What is missing there.
        what: &'static str,
    },
}

impl Boot {
    /// The present boot by the procfs below `root`.
    ///
    /// The kernel works out the beginning of the boot from the wall clock, so that it moves by a second when that is set. Start times of
    /// processes hang on it and must not move: what was read first in a boot is kept in the file `kept`, where one is given, and holds
    /// until the boot id changes. Writing it is an attempt; without it, only a restarted collector may differ.
    ///
    /// # Errors
    /// The boot id or the beginning cannot be read.
    pub fn read(root: &Path, kept: Option<&Path>) -> Result<Self, BootError> {
        let id = boot_id(&root.join("sys/kernel/random/boot_id"))?;
        if let Some(began) = kept.and_then(|kept| recall(kept, &id)) {
            return Ok(Self { id, began });
        }
        let began = btime(&root.join("stat"))?;
        let boot = Self { id, began };
        if let Some(kept) = kept
            && let Err(why) = boot.keep(kept)
        {
            tracing::warn!(file = %kept.display(), %why, "the beginning of the boot cannot be kept");
        }
        Ok(boot)
    }

    fn keep(&self, kept: &Path) -> std::io::Result<()> {
        let fresh = kept.with_extension("new");
        fs::write(&fresh, format!("{} {}\n", self.id, self.began.as_micros() / SECOND_US))?;
        fs::rename(fresh, kept)
    }
}

fn read(path: &Path) -> Result<String, BootError> {
    fs::read_to_string(path).map_err(|why| BootError::Unreadable { path: path.to_owned(), why })
}

fn boot_id(path: &Path) -> Result<Name, BootError> {
    let text = read(path)?;
    Name::new(text.trim())
        .map_err(|_| BootError::Unexpected { path: path.to_owned(), what: "holds no boot id" })
}

fn btime(path: &Path) -> Result<Instant, BootError> {
    let text = read(path)?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "));
    seconds
        .and_then(instant)
        .ok_or_else(|| BootError::Unexpected { path: path.to_owned(), what: "has no line `btime SECONDS`" })
}

fn instant(seconds: &str) -> Option<Instant> {
    let seconds: i64 = seconds.trim().parse().ok()?;
    seconds.checked_mul(SECOND_US).map(Instant::from_micros)
}

fn recall(kept: &Path, id: &Name) -> Option<Instant> {
    let text = fs::read_to_string(kept).ok()?;
    let (boot, seconds) = text.split_once(' ')?;
    (boot == id.as_str()).then(|| instant(seconds)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn node(root: &Path, id: &str, btime: i64) {
        fs::create_dir_all(root.join("sys/kernel/random")).unwrap();
        fs::write(root.join("sys/kernel/random/boot_id"), format!("{id}\n")).unwrap();
        fs::write(root.join("stat"), format!("cpu  1 2 3\nintr 9\nbtime {btime}\nprocesses 7\n")).unwrap();
    }

    #[test]
    fn the_beginning_is_read_once_a_boot() {
        let dir = TempDir::new().unwrap();
        let kept = dir.path().join("boot");
        node(dir.path(), "b1", 1_700_000_000);
        let first = Boot::read(dir.path(), Some(&kept)).unwrap();
        assert_eq!(first.began, Instant::from_micros(1_700_000_000_000_000));

        node(dir.path(), "b1", 1_700_000_001);
        assert_eq!(
            Boot::read(dir.path(), Some(&kept)).unwrap(),
            first,
            "the clock was set, the boot is the same"
        );
        assert_ne!(Boot::read(dir.path(), None).unwrap(), first, "nothing was kept");

        node(dir.path(), "b2", 1_700_009_000);
        let second = Boot::read(dir.path(), Some(&kept)).unwrap();
        assert_eq!((second.id.as_str(), second.began.as_micros()), ("b2", 1_700_009_000_000_000));
    }

    #[test]
    fn what_is_no_procfs_is_named() {
        let dir = TempDir::new().unwrap();
        let missing = Boot::read(dir.path(), None).unwrap_err().to_string();
        assert!(missing.contains("sys/kernel/random/boot_id: cannot be read"), "{missing}");
        node(dir.path(), "b1", 0);
        fs::write(dir.path().join("stat"), "cpu 1\n").unwrap();
        let wrong = Boot::read(dir.path(), None).unwrap_err().to_string();
        assert!(wrong.ends_with("stat: has no line `btime SECONDS`"), "{wrong}");
    }
}
