//! A proof file, verified by itself.

use super::no;
use crate::outcome::{Outcome, Usage};
use anyhow::Result;
use gpuledger_telemetry::terminal::say;
use gpuledger_tlog::bundle::ProofFile;
use gpuledger_tlog::note::Verifier;
use gpuledger_tlog::policy::Policy;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::{Opening, read_extra};
use std::path::Path;

/// Verifies that the leaf in the file stands in the log of the key, and prints what the openings show. The exit code is the verdict.
pub(crate) fn verify(file: &Path, key: Option<&str>) -> Result<Outcome> {
    let wrong = |why: String| Usage(format!("{}: {why}", file.display()));
    let key = key.ok_or_else(|| {
        Usage("--key VKEY is needed: a proof proves nothing under a key of its own".to_owned())
    })?;
    let log = Verifier::parse(key).map_err(|error| Usage(format!("--key: {error}")))?;
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let proof = match ProofFile::parse(&text) {
        Ok(proof) => proof,
        Err(error) => return Ok(no(&format!("{}: {error}", file.display()))),
    };
    let Some((bytes, openings)) = proof.extra.as_deref().and_then(read_extra) else {
        return Ok(no("the file has no leaf in its `extra`: `gpuledger audit prove` puts it there"));
    };
    let head = match proof.verify(&bytes, &log, &Policy::of_log(log.clone())) {
        Ok(head) => head,
        Err(error) => return Ok(no(&format!("leaf {}: {error}", proof.index))),
    };
    let Some(leaf) = Leaf::parse(&bytes) else {
        return Ok(no(&format!("leaf {} is in the log and none of ours", proof.index)));
    };
    if leaf.index() != Some(proof.index) {
        return Ok(no(&format!("leaf {} says that it is {:?}", proof.index, leaf.index())));
    }
    if let Some(bad) = openings.iter().find(|opening| !fits(opening, proof.index, &leaf)) {
        return Ok(no(&format!(
            "leaf {}: what is said of {} does not open its commitment",
            proof.index, bad.field
        )));
    }
    say(&format!("leaf {} of {} leaves in {}: {}", proof.index, head.size, head.origin, leaf.kind));
    say(&String::from_utf8_lossy(&bytes));
    for opening in openings {
        let shown =
            opening.value.map_or_else(|| "salt given, value not".to_owned(), |value| value.to_string());
        say(&format!("{} = {shown}", opening.field));
    }
    Ok(Outcome::Done)
}

fn fits(opening: &Opening, index: u64, leaf: &Leaf) -> bool {
    opening.index == index && opening.opens(leaf.content())
}
