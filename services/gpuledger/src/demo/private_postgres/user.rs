//! Who runs the server: `PostgreSQL` refuses to run as root, so root runs it as somebody else.

use crate::outcome::OutOfReach;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whom root asks, in this order.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];
/// Where the data go when the server's user cannot reach the folder that was wanted.
const FALLBACKS: [&str; 2] = ["/tmp", "/var/tmp"];

/// The user a server runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerUser {
    /// The one who runs this process.
    Same,
    /// Another one, by name, user and group number.
    Other(String, u32, u32),
}

impl ServerUser {
    /// This process's own user; where that is root, one who may run a server.
    ///
    /// # Errors
    /// [`OutOfReach`] where root finds nobody.
    pub(super) fn of_this_process() -> Result<Self> {
        if id(&["-u"]) != Some(0) {
            return Ok(Self::Same);
        }
        let found = CANDIDATES
            .into_iter()
            .find_map(|name| Some(Self::Other(name.to_owned(), id(&["-u", name])?, id(&["-g", name])?)));
        let nobody = || {
            OutOfReach(
                "PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody` to run it as"
                    .into(),
            )
        };
        Ok(found.ok_or_else(nobody)?)
    }

    /// A command this user runs, with nothing of the caller's own settings for `PostgreSQL`.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self {
            Self::Same => Command::new(program),
            Self::Other(name, ..) => {
                let mut command = Command::new("runuser");
                command.args(["-u", name, "--"]).arg(program);
                command
            }
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").current_dir("/");
        command
    }

    /// A command line as a person types it.
    pub(super) fn in_words(&self, line: &str) -> String {
        match self {
            Self::Same => line.to_owned(),
            Self::Other(name, ..) => format!("runuser -u {name} -- {line}"),
        }
    }

    /// Makes the folder `postgres` of this user in `home`, or in a temporary folder where the user cannot reach `home`.
    ///
    /// # Errors
    /// No folder can be made; [`OutOfReach`] where the user reaches none.
    pub(super) fn folder(&self, home: &Path) -> Result<PathBuf> {
        if self.reaches(home)? {
            return self.own(home.join("postgres"));
        }
        for root in FALLBACKS.map(Path::new) {
            if self.reaches(root)? {
                let folder = tempfile::Builder::new().prefix("gpuledger-demo-postgres-").tempdir_in(root);
                return self.own(folder.with_context(|| root.display().to_string())?.keep());
            }
        }
        Err(OutOfReach(format!(
            "the user PostgreSQL runs as can reach neither {} nor /tmp nor /var/tmp",
            home.display()
        ))
        .into())
    }

    fn reaches(&self, folder: &Path) -> Result<bool> {
        if *self == Self::Same {
            return Ok(true);
        }
        let status = self.command("test").arg("-x").arg(folder).status();
        Ok(status
            .context("running runuser (package util-linux), which root needs to start PostgreSQL")?
            .success())
    }

    /// Makes a folder and gives it to this user alone.
    fn own(&self, folder: PathBuf) -> Result<PathBuf> {
        let name = || folder.display().to_string();
        std::fs::create_dir_all(&folder).with_context(name)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).with_context(name)?;
        if let Self::Other(_, user, group) = self {
            std::os::unix::fs::chown(&folder, Some(*user), Some(*group)).with_context(name)?;
        }
        Ok(folder)
    }
}

fn id(arguments: &[&str]) -> Option<u32> {
    let said = Command::new("id").args(arguments).output().ok().filter(|said| said.status.success())?;
    String::from_utf8_lossy(&said.stdout).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_speaks_through_runuser_and_others_for_themselves() {
        let other = ServerUser::Other("postgres".into(), 101, 103);
        assert_eq!(other.in_words("pg_ctl stop"), "runuser -u postgres -- pg_ctl stop");
        assert_eq!(ServerUser::Same.in_words("pg_ctl stop"), "pg_ctl stop");
        assert_eq!(other.command("sh").get_program(), "runuser");
        assert_eq!(ServerUser::Same.command("sh").get_program(), "sh");
    }

    #[test]
    fn the_folder_is_its_users_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = ServerUser::Same.folder(home.path()).unwrap();
        assert_eq!(folder, home.path().join("postgres"));
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
