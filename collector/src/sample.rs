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
    unreadable: Vec<Unreadable>,
}

/// A GPU that could not be read.
#[derive(Debug, Serialize)]
struct Unreadable {
    index: u32,
    why: String,
}

/// One line of JSON.
///
/// # Errors
/// A value that JSON cannot hold; there is none.
pub fn json(Sampled { window, unreadable, .. }: &Sampled) -> serde_json::Result<String> {
    let unreadable = unreadable.iter().map(|(index, why)| Unreadable { index: *index, why: why.to_string() });
    serde_json::to_string(&Printed {
        node: &window.node,
        boot_id: &window.boot_id,
        start: window.window.start().to_string(),
        end: window.window.end().to_string(),
        units: &window.units,
        processes: &window.processes,
        gaps: &window.gaps,
        unreadable: unreadable.collect(),
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
        let shown = Shown { quality: &unit.quality, covered_us_of: &|reading| unit.covered_us_of(reading) };
        let energy = if unit.placement.is_some() { "-".to_owned() } else { shown.energy(unit.energy_mj) };
        vec![
            names.unit(&unit.gpu, unit.placement),
            shown.sm(unit.sm_active_us),
            shown.label("sm_active_us"),
            shown.memory(unit.memory_byte_us),
            unit.memory_bytes_max.map_or_else(|| "-".to_owned(), |bytes| binary(bytes.get().into())),
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
        let shown =
            Shown { quality: &process.quality, covered_us_of: &|reading| process.covered_us_of(reading) };
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
    covered_us_of: &'a dyn Fn(&str) -> Count,
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

    /// Of the time it covers.
    fn sm(&self, active: Option<Count>) -> String {
        let active = active.map(|active| i128::from(active.get()));
        self.over_time("sm_active_us", active, per_cent)
    }

    /// The mean over the time it covers, which may be another than that of the row.
    fn memory(&self, byte_us: Option<BigCount>) -> String {
        self.over_time("memory_byte_us", byte_us.map(BigCount::get), |byte_us, covered| {
            binary(byte_us / covered)
        })
    }

    fn over_time(&self, reading: &str, value: Option<i128>, shown: impl Fn(i128, i128) -> String) -> String {
        let Some(value) = value else { return self.absent(reading) };
        let covered = i128::from((self.covered_us_of)(reading).get());
        if covered == 0 { "-".to_owned() } else { shown(value, covered) }
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

/// GiB, and MiB below one.
fn binary(bytes: i128) -> String {
    const GIB: i128 = 1 << 30;
    if bytes < GIB {
        format!("{} MiB", tenths(bytes, 1 << 20))
    } else {
        format!("{} GiB", tenths(bytes, GIB))
    }
}

fn seconds(micros: i64) -> String {
    format!("{} s", tenths(i128::from(micros), 1_000_000))
}

#[cfg(test)]
mod tests;
