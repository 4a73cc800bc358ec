//! Usage reports: spans cut, grouped and added up, exactly (M-4, A-19).

use crate::ids::TenantId;
use crate::share::Share;
use crate::time::{CELL_US, Instant, Window};
use crate::usage::{AllocationView, UsageSpan};
use chrono::{DateTime, Datelike, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;
use num_rational::Ratio;
use std::collections::BTreeMap;

/// What rows are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// The owner.
    Tenant,
    /// The owner's project.
    Project,
    /// What is priced.
    Sku,
    /// How it was bought.
    Class,
    /// The allocation.
    Allocation,
    /// The node of a placed unit.
    Node,
    /// The calendar day in the tenant's zone.
    Day,
    /// The hour in the tenant's zone, with its offset.
    Hour,
    /// The month in the tenant's zone.
    Month,
    /// A label of the grant.
    Label(String),
}

impl GroupKey {
    /// Reads a word of `--group-by`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "tenant" => Self::Tenant,
            "project" => Self::Project,
            "sku" => Self::Sku,
            "class" => Self::Class,
            "allocation" => Self::Allocation,
            "node" => Self::Node,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "month" => Self::Month,
            _ => Self::Label(word.strip_prefix("label.").filter(|name| !name.is_empty())?.to_owned()),
        })
    }

    /// The member of a row.
    pub fn name(&self) -> String {
        match self {
            Self::Tenant => "tenant".into(),
            Self::Project => "project".into(),
            Self::Sku => "sku".into(),
            Self::Class => "class".into(),
            Self::Allocation => "allocation".into(),
            Self::Node => "node".into(),
            Self::Day => "day".into(),
            Self::Hour => "hour".into(),
            Self::Month => "month".into(),
            Self::Label(name) => format!("label.{name}"),
        }
    }
}

/// Whole-GPU equivalents by another weight than memory slices (M-4). Weights never feed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Memory slices by the GPU's memory slices: conserved.
    #[default]
    Memory,
    /// Compute slices by the GPU's compute slices: conserved.
    Compute,
    /// The larger of both: not conserved.
    Dominant,
}

/// One row of a report. Quantities are sums of exact integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Values of the group keys, in their order; none where a span has none.
    pub keys: Vec<Option<String>>,
    /// Held time in unit-microseconds.
    pub allocated_us: i128,
    /// Billed time in unit-microseconds.
    pub billed_us: i128,
    /// Whole-GPU equivalents in microseconds.
    pub gpu_us: Share,
    /// Compute-slice-microseconds of placed units; none where no unit was placed.
    pub compute_slice_us: Option<i128>,
    /// Memory-slice-microseconds of placed units; none where no unit was placed.
    pub memory_slice_us: Option<i128>,
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

/// Groups the part of `spans` inside `window`. Rows are sorted by their keys.
pub fn usage_rows(
    spans: &[UsageSpan],
    window: Window,
    keys: &[GroupKey],
    context: &ReportContext<'_>,
) -> Vec<UsageRow> {
    let mut rows: BTreeMap<Vec<Option<String>>, UsageRow> = BTreeMap::new();
    for span in spans.iter().filter_map(|span| span.cut(window)) {
        let zone = context.zones.get(&span.tenant).copied().unwrap_or(Tz::UTC);
        for (part, label) in calendar_parts(&span, keys, zone) {
            let values: Vec<Option<String>> =
                keys.iter().map(|key| value(key, &part, &label, context)).collect();
            let row = rows.entry(values.clone()).or_insert_with(|| UsageRow::empty(values));
            row.add(&part, context.weight);
        }
    }
    rows.into_values().collect()
}

impl UsageRow {
    fn empty(keys: Vec<Option<String>>) -> Self {
        let gpu_us = Ratio::from_integer(0);
        Self { keys, allocated_us: 0, billed_us: 0, gpu_us, compute_slice_us: None, memory_slice_us: None }
    }

    fn add(&mut self, span: &UsageSpan, weight: Weight) {
        self.allocated_us += span.allocated_us();
        self.billed_us += span.billed_us();
        self.gpu_us += gpu_us(span, weight);
        let sum = |standing: Option<i128>, more: Option<i128>| {
            more.map_or(standing, |m| Some(standing.unwrap_or(0) + m))
        };
        self.compute_slice_us = sum(self.compute_slice_us, span.compute_slice_us());
        self.memory_slice_us = sum(self.memory_slice_us, span.memory_slice_us());
    }
}

fn gpu_us(span: &UsageSpan, weight: Weight) -> Share {
    let Some(place) = &span.place else { return span.gpu_us() };
    let compute = Ratio::new(
        span.conserved_us() * i128::from(place.compute_slices),
        i128::from(place.gpu_compute_slices),
    );
    match weight {
        Weight::Memory => span.gpu_us(),
        Weight::Compute => compute,
        Weight::Dominant => compute.max(span.gpu_us()),
    }
}

/// The calendar values of one part of a span.
#[derive(Clone, Debug, Default)]
struct Calendar {
    day: String,
    hour: String,
    month: String,
}

/// Cuts a span where a calendar key asked for changes. Every zone's hours begin at UTC quarters, so walking quarters finds all edges.
fn calendar_parts(span: &UsageSpan, keys: &[GroupKey], zone: Tz) -> Vec<(UsageSpan, Calendar)> {
    let step = if keys.contains(&GroupKey::Hour) {
        Step::Hour
    } else if keys.contains(&GroupKey::Day) {
        Step::Day
    } else if keys.contains(&GroupKey::Month) {
        Step::Month
    } else {
        return vec![(span.clone(), Calendar::default())];
    };
    let mut parts = Vec::new();
    let mut at = span.window.start();
    while at < span.window.end() {
        let local = local(at, zone);
        let next = step.next(at, zone).min(span.window.end());
        let Some(part) = Window::new(at, next).and_then(|window| span.cut(window)) else { break };
        parts.push((part, calendar(&local)));
        at = next;
    }
    parts
}

#[derive(Clone, Copy)]
enum Step {
    Hour,
    Day,
    Month,
}

impl Step {
    /// The first instant after `at` at which the zone's hour, day or month is another one.
    fn next(self, at: Instant, zone: Tz) -> Instant {
        let now = local(at, zone);
        let same = |other: &DateTime<Tz>| {
            let day = (other.year(), other.ordinal()) == (now.year(), now.ordinal());
            match self {
                Self::Hour => day && other.hour() == now.hour() && other.offset().fix() == now.offset().fix(),
                Self::Day => day,
                Self::Month => (other.year(), other.month()) == (now.year(), now.month()),
            }
        };
        // Whole days first, so that a month costs tens of steps and not thousands.
        let mut next = at.plus(1).ceil(CELL_US);
        if !matches!(self, Self::Hour) {
            let day_us = 96 * CELL_US;
            while same(&local(next.plus(day_us), zone)) {
                next = next.plus(day_us);
            }
        }
        while same(&local(next, zone)) {
            next = next.plus(CELL_US);
        }
        next
    }
}

fn local(at: Instant, zone: Tz) -> DateTime<Tz> {
    let epoch = DateTime::UNIX_EPOCH;
    let utc = epoch.checked_add_signed(TimeDelta::microseconds(at.as_micros())).unwrap_or(epoch);
    zone.from_utc_datetime(&utc.naive_utc())
}

fn calendar(local: &DateTime<Tz>) -> Calendar {
    Calendar {
        day: local.format("%Y-%m-%d").to_string(),
        hour: format!("{}{}", local.format("%Y-%m-%dT%H:00:00"), local.format("%:z")),
        month: local.format("%Y-%m").to_string(),
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
