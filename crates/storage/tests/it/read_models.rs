//! Read models: replaced per allocation, read back as they were written.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::spans::{
    AllocationPage, AllocationRow, SpanFilter, SpanRow, load_allocations, load_spans, replace_allocations,
    replace_spans,
};

pub(crate) fn span(tenant: &str, allocation: &str) -> SpanRow {
    SpanRow {
        tenant: tenant.to_owned(),
        project: Some("vision\t\\N".to_owned()),
        allocation: allocation.to_owned(),
        unit: 0,
        count: 1,
        sku: "h100".to_owned(),
        class: "on_demand".to_owned(),
        gpu: Some("GPU-1".to_owned()),
        node: None,
        start_us: 10,
        end_us: 20,
        since_us: Some(5),
        weights: vec!["1/4".to_owned(), "3/4".to_owned()],
        position: 1,
        compute_slices: Some(7),
        memory_slices: Some(8),
        gpu_compute_slices: Some(7),
        gpu_memory_slices: Some(8),
        weight: "1".to_owned(),
        held: true,
        state: None,
        memory_start: Some(0),
        slurm_job: None,
        pod_uid: None,
        before_us: 0,
        after_us: 0,
        alone: false,
    }
}

pub(crate) fn allocation(tenant: &str, allocation: &str) -> AllocationRow {
    AllocationRow {
        allocation: allocation.to_owned(),
        tenant: tenant.to_owned(),
        project: None,
        class: "spot".to_owned(),
        start_us: 10,
        end_us: None,
        end_kind: "running".to_owned(),
        runtime: r#"{"slurm_job":"1"}"#.to_owned(),
        labels: r#"{"z": "a\nb", "a":"\\"}"#.to_owned(),
        source: "/allocators/s".to_owned(),
    }
}

const EVERYTHING: SpanFilter<'static> =
    SpanFilter { from_us: i64::MIN, to_us: i64::MAX, tenant: None, project: None, allocation: None };

#[tokio::test]
async fn spans_are_replaced_per_gpu_and_unplaced_ones_per_allocation() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let alone =
        SpanRow { since_us: None, weights: Vec::new(), gpu: Some("GPU-2".to_owned()), ..span("acme", "a-2") };
    let unplaced = SpanRow { gpu: None, compute_slices: None, count: 4, ..span("acme", "a-3") };
    let all = [span("acme", "a-1"), alone.clone(), unplaced.clone()];
    replace_spans(&mut tx, &[], &[], &all).await?;
    assert_eq!(load_spans(&mut tx, &EVERYTHING).await?, all);
    let moved = SpanRow { start_us: 15, ..span("acme", "a-1") };
    replace_spans(&mut tx, &[], &["GPU-1".to_owned()], std::slice::from_ref(&moved)).await?;
    assert_eq!(load_spans(&mut tx, &EVERYTHING).await?, [moved.clone(), alone.clone(), unplaced]);
    let named = ["a-1", "a-2", "a-3"].map(str::to_owned);
    replace_spans(&mut tx, &named, &[], &[]).await?;
    assert_eq!(load_spans(&mut tx, &EVERYTHING).await?, [moved, alone]);
    replace_spans(&mut tx, &[], &["GPU-1".to_owned(), "GPU-2".to_owned()], &[span("acme", "a-1")]).await?;
    // Half-open: a span that ends at the edge is outside.
    for (from_us, to_us, found) in [(20, i64::MAX, 0), (i64::MIN, 10, 0), (19, 20, 1), (10, 11, 1)] {
        let within = load_spans(&mut tx, &SpanFilter { from_us, to_us, ..EVERYTHING }).await?;
        assert_eq!(within.len(), found, "{from_us} to {to_us}");
    }
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn allocations_come_in_pages() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let rows: Vec<AllocationRow> = ["B", "a", "c"].map(|id| allocation("acme", id)).to_vec();
    let ended = AllocationRow { end_us: Some(20), ..allocation("acme", "d") };
    replace_allocations(&mut tx, &[], &[rows.as_slice(), &[ended]].concat()).await?;
    let mut page =
        AllocationPage { from_us: 20, to_us: 30, tenant: Some("acme"), project: None, after: "", limit: 2 };
    assert_eq!(load_allocations(&mut tx, &page).await?, rows[..2]);
    page.after = "a";
    assert_eq!(load_allocations(&mut tx, &page).await?, rows[2..]);
    drop(tx);
    database.drop().await
}
