//! Findings from what nodes measured, GPU by GPU.

use crate::error::BooksError;
use crate::usage::portions_of;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::Findings;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::reconcile::{Fleet, Watch};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::PgConnection;
use std::collections::BTreeMap;

/// Adds what the packed hours up to `as_of` say against the ledger at `as_of`.
///
/// # Errors
/// The database, or a row that cannot be read.
pub async fn reconcile(
    connection: &mut PgConnection,
    ledger: &Attribution,
    as_of: Instant,
    findings: &mut Findings,
) -> Result<(), BooksError> {
    let begin = ledger.gpus.values().filter_map(|timeline| timeline.segments.first());
    let begin = begin.map(|segment| segment.window.start()).min();
    let Some(window) = begin.and_then(|begin| Window::new(begin, as_of)) else { return Ok(()) };
    let fleet = Fleet::new(ledger);
    let gpus: Vec<&GpuId> = ledger.gpus.keys().collect();
    let mut watches: BTreeMap<&GpuId, Watch<'_>> = BTreeMap::new();
    for portion in portions_of(connection, &gpus, window).await? {
        if watches.keys().next().is_some_and(|gpu| !portion.gpus.iter().any(|name| name == gpu.as_str())) {
            findings.extend(std::mem::take(&mut watches).into_values().flat_map(Watch::finish));
        }
        let mut by_gpu: BTreeMap<&GpuId, Vec<Rollup>> = BTreeMap::new();
        for rollup in portion.load(connection).await? {
            if let Some((gpu, _)) = ledger.gpus.get_key_value(&rollup.gpu) {
                by_gpu.entry(gpu).or_default().push(rollup);
            }
        }
        for (gpu, rollups) in by_gpu {
            let Some(timeline) = ledger.gpus.get(gpu) else { continue };
            watches.entry(gpu).or_insert_with(|| Watch::new(&fleet, gpu, timeline, as_of)).read(&rollups);
        }
    }
    findings.extend(watches.into_values().flat_map(Watch::finish));
    Ok(())
}
