//! The bytes of a leaf: canonical JSON (RFC 8785), numbers as text, version and type first (L-3).
//!
//! `["gpuledger.audit.leaf.v1", TYPE, {"content": …, "fact_seq": …, "index": …, "links": […], "recorded_at": …, "sequenced_at": …}]`

use crate::keys::{SubjectKey, commitment};
use crate::links::{Link, Text};
use crate::private::{COMMITMENT, Private, sha256};
use gpuledger_domain::time::Instant;
use gpuledger_tlog::tile::ENTRY_BYTES_MAX;
use gpuledger_wire::canonical_json;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// First element of every leaf.
pub const VERSION: &str = "gpuledger.audit.leaf.v1";
/// Type of the leaf that says only that the log lives.
pub const HEARTBEAT: &str = "gpuledger.audit.heartbeat.v1";
/// Where a tenant stands in an event: it is kept even where the rest is only a digest, so that the leaf is still the tenant's.
const TENANT: &str = "/data/tenant";

/// What a leaf is composed of.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its place in the log.
    pub index: u64,
    /// Event type, or what else was recorded.
    pub kind: String,
    /// The fact, by its order of acceptance.
    pub fact_seq: Option<i64>,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// When it got its place.
    pub sequenced_at: Instant,
    /// Chains it belongs to.
    pub links: Vec<Link>,
    /// What is public of it, with gaps.
    pub content: Value,
}

/// The leaf's bytes, its gaps filled with commitments: `private` each with its subject's key, in the order of their fields. Larger content than an entry of
/// a log can have is named by its digest; the second value says how many of `private`, from the first on, stand in the leaf then.
pub fn encode(mut draft: Draft, private: &[(&Private, &SubjectKey)]) -> (Vec<u8>, Vec<usize>) {
    for (private, key) in private {
        fill(&mut draft.content, private, key, draft.index);
    }
    let all = (0..private.len()).collect();
    let bytes = write(&draft, &draft.content);
    if bytes.len() <= ENTRY_BYTES_MAX {
        return (bytes, all);
    }
    let whole = canonical_json(&draft.content);
    let mut digest = json!({ "content_bytes": whole.len().to_string(), "content_sha256": sha256(&whole) });
    let tenant = private.iter().position(|(private, _)| private.field == TENANT);
    if tenant.is_some() {
        digest["data"] = json!({ "tenant": draft.content.pointer(TENANT) });
    }
    (write(&draft, &digest), tenant.into_iter().collect())
}

fn fill(content: &mut Value, private: &Private, key: &SubjectKey, index: u64) {
    let salt = key.salt(index, &private.field);
    let bound = commitment(&salt, &canonical(&private.value));
    if let Some(gap) = content.pointer_mut(&private.field) {
        *gap = json!({ COMMITMENT: crate::hex(&bound) });
    }
}

/// Members in the order of RFC 8785.
#[derive(Serialize)]
struct Body<'a> {
    content: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact_seq: Option<Text<i64>>,
    index: Text<u64>,
    #[serde(skip_serializing_if = "<[Link]>::is_empty")]
    links: &'a [Link],
    recorded_at: Text<Instant>,
    sequenced_at: Text<Instant>,
}

fn write(draft: &Draft, content: &Value) -> Vec<u8> {
    let body = Body {
        content,
        fact_seq: draft.fact_seq.map(Text),
        index: Text(draft.index),
        links: &draft.links,
        recorded_at: Text(draft.recorded_at),
        sequenced_at: Text(draft.sequenced_at),
    };
    let leaf = (VERSION, draft.kind.as_str(), body);
    let written = if is_plain(content) {
        serde_json::to_vec(&leaf)
    } else {
        serde_json::to_value(&leaf).map(|v| canonical_json(&v))
    };
    // Texts, lists and maps with names can always be written.
    written.unwrap_or_default()
}

/// A value's canonical bytes (RFC 8785).
fn canonical(value: &Value) -> Vec<u8> {
    if is_plain(value) { serde_json::to_vec(value).unwrap_or_default() } else { canonical_json(value) }
}

/// Without numbers and with plain names the usual writer, with its sorted members, writes what RFC 8785 asks for, and does so in half the time.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(_) => false,
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Array(elements) => elements.iter().all(is_plain),
        Value::Object(members) => members.iter().all(|(name, member)| name.is_ascii() && is_plain(member)),
    }
}

/// What a reader of many leaves looks at; the content is passed over.
#[derive(Debug, Deserialize)]
pub struct Outline<'a>(
    #[serde(borrow)] pub Cow<'a, str>,
    #[serde(borrow)] pub Cow<'a, str>,
    #[serde(borrow)] pub Frame<'a>,
);

/// What stands around a leaf's content.
#[derive(Debug, Deserialize)]
pub struct Frame<'a> {
    /// Passed over.
    #[serde(rename = "content")]
    _content: IgnoredAny,
    /// Its place, in decimal.
    #[serde(borrow)]
    pub index: Cow<'a, str>,
    /// Chains it belongs to.
    #[serde(borrow, default)]
    pub links: Vec<LinkText<'a>>,
    /// RFC 3339.
    #[serde(borrow)]
    pub recorded_at: Cow<'a, str>,
    /// RFC 3339.
    #[serde(borrow)]
    pub sequenced_at: Cow<'a, str>,
}

/// A link as it stands in a leaf.
#[derive(Debug, Deserialize)]
pub struct LinkText<'a> {
    /// Which GPU.
    #[serde(borrow)]
    pub gpu: Cow<'a, str>,
    /// First slice.
    #[serde(borrow)]
    pub start: Cow<'a, str>,
    /// How many.
    #[serde(borrow)]
    pub size: Cow<'a, str>,
    /// Leaves of the chain before.
    #[serde(borrow)]
    pub seq: Cow<'a, str>,
    /// The one before.
    #[serde(borrow, default)]
    pub prev: Option<Cow<'a, str>>,
}

/// A leaf taken apart, content included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Type.
    pub kind: String,
    /// Everything else.
    pub body: Value,
}

impl Leaf {
    /// Reads a leaf; none where the bytes are none of ours.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, kind, body): (String, String, Value) = serde_json::from_slice(bytes).ok()?;
        (version == VERSION && body.is_object()).then_some(Self { kind, body })
    }

    /// Its content.
    pub fn content(&self) -> &Value {
        self.body.get("content").unwrap_or(&Value::Null)
    }

    /// Its place in the log, as it says itself.
    pub fn index(&self) -> Option<u64> {
        self.body.get("index")?.as_str()?.parse().ok()
    }

    /// When it was recorded.
    pub fn recorded_at(&self) -> Option<Instant> {
        gpuledger_wire::time::parse_time(self.body.get("recorded_at")?.as_str()?).ok()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::keys::Secret;
    use crate::opening::Opening;
    use crate::private::{fields, split};

    pub(crate) const GRANT: &str = r#"{"data":{"allocation":"a-1","tenant":"acme","units":[{"gpu":"GPU-1"}]},"id":"e","source":"/s","type":"gpuledger.allocation.granted.v1"}"#;

    pub(crate) fn composed(index: u64, body: &str, links: Vec<Link>) -> Vec<u8> {
        let (content, private) = split("gpuledger.allocation.granted.v1", body.as_bytes());
        let key = SubjectKey::new(&Secret::parse(&"5".repeat(64)).unwrap());
        let private: Vec<_> = private.iter().map(|one| (one, &key)).collect();
        let at = Instant::from_micros(1_790_000_000_000_000 + i64::try_from(index).unwrap());
        let kind = "gpuledger.allocation.granted.v1".to_owned();
        encode(
            Draft { index, kind, fact_seq: Some(9), recorded_at: at, sequenced_at: at, links, content },
            &private,
        )
        .0
    }

    #[test]
    fn version_and_type_come_first_and_the_rest_is_canonical_l_3() {
        let leaf = composed(4, GRANT, Vec::new());
        let text = String::from_utf8(leaf.clone()).unwrap();
        assert!(
            text.starts_with(r#"["gpuledger.audit.leaf.v1","gpuledger.allocation.granted.v1",{"content":"#),
            "{text}"
        );
        assert!(!text.contains("acme"), "{text}");
        assert_eq!(canonical_json(&serde_json::from_slice(&leaf).unwrap()), leaf);
        let read = Leaf::parse(&leaf).unwrap();
        assert_eq!((read.index(), read.body["fact_seq"].as_str()), (Some(4), Some("9")));
    }

    #[test]
    fn odd_names_and_texts_are_canonical_too_l_3() {
        let odd = r#"{"data":{"\u20ac":"1","\ud83d\ude00":"2","\ufb33":"3","b":"\u0001\n\u007f\"","a":[null,true,{"z":"","y":1.5}],"units":[{"gpu":"\u00e9"}]},"type":"t"}"#;
        for body in [odd, GRANT] {
            let places = crate::links::places(&serde_json::from_str(body).unwrap());
            let leaf = composed(1, body, crate::links::link(1, &places, &mut Default::default()));
            assert_eq!(canonical_json(&serde_json::from_slice(&leaf).unwrap()), leaf);
        }
    }

    #[test]
    fn a_salt_opens_its_commitment_and_no_other_l_3() {
        let leaf = Leaf::parse(&composed(4, GRANT, Vec::new())).unwrap();
        let key = SubjectKey::new(&Secret::parse(&"5".repeat(64)).unwrap());
        let opening = |index, value: &str| Opening {
            index,
            field: "/data/tenant".to_owned(),
            salt: key.salt(index, "/data/tenant"),
            value: Some(value.into()),
        };
        assert!(opening(4, "acme").opens(leaf.content()));
        assert!(!opening(4, "other").opens(leaf.content()));
        assert!(!opening(5, "acme").opens(leaf.content()));
    }

    #[test]
    fn what_is_too_large_is_named_by_its_digest_and_still_the_tenants_l_3() {
        let body = GRANT.replace("a-1", &"x".repeat(70_000));
        let bytes = composed(0, &body, Vec::new());
        assert!(bytes.len() < 1_000);
        let leaf = Leaf::parse(&bytes).unwrap();
        assert_eq!(fields(leaf.content()), ["/data/tenant"]);
        assert_eq!(leaf.content()["content_sha256"].as_str().map(str::len), Some(64));
    }
}
