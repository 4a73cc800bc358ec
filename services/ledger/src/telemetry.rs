//! Telemetry on its way in: sequence ranges, proof of life, packed hours, and the bytes until they are archived (I-2, A-13).

use crate::error::LedgerError;
use crate::incoming::Incoming;
use crate::points::point;
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::Tx;
use gpuledger_storage::telemetry::{HourKey, HourValues, StagedWindow, WindowId, accept, add_hours, stage};
use gpuledger_storage::{alive, touched};
use gpuledger_wire::bodies::{Placement, ProcessReading, TelemetryWindow, UnitReading};
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use gpuledger_wire::{Event, EventData};
use std::collections::{BTreeMap, BTreeSet};

/// What became of the windows of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Windows that count now.
    pub(crate) new: u64,
    /// Windows that counted before.
    pub(crate) repeated: u64,
    /// Newest end of a new window.
    pub(crate) newest: Option<Instant>,
}

/// Takes windows in: each sequence of a stream counts once, however often and in whatever order it comes.
pub(crate) async fn take_in(tx: &mut Tx, events: &[(&Incoming, &Event)]) -> Result<Counted, LedgerError> {
    let windows: Vec<(&Event, &TelemetryWindow)> = events
        .iter()
        .filter_map(|(_, event)| match &event.data {
            EventData::TelemetryWindow(window) => Some((*event, window)),
            _ => None,
        })
        .collect();
    if windows.is_empty() {
        return Ok(Counted::default());
    }
    let ids: Vec<WindowId> = windows.iter().map(|(_, window)| id_of(window)).collect();
    let is_new = accept(tx, &ids).await?;
    let mut counted = Counted::default();
    let (mut ends, mut staged, mut hours) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (((event, window), id), new) in windows.into_iter().zip(ids).zip(is_new) {
        if !new {
            counted.repeated += 1;
            continue;
        }
        let end = window.end.get();
        counted.new += 1;
        counted.newest = counted.newest.max(Some(end));
        ends.push((window.node.to_string(), end.as_micros()));
        staged.push(StagedWindow { id, end_us: end.as_micros(), body: event.canonical_bytes() });
        pack(window, &mut hours);
    }
    alive::merge(tx, &ends).await?;
    stage(tx, &staged).await?;
    point("ledger::after-copy");
    add_hours(tx, &hours).await?;
    let nodes: BTreeSet<String> = ends.into_iter().map(|(node, _)| node).collect();
    touched::mark(tx, &nodes.into_iter().collect::<Vec<_>>()).await?;
    Ok(counted)
}

fn id_of(window: &TelemetryWindow) -> WindowId {
    WindowId {
        node: window.node.to_string(),
        stream: window.stream.to_string(),
        sequence: window.sequence.get(),
    }
}

/// Adds a window to the hours of its units and process owners. Collectors cut windows at UTC minutes, so a window has one hour.
fn pack(window: &TelemetryWindow, hours: &mut BTreeMap<HourKey, HourValues>) {
    let hour_us = window.start.get().floor(HOUR_US).as_micros();
    let key = |gpu: &Name, placement: Option<&Placement>, owner: String| HourKey {
        node: window.node.to_string(),
        gpu: gpu.to_string(),
        placement: placement.map_or((-1, 0), |p| (i16::from(p.start.get()), i16::from(p.size.get()))),
        owner,
        hour_us,
    };
    for unit in &window.units {
        hours.entry(key(&unit.gpu, unit.placement.as_ref(), String::new())).or_default().add(&of_unit(unit));
    }
    for process in &window.processes {
        let owner = owner_of(window, process);
        hours
            .entry(key(&process.gpu, process.placement.as_ref(), owner))
            .or_default()
            .add(&of_process(process));
    }
}

/// The process's job, else pod, else container, else the process itself by boot, number and start.
fn owner_of(window: &TelemetryWindow, process: &ProcessReading) -> String {
    let named = [("job", &process.slurm_job), ("pod", &process.pod_uid), ("container", &process.container)];
    named
        .into_iter()
        .find_map(|(kind, name)| name.as_ref().map(|name| format!("{kind}:{name}")))
        .unwrap_or_else(|| {
            format!("pid:{}/{}/{}", window.boot_id, process.pid.get(), process.started_at.get().as_micros())
        })
}

fn of_unit(unit: &UnitReading) -> HourValues {
    HourValues {
        sm_active_us: unit.sm_active_us.as_ref().map(|n| i128::from(n.get())),
        memory_byte_us: unit.memory_byte_us.as_ref().map(|n| n.get()),
        memory_bytes_max: unit.memory_bytes_max.as_ref().map(|n| i128::from(n.get())),
        energy_mj: unit.energy_mj.as_ref().map(|n| i128::from(n.get())),
        covered_us: unit.covered_us.get(),
        quality: qualities(&unit.quality, |reading| unit.covered_us_of(reading)),
    }
}

fn of_process(process: &ProcessReading) -> HourValues {
    HourValues {
        sm_active_us: process.sm_active_us.as_ref().map(|n| i128::from(n.get())),
        memory_byte_us: process.memory_byte_us.as_ref().map(|n| n.get()),
        memory_bytes_max: None,
        energy_mj: None,
        covered_us: process.covered_us.get(),
        quality: qualities(&process.quality, |reading| process.covered_us_of(reading)),
    }
}

/// Each reading's label with the time that the reading covers, so that what divides by it has the right mean.
fn qualities(
    labels: &BTreeMap<Name, Name>,
    covered_us_of: impl Fn(&str) -> Count,
) -> BTreeMap<String, BTreeMap<String, i64>> {
    let told = |reading: &Name, label: &Name| (label.to_string(), covered_us_of(reading).get());
    labels
        .iter()
        .map(|(reading, label)| (reading.to_string(), BTreeMap::from([told(reading, label)])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_stands_with_the_time_it_covers_itself_m_8() {
        let unit: UnitReading = serde_json::from_value(serde_json::json!({
            "gpu": "GPU-1", "sm_active_us": 500, "memory_byte_us": 4_000, "covered_us": 1_000,
            "coverage": {"memory_byte_us": 2_000},
            "quality": {"sm_active_us": "driver_sampled", "memory_byte_us": "point_gauge"},
        }))
        .unwrap();
        let HourValues { covered_us, quality, .. } = of_unit(&unit);
        assert_eq!((covered_us, quality["sm_active_us"]["driver_sampled"]), (1_000, 1_000));
        assert_eq!(quality["memory_byte_us"]["point_gauge"], 2_000);
    }
}
