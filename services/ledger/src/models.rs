//! Read models: what the API answers from, under row security. Derived, replaced where they differ, never the truth.

use crate::error::LedgerError;
use gpuledger_books::spans::row_of;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::ids::{AllocationId, GpuId};
use gpuledger_domain::time::Instant;
use gpuledger_domain::usage::{AllocationView, End, UsageSpan};
use gpuledger_storage::Tx;
use gpuledger_storage::spans::{
    AllocationRow, OPEN, SpanRow, StandingSpan, insert_spans, remove_spans, replace_allocations,
    replace_spans, standing_spans,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Placed spans that differ from those that stand.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    removed: Vec<String>,
    added: Vec<SpanRow>,
}

/// A span that stands over a floor is not what goes on there: whatever decides that lies before the floor.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// GPUs, each with the instant before which its floor must lie.
    pub(crate) lower: BTreeMap<GpuId, Instant>,
}

impl Spans {
    /// Compares the spans of each GPU from its floor on with those that stand. One that stands over a floor goes on in the one that begins
    /// there: nothing differs at a floor itself.
    pub(crate) async fn compare(
        tx: &mut Tx,
        ledger: &Attribution,
        floors: &BTreeMap<GpuId, Instant>,
        now: Instant,
    ) -> Result<Result<Self, Mismatch>, LedgerError> {
        let asked: Vec<(String, i64)> =
            floors.iter().map(|(gpu, floor)| (gpu.to_string(), floor.as_micros())).collect();
        let mut standing: BTreeMap<String, Vec<StandingSpan>> = BTreeMap::new();
        for row in standing_spans(tx, &asked).await? {
            standing.entry(row.span.gpu.clone().unwrap_or_default()).or_default().push(row);
        }
        let mut computed = rows_by_gpu(ledger, floors, now);
        let mut spans = Self::default();
        let mut lower = BTreeMap::new();
        for (gpu, floor_us) in asked {
            let (stand, come) =
                (standing.remove(&gpu).unwrap_or_default(), computed.remove(&gpu).unwrap_or_default());
            if let Err(from_us) = spans.of_gpu(stand, come, floor_us) {
                lower.insert(GpuId::new(&gpu), Instant::from_micros(from_us));
            }
        }
        Ok(if lower.is_empty() { Ok(spans) } else { Err(Mismatch { lower }) })
    }

    /// Compares the spans of one GPU; an error is the begin of one that does not fit.
    fn of_gpu(
        &mut self,
        standing: Vec<StandingSpan>,
        mut computed: Vec<SpanRow>,
        floor_us: i64,
    ) -> Result<(), i64> {
        let mut kept = Vec::new();
        for stands in standing {
            let mut wanted = stands.span.clone();
            if wanted.start_us < floor_us {
                let goes_on =
                    |row: &SpanRow| row.start_us == floor_us && what_goes_on(row) == what_goes_on(&wanted);
                let place = computed.iter().position(goes_on).ok_or(wanted.start_us)?;
                let next = computed.swap_remove(place);
                (wanted.end_us, wanted.after_us) = (next.end_us, next.after_us);
                if wanted != stands.span {
                    self.removed.push(stands.ctid);
                    kept.push(wanted);
                }
            } else if let Some(place) = computed.iter().position(|row| *row == wanted) {
                computed.swap_remove(place);
            } else {
                self.removed.push(stands.ctid);
            }
        }
        self.added.extend(kept);
        self.added.extend(computed);
        Ok(())
    }

    /// What differs, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        let added = self.added.iter().map(|row| {
            format!(
                "read model: {} unit {} at {} us is not as computed",
                row.allocation, row.unit, row.start_us
            )
        });
        let removed = (!self.removed.is_empty())
            .then(|| format!("read model: {} spans should not stand", self.removed.len()));
        added.chain(removed).collect()
    }

    /// Writes what differs.
    pub(crate) async fn write(self, tx: &mut Tx) -> Result<(), LedgerError> {
        remove_spans(tx, &self.removed).await?;
        Ok(insert_spans(tx, &self.added).await?)
    }
}

/// A row without what its begin and its end are.
fn what_goes_on(row: &SpanRow) -> SpanRow {
    SpanRow {
        start_us: 0,
        end_us: 0,
        since_us: row.since_us.map(|_| 0),
        before_us: 0,
        after_us: 0,
        ..row.clone()
    }
}

fn rows_by_gpu(
    ledger: &Attribution,
    floors: &BTreeMap<GpuId, Instant>,
    now: Instant,
) -> BTreeMap<String, Vec<SpanRow>> {
    let running = Running::of(ledger);
    let mut rows: BTreeMap<String, Vec<SpanRow>> = BTreeMap::new();
    for span in &ledger.spans {
        if let Some(place) = span.place.as_ref().filter(|place| floors.contains_key(&place.gpu)) {
            rows.entry(place.gpu.to_string()).or_default().push(running.row(span, now));
        }
    }
    rows
}

/// Units that only the horizon ends.
struct Running<'l>(BTreeSet<(&'l AllocationId, u32)>);

impl<'l> Running<'l> {
    fn of(ledger: &'l Attribution) -> Self {
        let open = |view: &'l AllocationView| {
            let units = view.unit_ends.iter().filter(|(_, end)| **end == End::Open);
            units.map(|(unit, _)| (&view.allocation, *unit))
        };
        Self(ledger.allocations.iter().flat_map(open).collect())
    }

    /// The row of a span; one that goes on with the horizon has no end of its own.
    fn row(&self, span: &UsageSpan, now: Instant) -> SpanRow {
        let goes_on =
            span.held && span.window.end() == now && self.0.contains(&(&span.allocation, span.unit));
        let row = row_of(span);
        if goes_on { SpanRow { end_us: OPEN, ..row } } else { row }
    }
}

/// Replaces the rows of these allocations, and the spans of their units without a device.
pub(crate) async fn replace_allocations_of(
    tx: &mut Tx,
    ledger: &Attribution,
    allocations: &BTreeSet<AllocationId>,
    now: Instant,
) -> Result<(), LedgerError> {
    let names: Vec<String> = allocations.iter().map(ToString::to_string).collect();
    let running = Running::of(ledger);
    let unplaced = |span: &&UsageSpan| span.place.is_none() && allocations.contains(&span.allocation);
    let spans: Vec<SpanRow> =
        ledger.spans.iter().filter(unplaced).map(|span| running.row(span, now)).collect();
    replace_spans(tx, &names, &[], &spans).await?;
    let views = ledger.allocations.iter().filter(|view| allocations.contains(&view.allocation));
    let rows: Vec<AllocationRow> = views.map(allocation_row).collect();
    Ok(replace_allocations(tx, &names, &rows).await?)
}

/// Writes all rows, where none stand.
pub(crate) async fn write_all(tx: &mut Tx, ledger: &Attribution, now: Instant) -> Result<(), LedgerError> {
    let running = Running::of(ledger);
    let spans: Vec<SpanRow> = ledger.spans.iter().map(|span| running.row(span, now)).collect();
    insert_spans(tx, &spans).await?;
    let rows: Vec<AllocationRow> = ledger.allocations.iter().map(allocation_row).collect();
    Ok(replace_allocations(tx, &[], &rows).await?)
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
