//! Examples of every event type for tests, and what of them must be refused.

use serde_json::{Value, json};

/// At least one event of each type; the first three are those of contract.md, section 1.
pub(crate) fn all() -> Vec<Value> {
    let lines = include_str!("../../../schemas/examples.ndjson").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The example of this type, `gpuledger.` and `.v1` left out.
pub(crate) fn example(name: &str) -> Value {
    let type_name = format!("gpuledger.{name}.v1");
    all().into_iter().rfind(|event| event["type"] == type_name.as_str()).unwrap()
}

/// Sets a member by its JSON pointer; `null` removes it.
pub(crate) fn set(event: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match event.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        Value::Object(map) if value.is_null() => {
            map.remove(name);
        }
        Value::Object(map) => {
            map.insert(name.to_owned(), value);
        }
        other => panic!("{other} has no members"),
    }
}

/// The path by which messages name what stands at a JSON pointer.
pub(crate) fn path(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        match step.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(step),
            Err(_) => path.push_str(&format!(".{step}")),
        }
    }
    path
}

/// What both code and schema must refuse: example, pointer, value (`null`: without it).
pub(crate) fn refused() -> Vec<(&'static str, &'static str, Value)> {
    let long = "x".repeat(513);
    vec![
        ("unit.state", "/specversion", json!("0.3")),
        ("unit.state", "/specversion", json!(1.0)),
        ("unit.state", "/specversion", Value::Null),
        ("unit.state", "/id", json!("")),
        ("unit.state", "/id", json!(7)),
        ("unit.state", "/id", Value::Null),
        ("unit.state", "/source", json!("")),
        ("unit.state", "/source", json!(long)),
        ("unit.state", "/source", json!("/a\nb")),
        ("unit.state", "/time", Value::Null),
        ("unit.state", "/time", json!(1_790_812_800)),
        ("unit.state", "/time", json!("2026-10-01")),
        ("unit.state", "/time", json!("2026-10-01T00:00:00")),
        ("unit.state", "/time", json!("2026-10-01 00:00:00Z")),
        ("unit.state", "/time", json!("2026-10-01T00:00:00.1234567Z")),
        ("unit.state", "/time", json!("2026-13-01T00:00:00Z")),
        ("unit.state", "/time", json!("2026-12-31T23:59:60Z")),
        ("unit.state", "/time", json!("99999-01-01T00:00:00Z")),
        ("unit.state", "/time", json!("0000-01-01T00:00:00Z")),
        ("unit.state", "/datacontenttype", json!("text/xml")),
        ("unit.state", "/data_base64", json!("e30=")),
        ("unit.state", "/data", Value::Null),
        ("unit.state", "/data", json!("text")),
        ("unit.state", "/data", json!([1])),
        ("unit.state", "/data/gpu", json!(["GPU-1"])),
        ("unit.state", "/data/gpu", Value::Null),
        ("unit.state", "/data/state", json!("broken")),
        ("unit.state", "/data/placement/start", json!(16)),
        ("unit.state", "/data/placement/start", json!(-1)),
        ("unit.state", "/data/placement/size", json!(0)),
        ("unit.state", "/data/placement/size", json!(1.5)),
        ("node.inventory", "/data/gpus/0/compute_slices", json!(0)),
        ("node.inventory", "/data/gpus/0/compute_slices", json!(17)),
        ("node.inventory", "/data/gpus/0/memory_slices", json!("8")),
        ("node.inventory", "/data/gpus/0/memory_bytes", json!(-1)),
        ("node.inventory", "/data/gpus/0/memory_bytes", json!("-1")),
        ("node.inventory", "/data/gpus/0/memory_bytes", json!("99999999999999999999999999999999999999999")),
        ("node.inventory", "/data/gpus/0/mig", json!("yes")),
        ("node.inventory", "/data/gpus/0/model", json!("")),
        ("node.inventory", "/data/gpus", json!({})),
        ("node.decommissioned", "/data/node", Value::Null),
        ("node.decommissioned", "/data/gpu", json!("GPU-1")),
        ("telemetry.window", "/data/start", json!("yesterday")),
        ("telemetry.window", "/data/sequence", json!(1e300)),
        ("telemetry.window", "/data/sequence", json!(-1)),
        ("telemetry.window", "/data/units/0/covered_us", Value::Null),
        ("telemetry.window", "/data/units/0/memory_byte_us", json!("1e30")),
        ("telemetry.window", "/data/units/0/quality", json!({"sm_active_us": 1})),
        ("telemetry.window", "/data/units/0/coverage", json!({"sm_active_us": -1})),
        ("telemetry.window", "/data/units/0/coverage", json!({"": 1})),
        ("telemetry.window", "/data/processes/0/coverage/memory_byte_us", json!("all")),
        ("telemetry.window", "/data/processes/0/pid", json!("first")),
        ("telemetry.window", "/data/gaps/0/reason", json!("")),
        ("allocation.granted", "/data/allocation", json!("")),
        ("allocation.granted", "/data/units", json!([])),
        ("allocation.granted", "/data/units/0", json!({"gpu": "GPU-1", "sku": "a30", "count": 1})),
        ("allocation.granted", "/data/units/0", json!({"sku": "a30"})),
        ("allocation.granted", "/data/units/0", json!({"sku": "a30", "count": 0})),
        ("allocation.granted", "/data/units/0", json!({"sku": "a30", "count": -4})),
        ("allocation.granted", "/data/units/0", json!({"sku": "a30", "count": 65_537})),
        ("allocation.granted", "/data/units/0", json!({"sku": "a30", "count": "1"})),
        ("allocation.granted", "/data/units/0", json!({})),
        ("allocation.granted", "/data/units/0", json!("GPU-1")),
        ("allocation.granted", "/data/units/0/mig", json!({"profile": "3g.40gb"})),
        ("allocation.granted", "/data/units/0/share", json!(0.25)),
        ("allocation.granted", "/data/units/0/share", json!("0")),
        ("allocation.granted", "/data/units/0/share", json!("0/4")),
        ("allocation.granted", "/data/units/0/share", json!("1/0")),
        ("allocation.granted", "/data/units/0/share", json!("-1/4")),
        ("allocation.granted", "/data/units/0/share", json!("25%")),
        ("allocation.granted", "/data/mode", json!("alone")),
        ("allocation.granted", "/data/class", json!("on-demand")),
        ("allocation.granted", "/data/labels", json!({"team": 7})),
        ("allocation.granted", "/data/labels", json!({"": "x"})),
        ("allocation.granted", "/data/runtime", json!({"slurm_job": 4711})),
        ("allocation.placed", "/data/runtime", Value::Null),
        ("allocation.placed", "/data/allocation", json!("a-1")),
        ("allocation.placed", "/data/units/0/gpu", Value::Null),
        ("allocation.released", "/data/reason", json!("")),
        ("allocation.snapshot", "/data/allocations", json!("a-1")),
        ("scrub.finished", "/data/result", json!("fine")),
        ("scrub.finished", "/data/coverage/bytes_total", json!(-1)),
        ("scrub.finished", "/data/operator", Value::Null),
        ("usage.reported", "/data/quantity", json!(1.5)),
        ("usage.reported", "/data/quantity", json!("-1")),
        ("usage.reported", "/data/quantity", json!("NaN")),
        ("charge.recorded", "/data/currency", json!("Euro")),
        ("charge.recorded", "/data/period", json!("2026-13")),
        ("charge.recorded", "/data/amount", json!("1,50")),
        ("dispute.resolved", "/data/line", json!("l-1")),
        ("signal.raised", "/data/action", json!("stop")),
        ("signal.acknowledged", "/data/outcome", json!("done")),
    ]
}
