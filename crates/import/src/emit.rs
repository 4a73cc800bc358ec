//! The events themselves, as structured CloudEvents.

use gpuledger_domain::time::Instant;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One unplaced unit of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) sku: String,
    pub(crate) count: u32,
    /// A reduced rational below 1, as text.
    pub(crate) share: Option<String>,
}

/// What a grant says.
#[derive(Clone, Debug)]
pub(crate) struct Grant<'a> {
    pub(crate) source: &'a str,
    pub(crate) allocation: &'a str,
    pub(crate) at: Instant,
    pub(crate) tenant: &'a str,
    pub(crate) project: Option<&'a str>,
    pub(crate) units: &'a [Unit],
    pub(crate) slurm_job: Option<&'a str>,
    pub(crate) labels: BTreeMap<&'a str, String>,
}

/// `allocation.granted`: shared where a unit is a share, else exclusive; class on demand.
pub(crate) fn granted(grant: &Grant<'_>) -> Value {
    let units: Vec<Value> = grant
        .units
        .iter()
        .map(|unit| match &unit.share {
            Some(share) => json!({"sku": unit.sku, "count": unit.count, "share": share}),
            None => json!({"sku": unit.sku, "count": unit.count}),
        })
        .collect();
    let shared = grant.units.iter().any(|unit| unit.share.is_some());
    let mut data = json!({
        "allocation": grant.allocation,
        "tenant": grant.tenant,
        "units": units,
        "mode": if shared { "shared" } else { "exclusive" },
        "class": "on_demand",
        "labels": grant.labels,
    });
    if let Some(project) = grant.project {
        data["project"] = json!(project);
    }
    if let Some(job) = grant.slurm_job {
        data["runtime"] = json!({"slurm_job": job});
    }
    event(grant.source, &format!("{}-granted", grant.allocation), "allocation.granted", grant.at, data)
}

/// `allocation.released`.
pub(crate) fn released(source: &str, allocation: &str, at: Instant, reason: Option<&str>) -> Value {
    let mut data = json!({"allocation": allocation});
    if let Some(reason) = reason {
        data["reason"] = json!(reason);
    }
    event(source, &format!("{allocation}-released"), "allocation.released", at, data)
}

/// Work of one request.
#[derive(Clone, Debug)]
pub(crate) struct Work<'a> {
    pub(crate) source: &'a str,
    pub(crate) id: &'a str,
    pub(crate) at: Instant,
    pub(crate) pool: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// `work.reported`, at an instant.
pub(crate) fn worked(work: &Work<'_>) -> Value {
    let at = work.at.to_string();
    let data = json!({
        "pool": work.pool,
        "tenant": work.tenant,
        "start": at,
        "end": at,
        "input_tokens": work.input_tokens,
        "output_tokens": work.output_tokens,
        "requests": 1,
    });
    event(work.source, work.id, "work.reported", work.at, data)
}

/// `node.inventory`.
pub(crate) fn inventory(node: &str, boot_id: &str, at: Instant, gpus: Vec<Value>) -> Value {
    let mut data = Map::new();
    data.insert("node".to_owned(), json!(node));
    data.insert("boot_id".to_owned(), json!(boot_id));
    data.insert("gpus".to_owned(), Value::Array(gpus));
    event("/importers/nvidia-smi", &format!("{node}@{at}"), "node.inventory", at, Value::Object(data))
}

fn event(source: &str, id: &str, kind: &str, at: Instant, data: Value) -> Value {
    json!({
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": format!("gpuledger.{kind}.v1"),
        "time": at.to_string(),
        "datacontenttype": "application/json",
        "data": data,
    })
}

/// A text as one segment of a source path: what RFC 3986 does not leave unreserved is percent-encoded.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
