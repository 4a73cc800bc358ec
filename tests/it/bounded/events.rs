//! Facts of a story as the events that say them.

use gpuledger_domain::fact::{
    Cause, Fact, FactBody, Grant, GrantUnit, Inventory, InventoryGpu, Mode, PlacedOf, PlacedUnit, Placement,
    Runtime, ScrubResult, State,
};
use gpuledger_domain::pool::Work;
use gpuledger_domain::share::Share;
use serde_json::{Map, Value, json};

/// The event of a fact, as a line; none for a fact of no type. `number` is a place in a stream of telemetry.
pub(crate) fn line(fact: &Fact, number: usize) -> Option<Vec<u8>> {
    let (kind, data) = data(fact, number)?;
    let event = json!({
        "specversion": "1.0", "source": fact.source.as_str(), "id": fact.id, "type": format!("gpuledger.{kind}.v1"),
        "time": fact.at.to_string(), "data": without_nulls(data),
    });
    Some(event.to_string().into_bytes())
}

/// Pools of every policy: `variety` chooses windows and who bears idle time.
pub(crate) fn pools(variety: u64) -> Vec<Value> {
    let pick = |words: [&'static str; 3], n: u64| match (variety >> n) % 3 {
        0 => words[0],
        1 => words[1],
        _ => words[2],
    };
    let idle = |n| pick(["provider", "proportional", "even"], n);
    let work = |n: u64| {
        json!({"kind": "Pool", "id": format!("work-{n}"), "policy": "work", "window": pick(["1m", "5m", "15m"], n),
               "weights": {"input_tokens": "1", "requests": "4", "units": "0.25"}, "idle": idle(n + 3)})
    };
    let by =
        |name: &str, policy: &str, n| json!({"kind": "Pool", "id": name, "policy": policy, "idle": idle(n)});
    vec![
        work(1),
        work(2),
        by("measured-1", "measured", 9),
        by("measured-2", "measured", 11),
        by("shares-1", "entitlement", 13),
        by("shares-2", "entitlement", 15),
    ]
}

fn data(fact: &Fact, number: usize) -> Option<(&'static str, Value)> {
    Some(match &fact.body {
        FactBody::Inventory(listed) => ("node.inventory", inventory(listed)),
        FactBody::NodeDecommissioned(node) => ("node.decommissioned", json!({"node": node.as_str()})),
        FactBody::GpuDecommissioned(gpu) => ("node.decommissioned", json!({"gpu": gpu.as_str()})),
        FactBody::UnitState(said) => {
            let (word, cause) = match &said.state {
                State::Ok => ("ok", None),
                State::Maintenance => ("maintenance", None),
                State::Fault(cause) => ("fault", Some(cause_word(cause))),
            };
            (
                "unit.state",
                json!({"gpu": said.gpu.as_str(), "placement": place(said.placement), "state": word, "cause": cause}),
            )
        }
        FactBody::NodeAlive(node) => (
            "telemetry.window",
            json!({"node": node.as_str(), "boot_id": "b1", "stream": "s1", "sequence": number, "end": fact.at.to_string(),
                   "start": fact.at.plus(-1_000_000).to_string(), "units": [], "processes": [], "gaps": []}),
        ),
        FactBody::Granted(said) => ("allocation.granted", grant(said)),
        FactBody::Placed(said) => {
            let units: Vec<Value> = said.units.iter().map(placed).collect();
            let (allocation, named) = match &said.of {
                PlacedOf::Allocation(id) => (Some(id.as_str()), None),
                PlacedOf::Runtime(named) => (None, Some(runtime(named))),
            };
            ("allocation.placed", json!({"allocation": allocation, "runtime": named, "units": units}))
        }
        FactBody::AllocationState { allocation, state } => {
            ("allocation.state", json!({"allocation": allocation.as_str(), "state": state}))
        }
        FactBody::Transferred { allocation, tenant, project } => (
            "allocation.transferred",
            json!({"allocation": allocation.as_str(), "tenant": tenant.as_str(), "project": project.as_ref().map(|p| p.as_str())}),
        ),
        FactBody::Released { allocation, reason } => {
            ("allocation.released", json!({"allocation": allocation.as_str(), "reason": reason}))
        }
        FactBody::Snapshot { nodes, allocations } => {
            let names: Vec<&str> = allocations.iter().map(|id| id.as_str()).collect();
            let scope = nodes
                .as_ref()
                .map(|nodes| json!({"nodes": nodes.iter().map(|node| node.as_str()).collect::<Vec<_>>()}));
            ("allocation.snapshot", json!({"scope": scope, "allocations": names}))
        }
        FactBody::ScrubStarted { scrub, gpu, placement } => (
            "scrub.started",
            json!({"scrub": scrub.as_str(), "gpu": gpu.as_str(), "placement": place(*placement)}),
        ),
        FactBody::ScrubFinished { scrub, gpu, placement, started_at, evidence } => (
            "scrub.finished",
            json!({"scrub": scrub.as_str(), "gpu": gpu.as_str(), "placement": place(*placement), "started_at": started_at.to_string(),
                   "result": result(evidence.result), "class": "clear", "tool": {"name": "t", "version": "1", "digest": "d"}, "operator": "o",
                   "platform": {"driver": "1"}, "coverage": {"bytes_total": evidence.bytes_total, "bytes_covered": evidence.bytes_covered, "bytes_reserved": evidence.bytes_reserved},
                   "verification": {"method": "full", "bytes_read": evidence.bytes_read, "mismatches": evidence.mismatches}}),
        ),
        FactBody::Work(said) => ("work.reported", work(said)),
        FactBody::QuarantineReleased { .. } | FactBody::Other => return None,
    })
}

const fn result(result: ScrubResult) -> &'static str {
    match result {
        ScrubResult::Passed => "passed",
        ScrubResult::Failed => "failed",
        ScrubResult::Incomplete => "incomplete",
        ScrubResult::Skipped => "skipped",
    }
}

fn inventory(listed: &Inventory) -> Value {
    let gpu = |gpu: &InventoryGpu| {
        let instance = |i: &gpuledger_domain::fact::Instance| json!({"uuid": i.uuid, "profile": i.profile, "compute_slices": i.compute_slices, "placement": place(i.placement)});
        json!({"uuid": gpu.gpu.as_str(), "model": gpu.model, "compute_slices": gpu.compute_slices, "memory_slices": gpu.memory_slices,
               "mig": gpu.mig, "instances": gpu.instances.iter().map(instance).collect::<Vec<_>>()})
    };
    json!({"node": listed.node.as_str(), "boot_id": listed.boot_id, "gpus": listed.gpus.iter().map(gpu).collect::<Vec<_>>()})
}

fn grant(said: &Grant) -> Value {
    let unit = |unit: &GrantUnit| match unit {
        GrantUnit::Placed(unit) => placed(unit),
        GrantUnit::Unplaced { sku, count, share: part } => {
            json!({"sku": sku.as_str(), "count": count, "share": share(*part)})
        }
    };
    json!({"allocation": said.allocation.as_str(), "tenant": said.tenant.as_str(), "project": said.project.as_ref().map(|p| p.as_str()),
           "units": said.units.iter().map(unit).collect::<Vec<_>>(), "class": said.class.as_str(), "pool": said.pool,
           "mode": if said.mode == Mode::Shared { "shared" } else { "exclusive" }, "runtime": runtime(&said.runtime)})
}

fn placed(unit: &PlacedUnit) -> Value {
    let mig = unit
        .mig
        .as_ref()
        .map(|m| json!({"uuid": m.uuid, "profile": m.profile, "placement": place(m.placement)}));
    json!({"gpu": unit.gpu.as_str(), "mig": mig, "share": share(unit.share)})
}

fn work(said: &Work) -> Value {
    let mut data = json!({"pool": said.pool, "tenant": said.tenant.as_str(), "project": said.project.as_ref().map(|p| p.as_str()),
                          "start": said.start.to_string(), "end": said.end.to_string()});
    for (kind, amount) in &said.amounts {
        // Tenths of units; the others are whole.
        let tenths = (*amount * Share::from_integer(10)).to_integer().min(1_000_000_000_000_000);
        let value = match kind.as_str() {
            "units" => json!(format!("{}.{}", tenths / 10, tenths % 10)),
            _ => json!(i64::try_from(tenths / 10).unwrap_or(i64::MAX)),
        };
        data[kind.as_str()] = value;
    }
    data
}

fn cause_word(cause: &Cause) -> &str {
    match cause {
        Cause::Hardware => "hardware",
        Cause::Application => "application",
        Cause::Unknown => "unknown",
        Cause::Named(other) => other,
    }
}

fn runtime(named: &Runtime) -> Value {
    json!({"slurm_job": named.slurm_job, "pod_uid": named.pod_uid})
}

fn place(placement: Option<Placement>) -> Value {
    placement.map_or(Value::Null, |p| json!({"start": p.start, "size": p.size}))
}

fn share(share: Option<Share>) -> Value {
    share.map_or(Value::Null, |share| json!(format!("{}/{}", share.numer(), share.denom())))
}

/// Events leave out what they do not say.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
