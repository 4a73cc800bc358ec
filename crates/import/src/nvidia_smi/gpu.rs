//! GPUs of a capture as an inventory lists them.

use super::document::{Document, Element};
use super::{Import, profile};
use crate::report::{Reason, Reject, shown};
use crate::table::name_of;
use gpuledger_domain::geometry::{Geometry, ModelGeometry};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;
/// Hexadecimal digits of a UUID.
const UUID_DIGITS: usize = 32;

/// All GPUs that can be named; the others are noted.
pub(super) fn all(
    import: &mut Import<'_>,
    document: &Document,
    node: &str,
    geometry: &Geometry,
) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut gpus = Vec::new();
    for (index, element) in document.gpus.iter().enumerate() {
        import.report.read += 1;
        let uuid = uuid(import, element, node, index, &mut seen);
        match gpu(import, element, &uuid, index, geometry) {
            Ok(gpu) => gpus.push(gpu),
            Err(reject) => import.note(element.line, reject),
        }
    }
    gpus
}

fn gpu(
    import: &mut Import<'_>,
    element: &Element,
    uuid: &str,
    index: usize,
    geometry: &Geometry,
) -> Result<Value, Reject> {
    let model = element.get("product_name").ok_or_else(|| {
        Reject::value("product_name", "is missing or not available; the GPU is left out of the inventory")
    })?;
    let model = name_of("product_name", model)?;
    // A GPU that shares the host's memory reports none of its own: absent, not zero (M-8).
    let total = element.mib("fb_memory_usage/total");
    let memory = total.and_then(|mib| mib.checked_mul(MIB));
    let mode = element.get("mig_mode/current_mig");
    let slices = geometry.of(model);
    if slices.is_none() && mode.is_some() {
        let message = format!(
            "{} can do MIG and its geometry is not known; it counts as 1 compute and 1 memory slice",
            shown(model)
        );
        import.note(element.line, Reject::new(Reason::GeometryUnknown, Some("product_name"), message));
    }
    let mig = mode == Some("Enabled");
    let instances: Vec<Value> = match slices {
        _ if !mig => Vec::new(),
        Some(slices) => instances(import, element, slices, model, uuid, total),
        None => {
            for instance in &element.instances {
                import.note(
                    instance.line,
                    Reject::new(
                        Reason::ProfileUnsure,
                        Some("mig_device"),
                        "the model's geometry is not known",
                    ),
                );
            }
            Vec::new()
        }
    };
    let (compute, memory_slices) = slices.map_or((1, 1), |s| (s.compute_slices, s.memory_slices));
    let mut gpu = json!({
        "uuid": uuid,
        "index": index,
        "model": model,
        "compute_slices": compute,
        "memory_slices": memory_slices,
        "mig": mig,
        "state": "ok",
        "instances": instances,
    });
    if let Some(memory) = memory {
        gpu["memory_bytes"] = json!(memory);
    }
    Ok(gpu)
}

/// The vendor's UUID where it tells this GPU from every other, else node and bus address.
fn uuid(
    import: &mut Import<'_>,
    element: &Element,
    node: &str,
    index: usize,
    seen: &mut BTreeSet<String>,
) -> String {
    let found = element.get("uuid").filter(|uuid| name_of("uuid", uuid).is_ok());
    let (uuid, problem) = match found {
        Some(uuid) if seen.contains(uuid) => {
            (address(element, node, index), format!("{} is there twice", shown(uuid)))
        }
        None => (address(element, node, index), "is missing or not available".to_owned()),
        Some(uuid) if is_placeholder(uuid) => {
            let message = format!(
                "{} is a placeholder; a GPU of another capture with the same would be the same GPU",
                shown(uuid)
            );
            (uuid.to_owned(), message)
        }
        Some(uuid) => {
            seen.insert(uuid.to_owned());
            return uuid.to_owned();
        }
    };
    let named =
        if found == Some(uuid.as_str()) { String::new() } else { format!("; the GPU is named {uuid}") };
    import.note(element.line, Reject::new(Reason::UuidUnsure, Some("uuid"), format!("{problem}{named}")));
    seen.insert(uuid.clone());
    uuid
}

fn address(element: &Element, node: &str, index: usize) -> String {
    match element.id.as_deref().filter(|id| name_of("id", id).is_ok()) {
        Some(id) => format!("{node}/{id}"),
        None => format!("{node}/{index}"),
    }
}

/// Almost all digits zero: no vendor's hash looks like that.
fn is_placeholder(uuid: &str) -> bool {
    uuid.bytes().filter(|b| *b == b'0').count() > UUID_DIGITS * 3 / 4
}

fn instances(
    import: &mut Import<'_>,
    gpu: &Element,
    slices: &ModelGeometry,
    model: &str,
    uuid: &str,
    total_mib: Option<u64>,
) -> Vec<Value> {
    let mut out = Vec::new();
    for element in &gpu.instances {
        let mates = gpu
            .instances
            .iter()
            .filter(|i| i.get("gpu_instance_id") == element.get("gpu_instance_id"))
            .count();
        match instance(element, slices, model, uuid, total_mib, mates) {
            Ok(instance) => out.push(instance),
            Err(reject) => import.note(element.line, reject),
        }
    }
    out
}

fn instance(
    element: &Element,
    slices: &ModelGeometry,
    model: &str,
    gpu: &str,
    total_mib: Option<u64>,
    mates: usize,
) -> Result<Value, Reject> {
    let need =
        |field: &str| element.number(field).ok_or_else(|| Reject::value(field, "is missing or no number"));
    let (gpu_instance, compute_instance) = (need("gpu_instance_id")?, need("compute_instance_id")?);
    let unsure = |message: String| Reject::new(Reason::ProfileUnsure, Some("mig_device"), message);
    if mates > 1 {
        return Err(unsure(format!(
            "GPU instance {gpu_instance} is cut into {mates} compute instances; a capture does not tell its profile"
        )));
    }
    let seen = profile::Seen {
        sms: need("device_attributes/shared/multiprocessor_count")?,
        mib: element
            .mib("fb_memory_usage/total")
            .ok_or_else(|| Reject::value("fb_memory_usage/total", "is missing or no size"))?,
        total_mib: total_mib
            .ok_or_else(|| Reject::value("fb_memory_usage/total", "of the GPU is missing or no size"))?,
        media: element.number("device_attributes/shared/ofa_count").unwrap_or(0) > 0,
    };
    let (profile, compute) = profile::of(slices, model, &seen).map_err(unsure)?;
    let uuid = match element.get("uuid") {
        Some(uuid) => name_of("uuid", uuid)?.to_owned(),
        None => format!("MIG-{gpu}/{gpu_instance}/{compute_instance}"),
    };
    Ok(json!({
        "uuid": uuid,
        "profile": profile,
        "compute_slices": compute,
        "gpu_instance_id": gpu_instance,
        "compute_instance_id": compute_instance,
    }))
}
