//! Openings: salt and value of a commitment, for who may see it. In a proof file they travel as `extra`, beside an export as `salts.ndjson`.

use crate::keys::{KeyError, Seal, commitment};
use crate::leaf::Leaf;
use crate::private::{COMMITMENT, fields, split};
use crate::sealed::may_be_sealed;
use gpuledger_storage::subject_keys::SubjectRow;
use gpuledger_wire::canonical_json;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What opens one commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which leaf.
    pub index: u64,
    /// Which field of its content: a JSON pointer.
    pub field: String,
    /// Its salt.
    pub salt: [u8; 32],
    /// The value; none: whoever has it by other means tries it.
    pub value: Option<Value>,
}

impl Opening {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let mut value =
            json!({ "index": self.index.to_string(), "field": self.field, "salt": crate::hex(&self.salt) });
        if let Some(opened) = &self.value {
            value["value"] = opened.clone();
        }
        value
    }

    /// Reads what [`Opening::to_json`] wrote.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            index: value.get("index")?.as_str()?.parse().ok()?,
            field: value.get("field")?.as_str()?.to_owned(),
            salt: crate::unhex(value.get("salt")?.as_str()?)?.try_into().ok()?,
            value: value.get("value").cloned(),
        })
    }

    /// Whether the leaf's content commits to the value. Without a value: whether there is such a commitment.
    pub fn opens(&self, content: &Value) -> bool {
        let Some(bound) =
            content.pointer(&self.field).and_then(|v| v.get(COMMITMENT)).and_then(Value::as_str)
        else {
            return false;
        };
        let opened = |value| crate::hex(&commitment(&self.salt, &canonical_json(value))) == bound;
        self.value.as_ref().is_none_or(opened)
    }
}

/// Openings of a leaf for somebody who may see `subjects`: `numbers` are whose keys salt its fields, in their order; `record` is what it was composed of, opened, where
/// values are wanted too. Erased subjects are left out, and so are values in which somebody is erased.
///
/// # Errors
/// A key cannot be unsealed.
pub fn openings(
    leaf: &Leaf,
    numbers: &[i64],
    subjects: &[SubjectRow],
    seal: &Seal,
    record: Option<(&str, &[u8])>,
) -> Result<Vec<Opening>, KeyError> {
    let Some(index) = leaf.index() else { return Ok(Vec::new()) };
    let mut keys = BTreeMap::new();
    for subject in subjects {
        if let Some(stored) = &subject.key {
            keys.insert(subject.no, seal.open(stored)?);
        }
    }
    let mut values: BTreeMap<String, Value> = match record {
        Some((kind, body)) => {
            let is_whole = |value: &Value| !may_be_sealed(value.to_string().as_bytes());
            let values = split(kind, body).1.into_iter().filter(|private| is_whole(&private.value));
            values.map(|private| (private.field, private.value)).collect()
        }
        None => BTreeMap::new(),
    };
    let mut found = Vec::new();
    for (field, number) in fields(leaf.content()).into_iter().zip(numbers) {
        if let Some(key) = keys.get(number) {
            let (salt, value) = (key.salt(index, &field), values.remove(&field));
            found.push(Opening { index, field, salt, value });
        }
    }
    Ok(found)
}

/// The `extra` of a proof file: the leaf itself and its openings. Nothing vouches for it; the proof and the commitments tell whether it is right.
pub fn extra(leaf: &[u8], openings: &[Opening]) -> Vec<u8> {
    let openings: Vec<Value> = openings.iter().map(Opening::to_json).collect();
    canonical_json(&json!({ "leaf": String::from_utf8_lossy(leaf), "openings": openings }))
}

/// Reads an `extra`.
pub fn read_extra(extra: &[u8]) -> Option<(Vec<u8>, Vec<Opening>)> {
    let value: Value = serde_json::from_slice(extra).ok()?;
    let leaf = value.get("leaf")?.as_str()?.as_bytes().to_vec();
    let openings: Option<Vec<Opening>> =
        value.get("openings")?.as_array()?.iter().map(Opening::from_json).collect();
    Some((leaf, openings?))
}
