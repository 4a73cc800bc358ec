//! One closed window of one lane, in the words of the event.

use super::book::{Book, Open, Row, Total};
use super::subject::{Measure, ProcessKey, Subject, UnitKey};
use crate::ladder::{Quality, Why};
use crate::topology::wire_placement;
use gpuledger_domain::time::Window;
use gpuledger_nvml::{Absent, Reading};
use gpuledger_wire::bodies::{Gap, Placement, ProcessReading, UnitReading};
use gpuledger_wire::number::{BigCount, Count};
use gpuledger_wire::text::Name;
use gpuledger_wire::time::Time;
use std::collections::BTreeMap;

/// What one GPU says of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of which window.
    pub window: Window,
    /// Whose.
    pub gpu: Name,
    /// The GPU, then its instances. An instance that came and went twice has two rows.
    pub units: Vec<UnitReading>,
    /// Its processes.
    pub processes: Vec<ProcessReading>,
    /// Times without any reading; the reason names the GPU: `lost(GPU-…)`.
    pub gaps: Vec<Gap>,
}

/// Puts a closed window into words. Totals are already in the units of the event.
pub(super) fn tell(book: &Book, open: &Open) -> Part {
    let mut units = Vec::new();
    let mut processes = Vec::new();
    let mut nameless = None;
    for (subject, row) in &open.rows {
        match subject {
            Subject::Unit(unit) => match place(book, *unit) {
                Ok(placement) => units.extend(unit_reading(book, *unit, placement, row)),
                Err(why) => nameless = Some(why),
            },
            Subject::Process(process) => processes.extend(process_reading(book, *process, row)),
        }
    }
    if let (Some(why), Some(device)) = (nameless, units.iter_mut().find(|unit| unit.placement.is_none())) {
        device.quality.extend(label("instances", Quality::from(why)));
    }
    let gaps = open.gaps.iter().filter_map(|(over, why)| gap(&book.gpu, *over, *why)).collect();
    Part { window: open.window, gpu: book.gpu.clone(), units, processes, gaps }
}

fn place(book: &Book, unit: UnitKey) -> Reading<Option<Placement>> {
    match book.placement(unit)? {
        None => Ok(None),
        Some(placement) => wire_placement(placement).map(Some).ok_or(Absent::Implausible),
    }
}

fn unit_reading(book: &Book, unit: UnitKey, placement: Option<Placement>, row: &Row) -> Option<UnitReading> {
    let energy = (unit == UnitKey::Device).then_some(Measure::Energy);
    let told: Vec<Measure> = [Measure::Sm, Measure::Memory].into_iter().chain(energy).collect();
    Some(UnitReading {
        gpu: book.gpu.clone(),
        placement,
        sm_active_us: count(row, Measure::Sm),
        memory_byte_us: big_count(row),
        memory_bytes_max: row
            .memory_bytes_max
            .and_then(|bytes| i64::try_from(bytes).ok())
            .and_then(Count::new),
        energy_mj: energy.and_then(|measure| count(row, measure)),
        covered_us: covered(row)?,
        coverage: coverage(row, &told),
        quality: qualities(row, &told),
    })
}

fn process_reading(book: &Book, process: ProcessKey, row: &Row) -> Option<ProcessReading> {
    let placement = place(book, process.unit).ok()?;
    let owner = book.owners.get(&process);
    let told = [Measure::Sm, Measure::Memory];
    let mut quality = qualities(row, &told);
    if let Some(owner) = owner.and_then(|owner| Name::new(&owner.label()).ok()) {
        quality.extend(Name::new("owner").ok().map(|key| (key, owner)));
    }
    Some(ProcessReading {
        gpu: book.gpu.clone(),
        placement,
        pid: Count::new(i64::from(process.process.pid))?,
        started_at: Time(process.process.started_at),
        container: owner.and_then(|owner| owner.container().cloned()),
        pod_uid: owner.and_then(|owner| owner.pod_uid().cloned()),
        slurm_job: owner.and_then(|owner| owner.slurm_job().cloned()),
        sm_active_us: count(row, Measure::Sm),
        memory_byte_us: big_count(row),
        covered_us: covered(row)?,
        coverage: coverage(row, &told),
        quality,
    })
}

fn covered_total(row: &Row, measure: Measure) -> Option<&Total> {
    row.totals.get(&measure).filter(|total| total.covered_us > 0)
}

fn count(row: &Row, measure: Measure) -> Option<Count> {
    i64::try_from(covered_total(row, measure)?.amount).ok().and_then(Count::new)
}

fn big_count(row: &Row) -> Option<BigCount> {
    i128::try_from(covered_total(row, Measure::Memory)?.amount).ok().and_then(BigCount::new)
}

/// What the readings beside it all cover at least. Energy counts only where it stands alone: its counter covers what nobody watched.
fn covered(row: &Row) -> Option<Count> {
    let watched =
        [Measure::Sm, Measure::Memory].into_iter().filter_map(|measure| covered_by(row, measure)).min();
    watched.or_else(|| covered_by(row, Measure::Energy)).or(Count::new(0))
}

fn covered_by(row: &Row, measure: Measure) -> Option<Count> {
    Count::new(covered_total(row, measure)?.covered_us)
}

/// The readings that cover another time than the row says: what is divided by it would be wrong.
fn coverage(row: &Row, told: &[Measure]) -> BTreeMap<Name, Count> {
    let of_row = covered(row);
    let own = told.iter().filter_map(|measure| Some((measure, covered_by(row, *measure)?)));
    own.filter(|(_, covered)| Some(*covered) != of_row)
        .filter_map(|(measure, covered)| Some((Name::new(&measure.to_string()).ok()?, covered)))
        .collect()
}

fn qualities(row: &Row, told: &[Measure]) -> BTreeMap<Name, Name> {
    told.iter()
        .filter_map(|measure| {
            let total = row.totals.get(measure).copied().unwrap_or_default();
            let quality = total.quality.or(total.absent).unwrap_or(Quality::from(Absent::NotYet));
            label(&measure.to_string(), quality)
        })
        .collect()
}

pub(super) fn label(reading: &str, quality: Quality) -> Option<(Name, Name)> {
    Some((Name::new(reading).ok()?, Name::new(&quality.to_string()).ok()?))
}

pub(super) fn gap(gpu: &Name, over: Window, why: Why) -> Option<Gap> {
    let reason = Name::new(&format!("{why}({gpu})")).ok()?;
    Some(Gap { start: Time(over.start()), end: Time(over.end()), reason })
}
