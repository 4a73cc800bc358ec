//! Usage reports: spans cut, grouped and added up, exactly (M-4, A-19).

mod calendar;
mod words;

pub use words::{GroupKey, Weight};

use crate::ids::{GpuId, TenantId};
use crate::measured::label::{ALLOCATION_ONLY, weaker};
use crate::measured::{Amounts, Holders, Rollup};
use crate::share::Share;
use crate::time::Window;
use crate::usage::{AllocationView, UsageSpan};
use calendar::{Calendar, calendar_parts};
use chrono_tz::Tz;
use num_rational::Ratio;
use std::collections::BTreeMap;

/// One row of a report. Quantities are sums of exact integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Values of the group keys, in their order; none where a span has none.
    pub keys: Vec<Option<String>>,
    /// Held time in unit-microseconds.
    pub allocated_us: i128,
    /// Billed time in unit-microseconds.
    pub billed_us: i128,
    /// Whole-GPU equivalents in microseconds; none where they are weighed by what was not measured.
    pub gpu_us: Option<Share>,
    /// Compute-slice-microseconds of placed units; none where no unit was placed.
    pub compute_slice_us: Option<i128>,
    /// Memory-slice-microseconds of placed units; none where no unit was placed.
    pub memory_slice_us: Option<i128>,
    /// What was measured.
    pub measured: Amounts,
    /// The weakest label of the readings of SM-active time in the row; where there is none, the weakest reason why (M-8).
    pub quality: String,
}

/// What a report needs besides spans.
#[derive(Clone, Debug, Default)]
pub struct ReportContext<'a> {
    /// Zones of tenants; UTC where none is given.
    pub zones: BTreeMap<TenantId, Tz>,
    /// Allocations by id, for labels.
    pub allocations: BTreeMap<&'a str, &'a AllocationView>,
    /// By which slices whole-GPU equivalents count.
    pub weight: Weight,
}

/// Groups the part of `spans` inside `window`, without what was measured. Rows are sorted by their keys.
pub fn usage_rows(
    spans: &[UsageSpan],
    window: Window,
    keys: &[GroupKey],
    context: &ReportContext<'_>,
) -> Vec<UsageRow> {
    Report::new(spans.to_vec(), window, keys, context).into_rows()
}

/// A report in the making: rows of spans, to which readings are added in any order.
#[derive(Clone, Debug)]
pub struct Report {
    spans: Vec<UsageSpan>,
    holders: Holders,
    window: Window,
    weight: Weight,
    rows: Vec<UsageRow>,
    /// Of each span: its parts inside the window, in order of time, and the row that each is in.
    parts: Vec<Vec<(Window, usize)>>,
}

impl Report {
    /// Groups the part of `spans` inside `window`.
    pub fn new(
        mut spans: Vec<UsageSpan>,
        window: Window,
        keys: &[GroupKey],
        context: &ReportContext<'_>,
    ) -> Self {
        spans.retain(|span| span.window.intersect(window).is_some());
        let (holders, weight) = (Holders::new(&spans), context.weight);
        let parts = vec![Vec::new(); spans.len()];
        let mut report = Self { spans, holders, window, weight, rows: Vec::new(), parts };
        let mut places: BTreeMap<Vec<Option<String>>, usize> = BTreeMap::new();
        for (index, span) in report.spans.iter().enumerate() {
            let Some(span) = span.cut(window) else { continue };
            let zone = context.zones.get(&span.tenant).copied().unwrap_or(Tz::UTC);
            for (part, label) in calendar_parts(&span, keys, zone) {
                let values: Vec<Option<String>> =
                    keys.iter().map(|key| value(key, &part, &label, context)).collect();
                let place = *places.entry(values).or_insert_with_key(|values| {
                    report.rows.push(UsageRow::empty(values.clone(), context.weight));
                    report.rows.len() - 1
                });
                report.rows[place].add(&part, context.weight);
                report.parts[index].push((part.window, place));
            }
        }
        report
    }

    /// The window it is of.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The GPUs whose readings it can take, by id.
    pub fn gpus(&self) -> Vec<GpuId> {
        self.holders.gpus().cloned().collect()
    }

    /// Adds what was measured. Of a GPU and hour that is in `rollups`, all must be in it, and in no other call.
    pub fn measure(&mut self, rollups: &[Rollup]) {
        let Self { spans, holders, rows, parts, weight, .. } = self;
        holders.read(spans, rollups, |reading| {
            let from =
                parts[reading.span].partition_point(|(window, _)| window.end() <= reading.window.start());
            for (window, place) in parts[reading.span].iter().skip(from) {
                let Some(inside) = window.intersect(reading.window) else { break };
                let amounts = reading.amounts.cut(reading.window, inside);
                rows[*place].measure(&spans[reading.span], &amounts, reading.label, *weight);
            }
        });
    }

    /// The rows, sorted by their keys.
    pub fn into_rows(self) -> Vec<UsageRow> {
        let mut rows = self.rows;
        rows.sort_by(|a, b| a.keys.cmp(&b.keys));
        rows
    }
}

impl UsageRow {
    fn empty(keys: Vec<Option<String>>, weight: Weight) -> Self {
        Self {
            keys,
            allocated_us: 0,
            billed_us: 0,
            gpu_us: (weight != Weight::Sm).then(|| Ratio::from_integer(0)),
            compute_slice_us: None,
            memory_slice_us: None,
            measured: Amounts::default(),
            quality: ALLOCATION_ONLY.to_owned(),
        }
    }

    fn add(&mut self, span: &UsageSpan, weight: Weight) {
        self.allocated_us += span.allocated_us();
        self.billed_us += span.billed_us();
        self.gpu_us = self.gpu_us.map(|sum| sum + gpu_us(span, weight));
        let sum = |standing: Option<i128>, more: Option<i128>| {
            more.map_or(standing, |m| Some(standing.unwrap_or(0) + m))
        };
        self.compute_slice_us = sum(self.compute_slice_us, span.compute_slice_us());
        self.memory_slice_us = sum(self.memory_slice_us, span.memory_slice_us());
    }

    /// Adds what was measured of a part of `span`. The first reading overrides every reason why there is none.
    fn measure(&mut self, span: &UsageSpan, amounts: &Amounts, label: &str, weight: Weight) {
        let (read, stands) = (amounts.sm_active_us.is_some(), self.measured.sm_active_us.is_some());
        let is_weaker = read == stands && weaker(&self.quality, label) != self.quality;
        if (read && !stands) || is_weaker {
            label.clone_into(&mut self.quality);
        }
        self.measured.add(amounts);
        if let (Weight::Sm, Some(place), Some(active)) = (weight, &span.place, amounts.sm_active_us) {
            let whole =
                Ratio::new(active * i128::from(place.compute_slices), i128::from(place.gpu_compute_slices));
            self.gpu_us = Some(self.gpu_us.unwrap_or_default() + whole);
        }
    }
}

fn gpu_us(span: &UsageSpan, weight: Weight) -> Share {
    let Some(place) = &span.place else { return span.gpu_us() };
    let compute = Ratio::new(
        span.conserved_us() * i128::from(place.compute_slices),
        i128::from(place.gpu_compute_slices),
    );
    match weight {
        Weight::Memory | Weight::Sm => span.gpu_us(),
        Weight::Compute => compute,
        Weight::Dominant => compute.max(span.gpu_us()),
    }
}

fn value(
    key: &GroupKey,
    span: &UsageSpan,
    calendar: &Calendar,
    context: &ReportContext<'_>,
) -> Option<String> {
    match key {
        GroupKey::Tenant => Some(span.tenant.to_string()),
        GroupKey::Project => span.project.as_ref().map(ToString::to_string),
        GroupKey::Sku => Some(span.sku.to_string()),
        GroupKey::Class => Some(span.class.as_str().to_owned()),
        GroupKey::Allocation => Some(span.allocation.to_string()),
        GroupKey::Node => span.place.as_ref().map(|place| place.node.to_string()),
        GroupKey::Day => Some(calendar.day.clone()),
        GroupKey::Hour => Some(calendar.hour.clone()),
        GroupKey::Month => Some(calendar.month.clone()),
        GroupKey::Label(name) => {
            context.allocations.get(span.allocation.as_str()).and_then(|view| view.labels.get(name)).cloned()
        }
    }
}
