//! The plan as a scenario of the NVML simulator, one for each node: what the collector will find on the devices.

use super::allocator::{Plan, Unit};
use super::fleet::{Gpu, Model, Node, Part, Use};
use super::work::{Process, processes};
use super::{MIDNIGHT, lost};
use gpuledger_domain::time::{Instant, SECOND_US};
use serde_json::{Value, json};
use std::fmt::Write;

/// How long the nodes have been up at midnight, in seconds.
pub(crate) const UPTIME_SECONDS: i64 = 86_400;
/// A driver whose accounting has counters that survive the end of a process.
const DRIVER: &str = "610.43.02";

/// The scenario of a node, as YAML: one line for each GPU and for each thing that happens.
pub(crate) fn scenario(plan: &Plan, node: &Node) -> String {
    let mut text = format!(
        "name: demo-{}\nabout: The day of node {} as the allocator planned it\nnode: {}\nboot_id: {}\nstart: {MIDNIGHT}\nuptime: {UPTIME_SECONDS}s\n",
        node.name, node.name, node.name, node.boot_id
    );
    text.push_str(&format!("driver: {}\n", json!({"version": DRIVER, "cuda": 13030})));
    text.push_str("gpus:\n");
    for (gpu, used) in Gpu::of(node.name) {
        text.push_str(&format!("  - {}\n", described(gpu, used)));
    }
    text.push_str("timeline:\n");
    for (at, action) in timeline(plan, node) {
        // A step begins with its instant, and JSON is YAML.
        let action = action.to_string();
        let seconds = at.since(MIDNIGHT) / SECOND_US;
        let written = writeln!(text, "  - {{at: {seconds}s, {}", action.trim_start_matches('{'));
        debug_assert!(written.is_ok(), "text takes everything");
    }
    text
}

fn described(gpu: Gpu, used: Use) -> Value {
    let model = match gpu.node().model {
        Model::H100 => "h100-80",
        Model::A100 => "a100-80",
    };
    let is_cut = matches!(used, Use::Cut(_));
    let mig = if is_cut { "on" } else { "off" };
    json!({"uuid": gpu.to_string(), "model": model, "mig": mig, "accounting": !is_cut})
}

/// Everything that happens on a node, in order of time; at one instant ends come first.
fn timeline(plan: &Plan, node: &Node) -> Vec<(Instant, Value)> {
    let mut steps: Vec<(Instant, u8, Value)> = Vec::new();
    for (gpu, used) in Gpu::of(node.name) {
        if let Use::Cut(parts) = used {
            steps.extend(parts.iter().map(|part| (MIDNIGHT, 3, created(gpu, *part))));
        }
    }
    for cut in plan.cuts.iter().filter(|cut| cut.gpu.node().name == node.name) {
        let gone = cut.removed.iter().map(|part| (cut.at, 2, destroyed(cut.gpu, *part)));
        steps.extend(gone);
        steps.push((cut.at, 3, created(cut.gpu, cut.made)));
    }
    let (gpu, lost) = lost();
    if gpu.node().name == node.name {
        steps.push((lost.start(), 0, json!({"xid": {"gpu": gpu.index, "number": 79}})));
        steps.push((lost.start(), 2, json!({"lose": {"gpu": gpu.index}})));
        steps.push((lost.end(), 3, json!({"recover": {"gpu": gpu.index}})));
    }
    for process in processes(plan, node.name) {
        steps.extend(life(&process));
    }
    steps.sort_by_key(|(at, rank, _)| (*at, *rank));
    steps.into_iter().map(|(at, _, action)| (at, action)).collect()
}

fn created(gpu: Gpu, part: Part) -> Value {
    json!({"create_instance": {
        "gpu": gpu.index, "profile": part.profile, "start": part.start, "gi": part.instance_id(),
        "compute": [{"uuid": gpu.instance_uuid(part)}],
    }})
}

fn destroyed(gpu: Gpu, part: Part) -> Value {
    json!({"destroy_instance": {"gpu": gpu.index, "gi": part.instance_id()}})
}

/// Start, changes of load, end.
fn life(process: &Process) -> Vec<(Instant, u8, Value)> {
    let Process { pid, unit, window, .. } = process;
    let mut busy = process.busy.iter();
    let first = busy.next().map_or(0, |(_, busy)| *busy);
    let mut context = place(*unit);
    context["memory"] = json!(format!("{}GiB", process.memory_gib));
    context["sm"] = json!(format!("{first}%"));
    let start = json!({"start": {"pid": pid, "started_before": "2s", "cgroup": process.owner.cgroup(), "on": [context]}});
    let change = |busy: u8| {
        let mut to = place(*unit);
        to["pid"] = json!(pid);
        to["sm"] = json!(format!("{busy}%"));
        json!({"change": to})
    };
    let mut steps = vec![(window.start(), 4, start)];
    steps.extend(busy.map(|(at, busy)| (*at, 5, change(*busy))));
    steps.push((window.end(), 1, json!({"stop": {"pid": pid}})));
    steps
}

fn place(unit: Unit) -> Value {
    match unit.part {
        None => json!({"gpu": unit.gpu.index}),
        Some(part) => json!({"gpu": unit.gpu.index, "gi": part.instance_id()}),
    }
}
