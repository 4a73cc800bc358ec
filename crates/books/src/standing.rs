//! Usage as it stands at the ledger's horizon: from the read model, which `ledger verify` compares with the facts. What a month costs to read does not
//! grow with what lies before it.

use crate::error::BooksError;
use crate::spans::span_of;
use gpuledger_domain::fact::Class;
use gpuledger_domain::ids::{AllocationId, ProjectId, Source, TenantId};
use gpuledger_domain::time::Instant;
use gpuledger_domain::usage::{AllocationView, End, UsageSpan};
use gpuledger_storage::PgConnection;
use gpuledger_storage::spans::{AllocationRow, SpanFilter, allocations_of, load_spans};
use std::collections::BTreeMap;

/// The spans that a filter lets through, in order of allocation, unit and time.
///
/// # Errors
/// The database, or a row that is no span.
pub async fn spans(
    connection: &mut PgConnection,
    filter: &SpanFilter<'_>,
) -> Result<Vec<UsageSpan>, BooksError> {
    load_spans(connection, filter).await?.iter().map(span_of).collect()
}

/// The allocations of these spans, for what reports say of them: their labels.
///
/// # Errors
/// The database.
pub async fn labelled(
    connection: &mut PgConnection,
    spans: &[UsageSpan],
) -> Result<Vec<AllocationView>, BooksError> {
    let mut ids: Vec<String> = spans.iter().map(|span| span.allocation.to_string()).collect();
    ids.dedup();
    Ok(allocations_of(connection, &ids).await?.iter().filter_map(view).collect())
}

fn view(row: &AllocationRow) -> Option<AllocationView> {
    Some(AllocationView {
        allocation: AllocationId::new(&row.allocation),
        start: Instant::from_micros(row.start_us),
        end: row
            .end_us
            .map_or(End::Open, |at| End::Ended { at: Instant::from_micros(at), provider_took: false }),
        unit_ends: BTreeMap::new(),
        tenant: TenantId::new(&row.tenant),
        project: row.project.as_deref().map(ProjectId::new),
        class: Class::parse(&row.class)?,
        reason: None,
        labels: serde_json::from_str(&row.labels).unwrap_or_default(),
        slurm_job: None,
        pod_uid: None,
        source: Source::new(&row.source),
    })
}
