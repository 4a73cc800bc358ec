//! Residue: who held a memory slice before and after, what lies between, and the evidence of a period.

mod pack;
mod report;

use super::writer;
use crate::cli::Residue;
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_books::Books;
use gpuledger_domain::fact::ScrubResult;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::residue::{History, Scrub, Verdict};
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs a command about residue.
pub(crate) async fn run(settings: &Settings, what: Residue) -> Result<Outcome> {
    match what {
        Residue::Report(args) => report::run(settings, args).await,
        Residue::Pack { from, to, as_of, dir } => pack::run(settings, from, to, as_of, &dir).await,
    }
}

/// What every GPU went through, as it is known at a horizon.
struct Look {
    books: Books,
    histories: BTreeMap<GpuId, History>,
    as_of: Instant,
    tx: Tx,
}

async fn look(settings: &Settings, as_of: Option<Instant>) -> Result<Look> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let books = Books::load(&mut tx).await?;
    let as_of = as_of.or(books.horizon).unwrap_or(Instant::from_micros(0));
    let histories = books.terms.residue(&books.facts, as_of);
    Ok(Look { books, histories, as_of, tx })
}

/// A verdict in a word.
const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Baseline => "baseline",
        Verdict::Clean(_) => "clean",
        Verdict::Beside => "beside",
        Verdict::Trusted(_) => "trusted",
        Verdict::Skipped(..) => "skipped",
        Verdict::Missing(_) => "missing",
        Verdict::Violation(_) => "violation",
    }
}

fn scrub_json(scrub: &Scrub) -> Value {
    let result = match scrub.evidence.result {
        ScrubResult::Passed => "passed",
        ScrubResult::Failed => "failed",
        ScrubResult::Incomplete => "incomplete",
        ScrubResult::Skipped => "skipped",
    };
    json!({
        "scrub": scrub.scrub.as_str(), "slices": scrub.slices.to_string(), "started_at": scrub.started_at.to_string(),
        "finished_at": scrub.finished_at.to_string(), "result": result, "verified": scrub.is_verified(),
        "bytes_total": scrub.evidence.bytes_total.to_string(), "bytes_covered": scrub.evidence.bytes_covered.to_string(),
        "bytes_reserved": scrub.evidence.bytes_reserved.to_string(), "bytes_read": scrub.evidence.bytes_read.to_string(),
        "mismatches": scrub.evidence.mismatches.to_string(),
    })
}
