//! Telemetry windows as protobuf, both ways, by the typed body: both forms obey the same bounds.

use crate::bodies::{Gap, Placement, ProcessReading, TelemetryWindow, UnitReading};
use crate::error::Fault;
use crate::number::{BigCount, Count};
use crate::text::Name;
use prost::Message;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What prost makes of `schemas/telemetry.proto`.
#[expect(unreachable_pub, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/gpuledger.telemetry.v1.rs"));
}

/// The window as protobuf bytes.
pub(crate) fn telemetry_to_proto(window: &TelemetryWindow) -> Vec<u8> {
    let message = generated::TelemetryWindow {
        node: window.node.to_string(),
        boot_id: window.boot_id.to_string(),
        stream: window.stream.to_string(),
        sequence: wide(window.sequence),
        start_us: window.start.get().as_micros(),
        end_us: window.end.get().as_micros(),
        units: window.units.iter().map(unit).collect(),
        processes: window.processes.iter().map(process).collect(),
        gaps: window.gaps.iter().map(gap).collect(),
    };
    message.encode_to_vec()
}

fn wide(count: Count) -> u64 {
    count.get().unsigned_abs()
}

fn big(count: BigCount) -> generated::UInt128 {
    let value = count.get().unsigned_abs();
    let low = u64::try_from(value & u128::from(u64::MAX)).unwrap_or_default();
    generated::UInt128 { low, high: u64::try_from(value >> 64).unwrap_or_default() }
}

fn placement(placement: Placement) -> generated::Placement {
    generated::Placement { start: placement.start.get().into(), size: placement.size.get().into() }
}

fn text(name: Option<&Name>) -> Option<String> {
    name.map(ToString::to_string)
}

fn labels(quality: &BTreeMap<Name, Name>) -> BTreeMap<String, String> {
    quality.iter().map(|(reading, label)| (reading.to_string(), label.to_string())).collect()
}

fn amounts(coverage: &BTreeMap<Name, Count>) -> BTreeMap<String, u64> {
    coverage.iter().map(|(reading, covered)| (reading.to_string(), wide(*covered))).collect()
}

fn unit(unit: &UnitReading) -> generated::UnitReading {
    generated::UnitReading {
        gpu: unit.gpu.to_string(),
        placement: unit.placement.map(placement),
        sm_active_us: unit.sm_active_us.map(wide),
        memory_byte_us: unit.memory_byte_us.map(big),
        memory_bytes_max: unit.memory_bytes_max.map(wide),
        energy_mj: unit.energy_mj.map(wide),
        covered_us: wide(unit.covered_us),
        quality: labels(&unit.quality),
        coverage: amounts(&unit.coverage),
    }
}

fn process(process: &ProcessReading) -> generated::ProcessReading {
    generated::ProcessReading {
        gpu: process.gpu.to_string(),
        placement: process.placement.map(placement),
        pid: wide(process.pid),
        started_at_us: process.started_at.get().as_micros(),
        container: text(process.container.as_ref()),
        pod_uid: text(process.pod_uid.as_ref()),
        slurm_job: text(process.slurm_job.as_ref()),
        sm_active_us: process.sm_active_us.map(wide),
        memory_byte_us: process.memory_byte_us.map(big),
        covered_us: wide(process.covered_us),
        quality: labels(&process.quality),
        coverage: amounts(&process.coverage),
    }
}

fn gap(gap: &Gap) -> generated::Gap {
    generated::Gap {
        start_us: gap.start.get().as_micros(),
        end_us: gap.end.get().as_micros(),
        reason: gap.reason.to_string(),
    }
}

/// The window's data as the JSON value of the same content, not yet checked: the reader of JSON bodies does that, so that both
/// forms are refused with the same words.
pub(crate) fn telemetry_from_proto(bytes: &[u8]) -> Result<Value, Fault> {
    let window = generated::TelemetryWindow::decode(bytes)
        .map_err(|why| Fault::malformed("data", format_args!("is no telemetry window in protobuf: {why}")))?;
    Ok(json!({
        "node": window.node,
        "boot_id": window.boot_id,
        "stream": window.stream,
        "sequence": number(window.sequence.into()),
        "start": instant("data.start", window.start_us)?,
        "end": instant("data.end", window.end_us)?,
        "units": window.units.into_iter().map(unit_value).collect::<Vec<_>>(),
        "processes": window.processes.into_iter().enumerate().map(process_value).collect::<Result<Vec<_>, _>>()?,
        "gaps": window.gaps.into_iter().enumerate().map(gap_value).collect::<Result<Vec<_>, _>>()?,
    }))
}

fn number(value: u128) -> Value {
    match u64::try_from(value) {
        Ok(small) if small <= 1 << 53 => small.into(),
        _ => value.to_string().into(),
    }
}

fn instant(field: &str, micros: i64) -> Result<Value, Fault> {
    let text = gpuledger_domain::time::Instant::from_micros(micros).to_string();
    crate::time::parse_time(&text)
        .map(|_| text.clone().into())
        .map_err(|why| Fault::bad(field, format_args!("`{text}` {why}")))
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value);
    }
}

fn wide_value(value: generated::UInt128) -> Value {
    number((u128::from(value.high) << 64) | u128::from(value.low))
}

fn placement_value(placement: generated::Placement) -> Value {
    json!({"start": placement.start, "size": placement.size})
}

/// None where every reading covers the same: the member is left out then.
fn coverage_value(coverage: BTreeMap<String, u64>) -> Option<Value> {
    let numbers: Map<String, Value> =
        coverage.into_iter().map(|(reading, covered)| (reading, number(covered.into()))).collect();
    (!numbers.is_empty()).then(|| numbers.into())
}

fn unit_value(unit: generated::UnitReading) -> Value {
    let mut map = Map::new();
    map.insert("gpu".to_owned(), unit.gpu.into());
    put(&mut map, "placement", unit.placement.map(placement_value));
    put(&mut map, "sm_active_us", unit.sm_active_us.map(|n| number(n.into())));
    put(&mut map, "memory_byte_us", unit.memory_byte_us.map(wide_value));
    put(&mut map, "memory_bytes_max", unit.memory_bytes_max.map(|n| number(n.into())));
    put(&mut map, "energy_mj", unit.energy_mj.map(|n| number(n.into())));
    map.insert("covered_us".to_owned(), number(unit.covered_us.into()));
    put(&mut map, "coverage", coverage_value(unit.coverage));
    map.insert("quality".to_owned(), json!(unit.quality));
    map.into()
}

fn process_value((index, process): (usize, generated::ProcessReading)) -> Result<Value, Fault> {
    let mut map = Map::new();
    map.insert("gpu".to_owned(), process.gpu.into());
    put(&mut map, "placement", process.placement.map(placement_value));
    map.insert("pid".to_owned(), number(process.pid.into()));
    let started_at = instant(&format!("data.processes[{index}].started_at"), process.started_at_us)?;
    map.insert("started_at".to_owned(), started_at);
    put(&mut map, "container", process.container.map(Value::from));
    put(&mut map, "pod_uid", process.pod_uid.map(Value::from));
    put(&mut map, "slurm_job", process.slurm_job.map(Value::from));
    put(&mut map, "sm_active_us", process.sm_active_us.map(|n| number(n.into())));
    put(&mut map, "memory_byte_us", process.memory_byte_us.map(wide_value));
    map.insert("covered_us".to_owned(), number(process.covered_us.into()));
    put(&mut map, "coverage", coverage_value(process.coverage));
    map.insert("quality".to_owned(), json!(process.quality));
    Ok(map.into())
}

fn gap_value((index, gap): (usize, generated::Gap)) -> Result<Value, Fault> {
    Ok(json!({
        "start": instant(&format!("data.gaps[{index}].start"), gap.start_us)?,
        "end": instant(&format!("data.gaps[{index}].end"), gap.end_us)?,
        "reason": gap.reason,
    }))
}
