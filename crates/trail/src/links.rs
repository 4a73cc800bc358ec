//! Chains of residue domains (L-5): a leaf points at the leaf before it of each memory slice that it touches, in log order. Whoever follows the chain of
//! a slice sees every allocation, release and scrub of it, and that none is left out.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Memory slices that a GPU can have. A whole GPU is all eight numbers, whatever its model: the chain needs no inventory.
pub const SLICES: u8 = 8;

/// How many leaves touched each slice of a GPU, and the last of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Leaves so far.
    pub counts: [i64; 8],
    /// The last of them; nothing where there is none.
    pub lasts: [i64; 8],
}

/// Slices of a GPU, as bits.
pub type Places = BTreeMap<String, u8>;

/// Neighbouring slices whose chains stand alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Which GPU.
    pub gpu: String,
    /// First slice.
    pub start: u8,
    /// How many.
    pub size: u8,
    /// Leaves of the chain before this one.
    pub seq: i64,
    /// The one before; none: this is the first.
    pub prev: Option<i64>,
}

impl Serialize for Link {
    /// As it stands in a leaf: numbers as text, members in the order of RFC 8785.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("gpu", &self.gpu)?;
        if let Some(prev) = self.prev {
            members.serialize_entry("prev", &Text(prev))?;
        }
        members.serialize_entry("seq", &Text(self.seq))?;
        members.serialize_entry("size", &Text(self.size))?;
        members.serialize_entry("start", &Text(self.start))?;
        members.end()
    }
}

/// A value as its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The slices that a record names itself.
pub fn places(body: &Value) -> Places {
    let mut found = Places::new();
    let Some(data) = body.get("data") else { return found };
    add(&mut found, data, data.get("placement"));
    for unit in data.get("units").and_then(Value::as_array).into_iter().flatten() {
        let placement = unit.pointer("/mig/placement").or_else(|| unit.get("placement"));
        add(&mut found, unit, placement);
    }
    found
}

fn add(found: &mut Places, at: &Value, placement: Option<&Value>) {
    let Some(gpu) = at.get("gpu").and_then(Value::as_str) else { return };
    let number = |name| {
        let value = placement?.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok()).and_then(|n| u8::try_from(n).ok())
    };
    let slices = match (number("start"), number("size")) {
        (Some(start), Some(size)) => mask(start, size),
        _ => None,
    };
    // What is not placed within the eight may be anywhere on the GPU.
    *found.entry(gpu.to_owned()).or_default() |= slices.unwrap_or(u8::MAX);
}

fn mask(start: u8, size: u8) -> Option<u8> {
    let end = start.checked_add(size).filter(|end| *end <= SLICES && size > 0)?;
    Some((start..end).fold(0, |bits, slice| bits | 1 << slice))
}

/// The allocations whose slices a record touches without naming them.
pub fn allocation(kind: &str, body: &Value) -> Option<String> {
    let is_about = matches!(
        kind,
        "gpuledger.allocation.released.v1"
            | "gpuledger.allocation.transferred.v1"
            | "gpuledger.allocation.state.v1"
    );
    let name = body.pointer("/data/allocation").filter(|_| is_about)?;
    name.as_str().map(str::to_owned)
}

/// Links of the leaf `index`, and the chains after it.
pub fn link(index: i64, places: &Places, chains: &mut BTreeMap<String, Ends>) -> Vec<Link> {
    let mut links = Vec::new();
    for (gpu, slices) in places {
        let ends = chains.entry(gpu.clone()).or_default();
        let mut open: Option<Link> = None;
        let counted = ends.counts.iter_mut().zip(&mut ends.lasts);
        for (slice, (count, last)) in (0..SLICES).zip(counted) {
            if slices >> slice & 1 == 0 {
                links.extend(open.take());
                continue;
            }
            let (seq, prev) = (*count, (*count > 0).then_some(*last));
            (*count, *last) = (*count + 1, index);
            match &mut open {
                Some(link) if link.seq == seq && link.prev == prev => link.size += 1,
                _ => {
                    links.extend(open.take());
                    open = Some(Link { gpu: gpu.clone(), start: slice, size: 1, seq, prev });
                }
            }
        }
        links.extend(open);
    }
    links
}

/// Names of the GPUs of several places.
pub fn gpus<'a>(places: impl IntoIterator<Item = &'a Places>) -> BTreeSet<String> {
    places.into_iter().flat_map(BTreeMap::keys).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grant(units: Value) -> Value {
        json!({ "data": { "units": units } })
    }

    #[test]
    fn a_whole_gpu_is_one_link_until_its_slices_part_l_5() {
        let mut chains = BTreeMap::new();
        let whole = places(&grant(json!([{ "gpu": "g" }])));
        let part = places(&grant(json!([{ "gpu": "g", "mig": { "placement": { "start": 4, "size": 4 } } }])));
        let spans =
            |links: Vec<Link>| links.iter().map(|l| (l.start, l.size, l.seq, l.prev)).collect::<Vec<_>>();
        assert_eq!(spans(link(3, &whole, &mut chains)), [(0, 8, 0, None)]);
        assert_eq!(spans(link(5, &part, &mut chains)), [(4, 4, 1, Some(3))]);
        assert_eq!(spans(link(9, &whole, &mut chains)), [(0, 4, 1, Some(3)), (4, 4, 2, Some(5))]);
    }

    #[test]
    fn what_is_placed_nowhere_may_be_anywhere_l_5() {
        let of = |placement: Value| places(&json!({ "data": { "gpu": "g", "placement": placement } }))["g"];
        assert_eq!(of(json!({ "start": "0", "size": "2" })), 0b11);
        assert_eq!(of(json!({ "start": 7, "size": 2 })), 0xff);
        assert_eq!(of(Value::Null), 0xff);
        assert!(places(&grant(json!([{ "sku": "h100", "count": 2 }]))).is_empty());
    }

    #[test]
    fn a_release_names_its_allocation_l_5() {
        let body = json!({ "data": { "allocation": "a-1" } });
        assert_eq!(allocation("gpuledger.allocation.released.v1", &body).as_deref(), Some("a-1"));
        assert_eq!(allocation("gpuledger.allocation.granted.v1", &body), None);
    }
}
