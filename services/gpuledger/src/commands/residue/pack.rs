//! The evidence of a period for auditors: every release, what was found, every scrub, and the leaves of the log that hold them.

use super::{Look, look, word};
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use anyhow::{Context, Result};
use gpuledger_books::facts::event_of;
use gpuledger_domain::finding::Finding;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::residue::{History, Hold, Verdict, findings};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::{audit_log, facts, leaves};
use gpuledger_telemetry::terminal::say;
use gpuledger_trail::sealed::{Gone, open, terms};
use gpuledger_wire::{EventData, canonical_json};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The files of a pack.
struct Files<'d> {
    dir: &'d Path,
    listed: BTreeMap<String, Value>,
}

impl Files<'_> {
    /// Writes rows as canonical JSON, one a line, and notes count and digest.
    fn write(&mut self, name: &str, rows: &[Value]) -> Result<()> {
        let mut bytes = Vec::new();
        for row in rows {
            bytes.extend(canonical_json(row));
            bytes.push(b'\n');
        }
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        self.listed.insert(name.to_owned(), json!({"rows": rows.len().to_string(), "sha256": digest}));
        let path = self.dir.join(name);
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())
    }
}

/// Writes the pack of `[from, to)` into a folder that is not there yet or empty.
pub(super) async fn run(
    settings: &Settings,
    from: Instant,
    to: Instant,
    as_of: Option<Instant>,
    dir: &Path,
) -> Result<Outcome> {
    let window =
        Window::new(from, to).ok_or_else(|| Usage(format!("--from {from} is not before --to {to}")))?;
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    if std::fs::read_dir(dir).with_context(|| dir.display().to_string())?.next().is_some() {
        return Err(Usage(format!("{}: is not empty, expected a new folder", dir.display())).into());
    }
    let mut look = look(settings, as_of).await?;
    let mut files = Files { dir, listed: BTreeMap::new() };
    let population = population(&look, window);
    files.write("population.ndjson", &population)?;
    let exceptions = exceptions(&look, window);
    files.write("exceptions.ndjson", &exceptions)?;
    let (scrubs, covered) = scrubs(&mut look, window).await?;
    files.write("scrubs.ndjson", &scrubs)?;
    let checkpoint = audit_log::latest_checkpoint(&mut look.tx).await?;
    let note = checkpoint.map(|checkpoint| String::from_utf8_lossy(&checkpoint.note).into_owned());
    let summary = json!({
        "from": from.to_string(), "to": to.to_string(), "as_of": look.as_of.to_string(), "rule_set": gpuledger_ledger::RULE_SET,
        "releases": population.len().to_string(), "exceptions": exceptions.len().to_string(), "scrubs": scrubs.len().to_string(),
        "scrubs_with_leaf": covered.to_string(), "checkpoint": note, "files": files.listed,
    });
    let path = dir.join("summary.json");
    std::fs::write(&path, canonical_json(&summary)).with_context(|| path.display().to_string())?;
    say(&format!(
        "{} releases, {} exceptions, {} scrubs ({covered} in the log) of [{from}, {to}) in {}",
        population.len(),
        exceptions.len(),
        scrubs.len(),
        dir.display()
    ));
    Ok(Outcome::Done)
}

/// Every hold that ended in the period, with what the next holder of each slice found.
fn population(look: &Look, window: Window) -> Vec<Value> {
    look.histories.values().flat_map(|history| of_gpu(look, history, window)).collect()
}

fn of_gpu(look: &Look, history: &History, window: Window) -> Vec<Value> {
    let rules = look.books.terms.residue_rules(history);
    let judged = history.judge(&rules, Instant::MIN);
    let ended = history.holds.iter().filter(|hold| !hold.open && window.contains(hold.end));
    let next = |hold: &Hold, slice: u8| {
        let next = judged.iter().find(|next| next.hold.start >= hold.end && next.slices.contains_key(&slice));
        let verdict = next.and_then(|next| next.slices.get(&slice));
        json!({
            "slice": slice.to_string(), "next": next.map(|next| next.hold.allocation.as_str()),
            "at": next.map(|next| next.hold.start.to_string()), "verdict": verdict.map(word),
            "scrub": verdict.and_then(|verdict| match verdict {
                Verdict::Clean(scrub) | Verdict::Skipped(_, scrub) => Some(scrub.as_str()),
                _ => None,
            }),
        })
    };
    let row = |hold: &Hold| {
        let slices: Vec<Value> =
            history.slices(hold.placement).each().map(|slice| next(hold, slice)).collect();
        json!({
            "allocation": hold.allocation.as_str(), "tenant": hold.last_owner().map(|t| t.as_str()), "gpu": history.gpu.as_str(),
            "start": hold.start.to_string(), "end": hold.end.to_string(), "slices": slices,
        })
    };
    ended.map(row).collect()
}

fn exceptions(look: &Look, window: Window) -> Vec<Value> {
    let found = |history: &History| {
        let rules = look.books.terms.residue_rules(history);
        findings(history, &rules, look.as_of)
    };
    let json = |gpu: &GpuId, finding: Finding| {
        json!({
            "kind": finding.kind.as_str(), "severity": finding.kind.severity().as_str(), "gpu": gpu.as_str(),
            "subject": finding.subject, "since": finding.since.to_string(),
            "until": finding.until.map(|until| until.to_string()), "detail": finding.detail,
        })
    };
    let mut rows = Vec::new();
    for (gpu, history) in &look.histories {
        let of_gpu = found(history).into_iter().filter(|finding| window.contains(finding.since));
        rows.extend(of_gpu.map(|finding| json(gpu, finding)));
    }
    rows
}

/// Every scrub that ended in the period as it was said, who was erased as such, with its leaf in the log; and how many have one.
async fn scrubs(look: &mut Look, window: Window) -> Result<(Vec<Value>, usize)> {
    let mut said = Vec::new();
    let mut all = facts::load_all(&mut look.tx).await?;
    let terms = terms(&look.tx);
    open(&mut look.tx, &terms.seal, all.iter_mut().map(|stored| &mut stored.body).collect(), Gone::Said)
        .await?;
    for stored in all {
        let event = event_of(&stored)?;
        if matches!(event.data, EventData::ScrubFinished(_)) && window.contains(event.time) {
            said.push((stored.seq, event));
        }
    }
    let seqs: Vec<i64> = said.iter().map(|(seq, _)| *seq).collect();
    let leaves = leaves::of_facts(&mut look.tx, &seqs).await?;
    let row = |(seq, event): &(i64, gpuledger_wire::Event)| {
        json!({
            "source": event.source, "id": event.id, "time": event.time.to_string(), "data": event.raw_data,
            "leaf_index": leaves.get(seq).map(ToString::to_string),
        })
    };
    Ok((said.iter().map(row).collect(), leaves.len()))
}
