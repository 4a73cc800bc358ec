//! An exported log, verified by itself: no database, no network.

use super::review::Reader;
use crate::outcome::{Outcome, Usage};
use anyhow::Result;
use gpuledger_telemetry::terminal::{say, say_err};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::directory::{Report, Trust, verify_directory};
use gpuledger_tlog::note::Verifier;
use gpuledger_tlog::policy::Policy;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Faults that are printed.
const SHOWN: usize = 20;

/// What is verified, and by which trust.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The log's key.
    pub(crate) key: Option<String>,
    /// Or a policy with key and witnesses.
    pub(crate) policy: Option<PathBuf>,
    /// A checkpoint seen before.
    pub(crate) last: Option<PathBuf>,
    /// Entries of these leaves only are in the folder.
    pub(crate) leaves: Option<Range<u64>>,
    /// What leaves say is not looked at.
    pub(crate) hashes_only: bool,
}

/// Verifies tiles, leaves, links and openings. The exit code is the verdict; the first bad leaf is named.
pub(crate) fn verify(asked: &Asked) -> Result<Outcome> {
    let (policy, is_own) = policy(asked)?;
    let log = policy.logs().first().ok_or_else(|| Usage("the policy names no log".to_owned()))?;
    let last = match asked.last.as_deref().map(|path| seen(path, log)).transpose() {
        Ok(last) => last,
        Err(why) => return Ok(super::no(&format!("not verified: --last: {why}"))),
    };
    // Chains are followed from the first leaf on.
    let reads = !asked.hashes_only && asked.leaves.is_none();
    let mut reader = Reader::new(&asked.folder, reads)?;
    let trust = Trust { log, policy: &policy, last: last.as_ref(), leaves: asked.leaves.clone() };
    let mut report = verify_directory(&asked.folder, &trust, &mut reader);
    let opened = reader.finish();
    if let Err(why) = &opened {
        report.faults_total += 1;
        say_err(&format!("gpuledger: {why}"));
    }
    tell(&report, opened.unwrap_or(0));
    if is_own {
        say_err(
            "the key is the folder's own: it shows that the folder agrees with itself. Name by --key the one you know",
        );
    }
    Ok(if report.is_sound() { Outcome::Done } else { Outcome::No })
}

fn tell(report: &Report, opened: u64) {
    if let Some(head) = report.checkpoint.as_ref().filter(|_| report.is_sound()) {
        let cosigned =
            if report.cosigned.is_empty() { "nobody".to_owned() } else { report.cosigned.join(", ") };
        say(&format!(
            "{} leaves of {} under root {}, cosigned by {cosigned}",
            head.size,
            head.origin,
            head.root.to_base64()
        ));
        if opened > 0 {
            say(&format!("{opened} openings fit"));
        }
        return;
    }
    report.faults.iter().take(SHOWN).for_each(|fault| say_err(&format!("gpuledger: {fault}")));
    let first = report.first_bad_index.map(|index| format!("; the first bad leaf is {index}"));
    say_err(&format!("gpuledger: not verified: {} faults{}", report.faults_total, first.unwrap_or_default()));
}

/// The named key or policy, or else the policy that lies in the folder.
fn policy(asked: &Asked) -> Result<(Policy, bool)> {
    if let Some(key) = &asked.key {
        let log = Verifier::parse(key).map_err(|error| Usage(format!("--key: {error}")))?;
        return Ok((Policy::of_log(log), false));
    }
    let path = asked.policy.clone().unwrap_or_else(|| asked.folder.join("policy"));
    let wrong = |why: String| Usage(format!("{}: {why}; name the log's key by --key", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    Ok((Policy::parse(&text).map_err(|error| wrong(error.to_string()))?, asked.policy.is_none()))
}

fn seen(path: &Path, log: &Verifier) -> Result<Checkpoint, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let note = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    Checkpoint::open(&note, log, &[]).map(|(head, _)| head).map_err(|error| wrong(error.to_string()))
}
