//! Read models: what the API answers from, under row security. Derived, replaced, never the truth.

use crate::error::LedgerError;
use gpuledger_books::scope::Scope;
use gpuledger_books::spans::row_of;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::usage::{AllocationView, End, UsageSpan};
use gpuledger_storage::Tx;
use gpuledger_storage::spans::{AllocationRow, SpanRow, replace_allocations, replace_spans};
use serde_json::{Map, Value, json};

/// Replaces spans on the scope's GPUs, unplaced spans and rows of its allocations.
pub(crate) async fn replace(tx: &mut Tx, ledger: &Attribution, scope: &Scope) -> Result<(), LedgerError> {
    let allocations: Vec<String> = scope.allocations.iter().cloned().collect();
    let gpus: Vec<String> = scope.gpus.iter().map(ToString::to_string).collect();
    let inside = |span: &&UsageSpan| match &span.place {
        Some(place) => scope.gpus.contains(&place.gpu),
        None => scope.allocations.contains(span.allocation.as_str()),
    };
    let spans: Vec<SpanRow> = ledger.spans.iter().filter(inside).map(row_of).collect();
    replace_spans(tx, &allocations, &gpus, &spans).await?;
    let views = ledger.allocations.iter().filter(|view| scope.allocations.contains(view.allocation.as_str()));
    let rows: Vec<AllocationRow> = views.map(allocation_row).collect();
    replace_allocations(tx, &allocations, &rows).await?;
    Ok(())
}

fn allocation_row(view: &AllocationView) -> AllocationRow {
    let (end_us, end_kind) = match &view.end {
        End::Open => (None, "running".to_owned()),
        End::Ended { at, .. } => {
            (Some(at.as_micros()), view.reason.clone().unwrap_or_else(|| "ended".to_owned()))
        }
    };
    let mut runtime = Map::new();
    for (name, value) in [("slurm_job", &view.slurm_job), ("pod_uid", &view.pod_uid)] {
        if let Some(value) = value {
            runtime.insert(name.to_owned(), json!(value));
        }
    }
    AllocationRow {
        allocation: view.allocation.to_string(),
        tenant: view.tenant.to_string(),
        project: view.project.as_ref().map(ToString::to_string),
        class: view.class.as_str().to_owned(),
        start_us: view.start.as_micros(),
        end_us,
        end_kind,
        runtime: Value::Object(runtime).to_string(),
        labels: json!(view.labels).to_string(),
        source: view.source.to_string(),
    }
}
