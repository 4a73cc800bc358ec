//! The program on a database of its own.

use crate::answer;
use gpuledger_cases::{Case, Expect, Said};
use gpuledger_domain::time::Instant;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The program, its database and its clock.
pub(crate) struct Product {
    url: String,
    folder: TempDir,
    files: usize,
    pub(crate) clock: Instant,
}

impl Product {
    /// Whether there is a server to make databases on; it is started where it does not run.
    pub(crate) fn server() -> Result<(), String> {
        postgres("start", None).map(drop)
    }

    /// A migrated database.
    pub(crate) fn new(clock: Instant) -> Result<Self, String> {
        let url = postgres("fresh-db", None)?;
        let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
        let product = Self { url, folder, files: 0, clock };
        product.call(&["migrate"])?;
        Ok(product)
    }

    /// Applies the tenants and pools of the case.
    pub(crate) fn prepare(&self, case: &Case) -> Result<(), String> {
        let tenants = case.tenants.iter().map(|tenant| tenant.document().to_string());
        let pools = case.pools.iter().map(|pool| pool.document().to_string());
        let documents: Vec<String> = tenants.chain(pools).collect();
        if documents.is_empty() { Ok(()) } else { self.apply(&documents.join("\n---\n"), 0) }
    }

    /// Applies YAML documents; it must end with `exit`.
    pub(crate) fn apply(&self, yaml: &str, exit: i32) -> Result<(), String> {
        let file = self.write("objects.yaml", yaml)?;
        self.does(&["apply".to_owned(), "-f".to_owned(), file], exit)
    }

    /// Takes events in as one file, and moves the horizon.
    pub(crate) fn replay(&mut self, said: &[&Said], horizon: Instant) -> Result<(), String> {
        let lines: Vec<String> = said.iter().map(|event| format!("{}\n", event.json)).collect();
        self.files += 1;
        let file = self.write(&format!("{}.ndjson", self.files), &lines.concat())?;
        let (horizon, clock) = (horizon.to_string(), self.clock.to_string());
        self.call(&["replay", &file, "--as-of", &horizon, "--now", &clock]).map(drop)
    }

    /// Runs a command that must end with `exit`.
    pub(crate) fn does(&self, words: &[String], exit: i32) -> Result<(), String> {
        let words: Vec<String> =
            words.iter().map(|word| word.replace("FOLDER", &self.folder.path().to_string_lossy())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = self.run(&words)?;
        if done.status.code() == Some(exit) {
            return Ok(());
        }
        Err(format!(
            "`{}` ends with {:?}, expected {exit}: {}",
            words.join(" "),
            done.status.code(),
            said_by(&done)
        ))
    }

    /// Whether it answers as the case says.
    pub(crate) fn stands(&self, expect: &Expect) -> Result<(), String> {
        let words = answer::question(expect);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = self.call(&words)?;
        let json: Value =
            serde_json::from_str(&printed).map_err(|why| format!("`{}`: {why}", words.join(" ")))?;
        answer::stands(expect, &json)
    }

    fn write(&self, name: &str, text: &str) -> Result<String, String> {
        let path: PathBuf = self.folder.path().join(name);
        std::fs::write(&path, text).map_err(|why| why.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn call(&self, words: &[&str]) -> Result<String, String> {
        let done = self.run(words)?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(format!("`{}` ends with {:?}: {}", words.join(" "), done.status.code(), said_by(&done)))
    }

    fn run(&self, words: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(words).env("DATABASE_URL", &self.url).env("GPULEDGER_NOW", self.clock.to_string());
        command.env_remove("GPULEDGER_CONFIG").current_dir(self.folder.path()).stdin(Stdio::null());
        command.output().map_err(|why| why.to_string())
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        if let Err(why) = postgres("drop-db", Some(&self.url)) {
            eprintln!("{} stays: {why}", self.url);
        }
    }
}

fn said_by(done: &Output) -> String {
    let text = if done.stderr.is_empty() { &done.stdout } else { &done.stderr };
    String::from_utf8_lossy(text).trim().to_owned()
}

/// The last line that `postgres.sh` prints.
fn postgres(word: &str, url: Option<&str>) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/local/postgres.sh");
    let mut command = Command::new(script);
    command.arg(word).stdin(Stdio::null());
    if let Some(url) = url {
        command.env("DATABASE_URL", url);
    }
    let done = command.output().map_err(|why| why.to_string())?;
    if !done.status.success() {
        return Err(said_by(&done));
    }
    Ok(String::from_utf8_lossy(&done.stdout).lines().last().unwrap_or_default().to_owned())
}
