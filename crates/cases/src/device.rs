//! GPUs, MIG instances and units of the table, as members of events.

use serde_json::{Map, Value, json};

/// A model by its short name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The NVML name.
    pub name: String,
    /// Compute slices.
    pub compute_slices: u8,
    /// Memory slices.
    pub memory_slices: u8,
}

/// Short names of models: NVML name, compute slices, memory slices.
const MODELS: [(&str, &str, u8, u8); 5] = [
    ("h100", "NVIDIA H100 80GB HBM3", 7, 8),
    ("a100", "NVIDIA A100-SXM4-80GB", 7, 8),
    ("a30", "NVIDIA A30", 4, 4),
    ("l40s", "NVIDIA L40S", 1, 1),
    ("t4", "Tesla T4", 1, 1),
];

impl Model {
    /// Reads `h100`, or `x1:5/6`: a model nobody knows, with so many slices.
    fn read(word: &str) -> Result<Self, String> {
        let (short, slices) =
            word.split_once(':').map_or((word, None), |(short, slices)| (short, Some(slices)));
        let known = MODELS.iter().find(|(name, ..)| *name == short);
        let (compute, memory) = match (slices, known) {
            (Some(slices), _) => {
                let parts =
                    slices.split_once('/').and_then(|(c, m)| Some((c.parse().ok()?, m.parse().ok()?)));
                parts.ok_or_else(|| format!("`{slices}` are no slices, expected such as 7/8"))?
            }
            (None, Some((.., compute, memory))) => (*compute, *memory),
            (None, None) => {
                return Err(format!("`{word}` is no model, expected one such as h100, a30 or x1:5/6"));
            }
        };
        let name = known
            .map_or_else(|| format!("NVIDIA {}", short.to_uppercase()), |(_, name, ..)| (*name).to_owned());
        Ok(Self { name, compute_slices: compute, memory_slices: memory })
    }
}

/// Reads `G1 h100`, `G1 h100 mig M1=3g.40gb@0+4 4g.40gb@4+4/4c`, as an entry of an inventory.
pub(super) fn listed(text: &str, index: usize) -> Result<Value, String> {
    let mut words = text.split_whitespace();
    let gpu = words.next().ok_or("a GPU is missing between two commas")?;
    let model = Model::read(words.next().ok_or_else(|| format!("the model of {gpu} is missing"))?)?;
    let mut entry = json!({"uuid": gpu, "index": index, "model": model.name, "compute_slices": model.compute_slices,
        "memory_slices": model.memory_slices, "mig": false, "instances": []});
    for word in words {
        if word == "mig" {
            entry["mig"] = json!(true);
        } else if let Some(state) = word.strip_prefix("state=") {
            entry["state"] = json!(state);
        } else if let Some(at) = word.strip_prefix("index=") {
            entry["index"] = json!(at.parse::<u32>().map_err(|_| format!("`{at}` is no index"))?);
        } else {
            let instance = instance(gpu, word)?;
            entry["instances"].as_array_mut().ok_or("instances are a list")?.push(instance);
        }
    }
    Ok(entry)
}

/// `M1=3g.40gb@0+4/3c`: name, profile, placement (`@?` where it could not be read), compute slices where the node read them.
fn instance(gpu: &str, word: &str) -> Result<Value, String> {
    let (named, rest) = word.split_once('=').map_or((None, word), |(name, rest)| (Some(name), rest));
    let (rest, compute) = rest.split_once('/').map_or((rest, None), |(rest, compute)| (rest, Some(compute)));
    let (profile, place) = rest
        .split_once('@')
        .ok_or_else(|| format!("`{word}` is no instance, expected such as 3g.40gb@0+4"))?;
    let mut instance = json!({"profile": profile});
    let uuid = named
        .map_or_else(|| format!("MIG-{gpu}-{}", place.split('+').next().unwrap_or_default()), str::to_owned);
    instance["uuid"] = json!(uuid);
    if place != "?" {
        instance["placement"] = placement(place)?;
    }
    if let Some(compute) = compute {
        let number = compute.strip_suffix('c').and_then(|n| n.parse::<u8>().ok());
        instance["compute_slices"] =
            json!(number.ok_or_else(|| format!("`{compute}` are no compute slices, expected such as 3c"))?);
    }
    Ok(instance)
}

/// `0+4`: from memory slice 0, 4 of them.
pub(super) fn placement(text: &str) -> Result<Value, String> {
    let parts = text
        .split_once('+')
        .and_then(|(start, size)| Some((start.parse::<u8>().ok()?, size.parse::<u8>().ok()?)));
    let (start, size) = parts.ok_or_else(|| format!("`{text}` is no placement, expected such as 0+4"))?;
    Ok(json!({"start": start, "size": size}))
}

/// `G1` or `G1@0+4`: the scope of a state or scrub.
pub(super) fn scope(word: &str) -> Result<Map<String, Value>, String> {
    let mut members = Map::new();
    let (gpu, place) = word.split_once('@').map_or((word, None), |(gpu, place)| (gpu, Some(place)));
    members.insert("gpu".to_owned(), json!(gpu));
    if let Some(place) = place {
        members.insert("placement".to_owned(), placement(place)?);
    }
    Ok(members)
}

/// `G1`, `G1:3g.40gb@0+4`, `G1:M1` (by its UUID alone), `G1:M1=3g.40gb@0+4`, `2xh100-80gb-hbm3`, each with `*1/4` behind it for a share.
pub(super) fn unit(word: &str) -> Result<Value, String> {
    let (what, share) = word.split_once('*').map_or((word, None), |(what, share)| (what, Some(share)));
    let mut unit = match what.split_once('x').and_then(|(count, sku)| Some((count.parse::<u32>().ok()?, sku)))
    {
        Some((count, sku)) => json!({"sku": sku, "count": count}),
        None => placed(what)?,
    };
    if let Some(share) = share {
        unit["share"] = json!(share);
    }
    Ok(unit)
}

fn placed(what: &str) -> Result<Value, String> {
    let Some((gpu, mig)) = what.split_once(':') else { return Ok(json!({"gpu": what})) };
    let (uuid, layout) = match (mig.split_once('='), mig.contains('@')) {
        (Some((uuid, layout)), _) => (Some(uuid), Some(layout)),
        (None, true) => (None, Some(mig)),
        (None, false) => (Some(mig), None),
    };
    let mut members = Map::new();
    if let Some(uuid) = uuid {
        members.insert("uuid".to_owned(), json!(uuid));
    }
    if let Some(layout) = layout {
        let (profile, place) = layout
            .split_once('@')
            .ok_or_else(|| format!("`{layout}` is no instance, expected such as 3g.40gb@0+4"))?;
        members.insert("profile".to_owned(), json!(profile));
        members.insert("placement".to_owned(), placement(place)?);
    }
    Ok(json!({"gpu": gpu, "mig": members}))
}
