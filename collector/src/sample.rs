//! `sample`: the readings of one window, as JSON and as a table.
//!
//! The table keeps four things apart (M-8): `0`, a value that was measured; `-`, a value that the unit does not have; `n/a (reason)`, a value that
//! could not be taken; and the time that was covered, which tells a gap.

mod take;

pub use take::{Sampled, TakeError, take};

use crate::table::{absence, columns, indented};
use crate::window::ClosedWindow;
use gpuledger_wire::bodies::{Gap, InventoryGpu, NodeInventory, Placement, ProcessReading, UnitReading};
use gpuledger_wire::number::{BigCount, Count};
use gpuledger_wire::text::Name;
use serde::Serialize;
use std::collections::BTreeMap;

/// A window as `sample --format json` prints it: `telemetry.window` without its place in a stream. Members are added, never changed.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    node: &'a Name,
    boot_id: &'a Name,
    start: String,
    end: String,
    units: &'a [UnitReading],
    processes: &'a [ProcessReading],
    gaps: &'a [Gap],
}

/// One line of JSON.
///
/// # Errors
/// A value that JSON cannot hold; there is none.
pub fn json(window: &ClosedWindow) -> serde_json::Result<String> {
    serde_json::to_string(&Printed {
        node: &window.node,
        boot_id: &window.boot_id,
        start: window.window.start().to_string(),
        end: window.window.end().to_string(),
        units: &window.units,
        processes: &window.processes,
        gaps: &window.gaps,
    })
}

/// A table for people. The inventory gives units their names.
pub fn table(sampled: &Sampled) -> String {
    let Sampled { window, inventory, unreadable } = sampled;
    let names = Names { inventory };
    let span = window.window;
    let mut text = format!("{}: {} from {}\n", window.node, seconds(span.micros()), span.start());
    text.push_str(&units(window, &names));
    text.extend(unreadable.iter().map(|(index, why)| format!("  GPU {index}  cannot be read: {why}\n")));
    text.push_str(&processes(window, &names));
    if !window.gaps.is_empty() {
        let gap = |gap: &Gap| {
            format!(
                "  {} from {}: {}\n",
                seconds(gap.end.get().since(gap.start.get())),
                gap.start.get(),
                gap.reason
            )
        };
        text.push_str("\nGaps\n");
        text.extend(window.gaps.iter().map(gap));
    }
    text
}

const UNIT_HEADINGS: &[&str] = &["unit", "SM active", "by", "memory", "most", "energy", "covered"];
const PROCESS_HEADINGS: &[&str] = &["pid", "on", "SM active", "by", "memory", "covered", "owner"];
const NUMBERS: &[&str] = &["pid", "SM active", "memory", "most", "energy", "covered"];

fn units(window: &ClosedWindow, names: &Names<'_>) -> String {
    let row = |unit: &UnitReading| {
        let shown = Shown { quality: &unit.quality, covered: unit.covered_us };
        let energy = if unit.placement.is_some() { "-".to_owned() } else { shown.energy(unit.energy_mj) };
        vec![
            names.unit(&unit.gpu, unit.placement),
            shown.sm(unit.sm_active_us),
            shown.label("sm_active_us"),
            shown.memory(unit.memory_byte_us),
            unit.memory_bytes_max.map_or_else(|| "-".to_owned(), |bytes| gibibytes(bytes.get().into())),
            energy,
            seconds(unit.covered_us.get()),
        ]
    };
    let rows: Vec<Vec<String>> = window.units.iter().map(row).collect();
    indented(&columns(UNIT_HEADINGS, NUMBERS, &rows))
}

fn processes(window: &ClosedWindow, names: &Names<'_>) -> String {
    if window.processes.is_empty() {
        return "\nNo processes\n".to_owned();
    }
    let row = |process: &ProcessReading| {
        let shown = Shown { quality: &process.quality, covered: process.covered_us };
        vec![
            process.pid.to_string(),
            names.short(&process.gpu, process.placement),
            shown.sm(process.sm_active_us),
            shown.label("sm_active_us"),
            shown.memory(process.memory_byte_us),
            seconds(process.covered_us.get()),
            owner(process),
        ]
    };
    let rows: Vec<Vec<String>> = window.processes.iter().map(row).collect();
    format!("\nProcesses\n{}", indented(&columns(PROCESS_HEADINGS, NUMBERS, &rows)))
}

/// The most telling name first.
fn owner(process: &ProcessReading) -> String {
    let named = [("job", &process.slurm_job), ("pod", &process.pod_uid), ("container", &process.container)];
    let known =
        named.into_iter().find_map(|(kind, name)| name.as_ref().map(|name| format!("{kind} {}", cut(name))));
    let label =
        process.quality.iter().find(|(key, _)| key.as_str() == "owner").map(|(_, label)| absence(label));
    known.or(label).unwrap_or_else(|| "-".to_owned())
}

/// Container ids have 64 digits; twelve are what people compare.
fn cut(name: &str) -> String {
    let is_long = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_long { name.chars().take(12).collect() } else { name.to_owned() }
}

/// Names of units.
struct Names<'a> {
    inventory: &'a NodeInventory,
}

impl Names<'_> {
    fn gpu(&self, gpu: &Name) -> Option<&InventoryGpu> {
        self.inventory.gpus.iter().find(|entry| entry.uuid == *gpu)
    }

    /// `GPU 0  NVIDIA H100 80GB HBM3`, `GPU 0  3g.40gb 4:4`.
    fn unit(&self, gpu: &Name, placement: Option<Placement>) -> String {
        match placement {
            Some(_) => self.short(gpu, placement),
            None => {
                let model = self.gpu(gpu).map(|entry| entry.model.as_str()).unwrap_or_default();
                format!("{}  {model}", self.short(gpu, None)).trim_end().to_owned()
            }
        }
    }

    fn short(&self, gpu: &Name, placement: Option<Placement>) -> String {
        let entry = self.gpu(gpu);
        let index = entry.and_then(|entry| entry.index);
        let device = index.map_or_else(|| gpu.to_string(), |index| format!("GPU {index}"));
        let Some(placement) = placement else { return device };
        let profile = entry
            .and_then(|entry| entry.instances.iter().find(|instance| instance.placement == Some(placement)))
            .map(|instance| instance.profile.as_str())
            .unwrap_or_default();
        format!("{device}  {profile} {}:{}", placement.start, placement.size)
    }
}

/// Values of a row beside their labels.
struct Shown<'a> {
    quality: &'a BTreeMap<Name, Name>,
    covered: Count,
}

impl Shown<'_> {
    fn quality(&self, reading: &str) -> Option<&Name> {
        self.quality.iter().find(|(key, _)| key.as_str() == reading).map(|(_, label)| label)
    }

    /// `interval_mean`; `-` where there is no value to speak of.
    fn label(&self, reading: &str) -> String {
        let label = self
            .quality(reading)
            .map(|label| label.as_str())
            .filter(|label| !label.starts_with("unavailable("));
        label.unwrap_or("-").to_owned()
    }

    fn absent(&self, reading: &str) -> String {
        self.quality(reading).map_or_else(|| "-".to_owned(), |label| absence(label))
    }

    /// Of the covered time.
    fn sm(&self, active: Option<Count>) -> String {
        let Some(active) = active else { return self.absent("sm_active_us") };
        let covered = i128::from(self.covered.get());
        if covered == 0 { "-".to_owned() } else { per_cent(i128::from(active.get()), covered) }
    }

    /// The mean over the covered time.
    fn memory(&self, byte_us: Option<BigCount>) -> String {
        let Some(byte_us) = byte_us else { return self.absent("memory_byte_us") };
        let covered = i128::from(self.covered.get());
        if covered == 0 { "-".to_owned() } else { gibibytes(byte_us.get() / covered) }
    }

    fn energy(&self, energy: Option<Count>) -> String {
        energy.map_or_else(
            || self.absent("energy_mj"),
            |energy| format!("{} J", tenths(i128::from(energy.get()), 1_000)),
        )
    }
}

/// A quotient with one decimal, rounded half up.
fn tenths(number: i128, by: i128) -> String {
    let tenths = (number * 10 + by / 2) / by;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn per_cent(part: i128, whole: i128) -> String {
    format!("{} %", tenths(part * 100, whole))
}

fn gibibytes(bytes: i128) -> String {
    format!("{} GiB", tenths(bytes, 1 << 30))
}

fn seconds(micros: i64) -> String {
    format!("{} s", tenths(i128::from(micros), 1_000_000))
}

#[cfg(test)]
mod tests;
