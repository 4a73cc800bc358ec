//! A Postgres of the demo's own, from installed binaries: loopback, a free port, a random password. It ends with the demo, however that
//! ends: a watcher waits at the other end of a pipe, and a pipe closes even where a process is killed.

mod installed;
mod user;

use super::random::hex;
use crate::outcome::OutOfReach;
use anyhow::{Context, Result};
use installed::Installed;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use user::ServerUser;

/// How often another port is tried: somebody may take a free one before the server does.
const TRIES: u32 = 5;
/// Makes a cluster. `$0` the folder of the binaries, `$1` the server's folder, `$2` its settings; the password comes on standard input.
const MAKE: &str = r#"umask 077
cat >"$1/secret"
"$0/initdb" --pgdata="$1/data" --username=postgres --encoding=UTF8 --locale=C --auth=password --pwfile="$1/secret" --no-sync >&2
made=$?
rm -f "$1/secret"
[ "$made" = 0 ] && printf '%s' "$2" >>"$1/data/postgresql.conf""#;
/// Waits for a word or for the end of this process, then stops the server. `$2` says whether data stay.
const WATCH: &str = r#"read -r word
[ "$word" = keep ] && exit 0
"$0/pg_ctl" stop -s -w -t 30 -m fast -D "$1/data" >/dev/null 2>&1
[ "$2" = keep-data ] || rm -rf "$1/data" "$1/log" && rmdir "$1""#;
/// What the server is told. The password travels in clear: it never leaves the loopback, and a SCRAM handshake in a debug build takes a
/// tenth of a second for each connection.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
timezone = 'UTC'
log_timezone = 'UTC'
";
/// Data that are thrown away at the end need not survive a power cut.
const THROW_AWAY: &str = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n";

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct PrivatePostgres {
    installed: Installed,
    user: ServerUser,
    /// Holds data and log.
    folder: PathBuf,
    port: u16,
    password: String,
    is_kept: bool,
    watcher: Option<Child>,
}

impl PrivatePostgres {
    /// Makes a cluster in `home`/postgres and starts it. Root starts it as another user; where that one cannot reach `home`, the data lie in
    /// a temporary folder. With `is_kept` the data stay when it stops.
    ///
    /// # Errors
    /// [`OutOfReach`] where no server is installed or it does not start.
    pub(crate) fn start(home: &Path, is_kept: bool) -> Result<Self> {
        let installed = Installed::newest()?;
        let user = ServerUser::of_this_process()?;
        let folder = user.folder(home)?;
        let mut server =
            Self { installed, user, folder, port: 0, password: hex(16)?, is_kept, watcher: None };
        server.watcher = Some(server.watch()?);
        server.make()?;
        server.launch()?;
        Ok(server)
    }

    /// Where its database is.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres?sslmode=disable", self.password, self.port)
    }

    /// `PostgreSQL 15 on 127.0.0.1:40123`.
    pub(crate) fn describe(&self) -> String {
        format!("PostgreSQL {} on 127.0.0.1:{}", self.installed.version, self.port)
    }

    /// Where its data lie.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The command line that stops it, where it is left running.
    pub(crate) fn stop_command(&self) -> String {
        let stop = format!(
            "{} stop -D {}",
            self.installed.program("pg_ctl").display(),
            self.folder.join("data").display()
        );
        self.user.in_words(&stop)
    }

    /// Leaves it running when this process ends.
    ///
    /// # Errors
    /// The watcher has gone.
    pub(crate) fn leave_running(mut self) -> Result<()> {
        let Some(mut watcher) = self.watcher.take() else { return Ok(()) };
        let mut word = watcher.stdin.take().context("the watcher of the server has no input")?;
        word.write_all(b"keep\n").context("telling the watcher of the server")?;
        drop(word);
        watcher.wait().context("waiting for the watcher of the server")?;
        Ok(())
    }

    fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let mut command = self.user.command("sh");
        command.args(["-c", script]).arg(&self.installed.bin).arg(&self.folder).args(arguments);
        command
    }

    fn watch(&self) -> Result<Child> {
        let what = if self.is_kept { "keep-data" } else { "remove-data" };
        let mut command = self.command(WATCH, &[what]);
        // A group of its own: Ctrl-C reaches the demo only, and the server stops after it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("starting the watcher of the server")
    }

    fn make(&self) -> Result<()> {
        let settings = if self.is_kept { SETTINGS.to_owned() } else { format!("{SETTINGS}{THROW_AWAY}") };
        let mut command = self.command(MAKE, &[&settings]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting initdb")?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(self.password.as_bytes()).context("telling initdb the password")?;
        }
        succeeded(&child.wait_with_output().context("running initdb")?, "initdb failed")
    }

    fn launch(&mut self) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..TRIES {
            self.port = free_port()?;
            let (data, log) = (self.folder.join("data"), self.folder.join("log"));
            let mut command = self.user.command("sh");
            // The last line of the settings that names a port counts.
            let script = r#"printf 'port = %s\n' "$3" >>"$1/postgresql.conf"
"$0" start -s -w -t 60 -D "$1" -l "$2" >&2"#;
            command.args(["-c", script]).arg(self.installed.program("pg_ctl")).args([data, log]);
            let output = command.arg(self.port.to_string()).stdin(Stdio::null()).output();
            last = succeeded(&output.context("running pg_ctl")?, "PostgreSQL does not start");
            if last.is_ok() {
                break;
            }
        }
        last
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            drop(watcher.stdin.take());
            let ended = watcher.wait();
            tracing::debug!(?ended, "the private server is stopped");
        }
        if !self.is_kept {
            // What is left is an empty folder; it may be gone already.
            let removed = std::fs::remove_dir(&self.folder);
            tracing::debug!(?removed, "the private server's folder");
        }
    }
}

fn succeeded(output: &Output, what: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(OutOfReach(format!("{what}: {}", said.trim())).into())
}

/// A port nobody listens on now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr().context("looking for a free port")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_program_said() {
        let output = Command::new("sh").args(["-c", "echo no room >&2; exit 1"]).output().unwrap();
        let error = succeeded(&output, "initdb failed").unwrap_err();
        assert_eq!(error.to_string(), "initdb failed: no room");
        assert!(error.is::<OutOfReach>());
    }
}
