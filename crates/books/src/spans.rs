//! The read model of usage: spans as rows and back. What the API answers from, under row security.

use crate::error::BooksError;
use gpuledger_domain::fact::{Class, Runtime};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, ProjectId, SkuId, TenantId};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_domain::usage::{SpanPlace, Split, Telling, UsageSpan};
use gpuledger_storage::PgConnection;
use gpuledger_storage::spans::{SpanFilter, SpanRow, load_spans};

/// All spans that stand, in order of allocation, unit and time.
///
/// # Errors
/// The database, or a row that is no span.
pub async fn load(connection: &mut PgConnection) -> Result<Vec<UsageSpan>, BooksError> {
    let filter =
        SpanFilter { from_us: i64::MIN, to_us: i64::MAX, tenant: None, project: None, allocation: None };
    load_spans(connection, &filter).await?.iter().map(span_of).collect()
}

/// A span as a row.
pub fn row_of(span: &UsageSpan) -> SpanRow {
    let place = span.place.as_ref();
    let split = span.split.as_ref();
    SpanRow {
        tenant: span.tenant.to_string(),
        project: span.project.as_ref().map(ToString::to_string),
        allocation: span.allocation.to_string(),
        unit: i32::try_from(span.unit).unwrap_or(i32::MAX),
        count: i32::try_from(span.count).unwrap_or(i32::MAX),
        sku: span.sku.to_string(),
        class: span.class.as_str().to_owned(),
        gpu: place.map(|p| p.gpu.to_string()),
        node: place.map(|p| p.node.to_string()),
        start_us: span.window.start().as_micros(),
        end_us: span.window.end().as_micros(),
        since_us: split.map(|s| s.since.as_micros()),
        weights: split.map(|s| s.weights.iter().map(ToString::to_string).collect()).unwrap_or_default(),
        position: split.map_or(0, |s| i32::try_from(s.position).unwrap_or(i32::MAX)),
        compute_slices: place.map(|p| i16::from(p.compute_slices)),
        memory_slices: place.map(|p| i16::from(p.memory_slices)),
        gpu_compute_slices: place.map(|p| i16::from(p.gpu_compute_slices)),
        gpu_memory_slices: place.map(|p| i16::from(p.gpu_memory_slices)),
        weight: span.weight.to_string(),
        held: span.held,
        state: span.state.clone(),
        memory_start: place.map(|p| i16::from(p.memory_start)),
        slurm_job: span.telling.runtime.slurm_job.clone(),
        pod_uid: span.telling.runtime.pod_uid.clone(),
        before_us: i32::try_from(span.telling.before_us).unwrap_or(i32::MAX),
        after_us: i32::try_from(span.telling.after_us).unwrap_or(i32::MAX),
        alone: span.telling.alone,
    }
}

/// A row as the span it was.
///
/// # Errors
/// The row was not written by [`row_of`].
pub fn span_of(row: &SpanRow) -> Result<UsageSpan, BooksError> {
    parse(row).ok_or_else(|| BooksError::Object {
        kind: "usage_span".to_owned(),
        id: format!("{} unit {}", row.allocation, row.unit),
        why: "the row is no span of usage".to_owned(),
    })
}

fn parse(row: &SpanRow) -> Option<UsageSpan> {
    let slices = |n: Option<i16>| n.and_then(|n| u8::try_from(n).ok());
    let place = match (&row.gpu, &row.node) {
        (Some(gpu), Some(node)) => Some(SpanPlace {
            gpu: GpuId::new(gpu),
            node: NodeId::new(node),
            memory_start: slices(row.memory_start)?,
            compute_slices: slices(row.compute_slices)?,
            memory_slices: slices(row.memory_slices)?,
            gpu_compute_slices: slices(row.gpu_compute_slices)?,
            gpu_memory_slices: slices(row.gpu_memory_slices)?,
        }),
        _ => None,
    };
    let split = match row.since_us {
        Some(since) => {
            let weights: Option<Vec<Share>> = row.weights.iter().map(|w| w.parse().ok()).collect();
            let position = usize::try_from(row.position).ok()?;
            Some(Split { since: Instant::from_micros(since), weights: weights?.into(), position })
        }
        None => None,
    };
    Some(UsageSpan {
        allocation: AllocationId::new(&row.allocation),
        unit: u32::try_from(row.unit).ok()?,
        count: u32::try_from(row.count).ok()?,
        tenant: TenantId::new(&row.tenant),
        project: row.project.as_deref().map(ProjectId::new),
        sku: SkuId::new(&row.sku),
        class: Class::parse(&row.class)?,
        place,
        weight: row.weight.parse().ok()?,
        window: Window::new(Instant::from_micros(row.start_us), Instant::from_micros(row.end_us))?,
        split,
        held: row.held,
        state: row.state.clone(),
        telling: Telling {
            runtime: Runtime { slurm_job: row.slurm_job.clone(), pod_uid: row.pod_uid.clone() },
            alone: row.alone,
            before_us: u32::try_from(row.before_us).ok()?,
            after_us: u32::try_from(row.after_us).ok()?,
        },
    })
}
