//! Which PostgreSQL is installed: the newest one, of version 15 or later.

use crate::outcome::OutOfReach;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest version with everything the schema uses.
const OLDEST: u32 = 15;
/// Where packages put versions side by side: the folder, and what comes after each version's own folder.
const SIDE_BY_SIDE: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr", "bin"),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
];

/// The programs of one installed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// Its major version.
    pub(super) version: u32,
    /// The folder of its programs.
    pub(super) bin: PathBuf,
}

impl Installed {
    /// The newest version that is installed.
    ///
    /// # Errors
    /// [`OutOfReach`], with what to install, where there is none.
    pub(super) fn newest() -> Result<Self> {
        let found = folders().into_iter().filter_map(|bin| Some(Self { version: version_in(&bin)?, bin }));
        let missing = || {
            OutOfReach(format!(
                "no PostgreSQL {OLDEST} or newer is installed, and the demo brings its own server up: \
                 `apt-get install postgresql` on Debian and Ubuntu, `dnf install postgresql-server` on Fedora, \
                 `brew install postgresql@17` on macOS"
            ))
        };
        Ok(Self::best(found).ok_or_else(missing)?)
    }

    /// The newest that is new enough; of equals the first.
    fn best(found: impl DoubleEndedIterator<Item = Self>) -> Option<Self> {
        found.filter(|one| one.version >= OLDEST).rev().max_by_key(|one| one.version)
    }

    /// One of its programs.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Folders that may hold a server's programs.
fn folders() -> Vec<PathBuf> {
    let side_by_side = SIDE_BY_SIDE.iter().flat_map(|(root, below)| {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        entries
            .filter(|entry| may_be_a_version(&entry.file_name().to_string_lossy()))
            .map(move |e| e.path().join(below))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let config = Command::new("pg_config").arg("--bindir").output().ok();
    let configured = config.map(|said| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()));
    side_by_side
        .chain(std::env::split_paths(&path))
        .chain(configured)
        .filter(|bin| bin.join("initdb").is_file())
        .collect()
}

/// `15`, `pgsql-15` or `postgresql@15`.
fn may_be_a_version(name: &str) -> bool {
    let name = ["pgsql-", "postgresql@"].iter().find_map(|head| name.strip_prefix(head)).unwrap_or(name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn version_in(bin: &Path) -> Option<u32> {
    let said = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    major(&String::from_utf8_lossy(&said.stdout))
}

/// The major version in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn major(said: &str) -> Option<u32> {
    let digits: String =
        said.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_server_says() {
        assert_eq!(major("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major("no such thing"), None);
    }

    #[test]
    fn folders_of_versions_are_told_from_others() {
        for name in ["15", "pgsql-17", "postgresql@16"] {
            assert!(may_be_a_version(name), "{name}");
        }
        for name in ["lib", "postgresql", "pgsql-", "15.old"] {
            assert!(!may_be_a_version(name), "{name}");
        }
    }

    #[test]
    fn the_newest_version_is_taken_and_of_equals_the_first() {
        let at = |version, bin: &str| Installed { version, bin: bin.into() };
        let found = [at(15, "/a"), at(17, "/b"), at(17, "/c"), at(9, "/d")];
        assert_eq!(Installed::best(found.into_iter()), Some(at(17, "/b")));
        assert_eq!(Installed::best([at(14, "/a")].into_iter()), None);
    }
}
