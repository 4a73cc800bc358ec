//! Which fields of a record name a person or a tenant, and whom: those go into a leaf as commitments (L-3).

use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The one member of what stands in a leaf instead of a private value.
pub const COMMITMENT: &str = "$commitment";

/// Whom a value is about. Whoever's key is destroyed is erased.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// `tenant`, `person`, `container`, `customer`, or `site` for what is nobody's in particular.
    pub kind: &'static str,
    /// Its name; empty for the site.
    pub name: String,
}

impl Subject {
    /// The kinds there are.
    pub const KINDS: [&'static str; 5] = ["tenant", "person", "container", "customer", "site"];

    /// A tenant.
    pub fn tenant(name: &str) -> Self {
        Self { kind: "tenant", name: name.to_owned() }
    }

    /// Reads `KIND:NAME`; none for a kind that there is not.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let kind = Self::KINDS.into_iter().find(|known| *known == kind)?;
        Some(Self { kind, name: name.to_owned() })
    }

    /// What is nobody's in particular.
    pub fn site() -> Self {
        Self { kind: "site", name: String::new() }
    }

    /// Of a kind, named by a value: its text, or its JSON where it is none.
    pub fn named(kind: &'static str, value: &Value) -> Self {
        Self { kind, name: value.as_str().map_or_else(|| value.to_string(), str::to_owned) }
    }

    /// The kind of whom a personal field is about (L-3); none where a member of this name is none. Labels are marked by themselves.
    pub fn kind_of_field(name: &str) -> Option<&'static str> {
        match name {
            "user" | "operator" | "approver" => Some("person"),
            "container" => Some("container"),
            _ => None,
        }
    }
}

/// A private value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// Where it stood in the content: a JSON pointer (RFC 6901).
    pub field: String,
    /// Whom it is about.
    pub subject: Subject,
    /// What it was.
    pub value: Value,
}

/// What of a record is public, with a gap in place of each private value; and the private values, in the order of their fields.
pub fn split(kind: &str, body: &[u8]) -> (Value, Vec<Private>) {
    let Ok(record) = serde_json::from_slice::<Value>(body) else {
        // Records are canonical JSON; what is not is named by its digest.
        return (json!({ "record_sha256": sha256(body) }), Vec::new());
    };
    let mut content = match kind {
        "object.applied" => object(record),
        _ if kind.starts_with("document.") => document(record),
        _ => record,
    };
    let mut found = Vec::new();
    let named = Names { is_reason_private: matches!(kind, "parked.decided" | "offsets.rewound") };
    named.walk(&mut content, &mut String::new(), None, &mut found);
    (content, found)
}

/// Numbers of an invoice and terms of a card are between two parties: the whole is one commitment.
fn document(mut record: Value) -> Value {
    let kept = keep(&mut record, &["id", "kind", "number", "period", "status", "tenant"]);
    whole(kept, "document", record)
}

fn object(mut record: Value) -> Value {
    let mut kept = keep(&mut record, &["kind", "version"]);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (kind, id) = (text(record.get("kind")), text(record.get("id")));
    match (kind.as_deref(), id) {
        (Some("Tenant"), Some(id)) => insert(&mut kept, "tenant", id.into()),
        (Some("Customer"), Some(id)) => insert(&mut kept, "customer", id.into()),
        (_, Some(id)) => {
            let tenant = record.pointer("/object/tenant").cloned().filter(Value::is_string);
            tenant.into_iter().for_each(|tenant| insert(&mut kept, "tenant", tenant));
            insert(&mut kept, "id", id.into());
        }
        (_, None) => {}
    }
    whole(kept, "object", record)
}

fn keep(record: &mut Value, names: &[&str]) -> Map<String, Value> {
    let member = |name: &&str| record.get(*name).map(|value| ((*name).to_owned(), value.clone()));
    names.iter().filter_map(member).collect()
}

fn insert(into: &mut Map<String, Value>, name: &str, value: Value) {
    into.insert(name.to_owned(), value);
}

fn whole(mut kept: Map<String, Value>, name: &str, record: Value) -> Value {
    insert(&mut kept, name, record);
    Value::Object(kept)
}

struct Names {
    is_reason_private: bool,
}

impl Names {
    /// Members are visited in the order of their names, elements in theirs; numbers become text on the way.
    fn walk(&self, value: &mut Value, path: &mut String, tenant: Option<&str>, found: &mut Vec<Private>) {
        let length = path.len();
        match value {
            Value::Object(members) => {
                let own = members.get("tenant").and_then(Value::as_str).map(str::to_owned);
                let tenant = own.as_deref().or(tenant);
                // They lie in order.
                for (name, member) in members.iter_mut() {
                    path.push('/');
                    path.push_str(&escaped(name));
                    match self.subject(name, member, tenant) {
                        Some(subject) => {
                            let value = std::mem::replace(member, gap());
                            found.push(Private { field: path.clone(), subject, value });
                        }
                        None => self.walk(member, path, tenant, found),
                    }
                    path.truncate(length);
                }
            }
            Value::Array(elements) => {
                for (place, element) in elements.iter_mut().enumerate() {
                    path.push('/');
                    path.push_str(&place.to_string());
                    self.walk(element, path, tenant, found);
                    path.truncate(length);
                }
            }
            Value::Number(number) => *value = Value::String(number.to_string()),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    /// Whom a member is about; none where it is public.
    fn subject(&self, name: &str, value: &Value, tenant: Option<&str>) -> Option<Subject> {
        if value.is_null() {
            return None;
        }
        let of_tenant = || tenant.map_or_else(Subject::site, Subject::tenant);
        match name {
            "tenant" => Some(Subject::named("tenant", value)),
            "customer" => Some(Subject::named("customer", value)),
            "principal" => Some(Subject::named("person", value)),
            "project" | "labels" | "document" | "object" => Some(of_tenant()),
            "reason" if self.is_reason_private => Some(Subject::site()),
            _ => Subject::kind_of_field(name).map(|kind| Subject::named(kind, value)),
        }
    }
}

/// What stands in place of a private value until its commitment is known.
fn gap() -> Value {
    json!({ COMMITMENT: "" })
}

fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) {
        return name.replace('~', "~0").replace('/', "~1").into();
    }
    name.into()
}

/// Hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    crate::hex(&sha2::Sha256::digest(bytes))
}

/// Fields of a leaf's content that are commitments, in the order in which [`split`] finds them.
pub fn fields(content: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(content, &mut String::new(), &mut found);
    found
}

fn collect(value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match value {
        Value::Object(members) if members.len() == 1 && members.contains_key(COMMITMENT) => {
            found.push(path.clone());
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| name.as_str());
            for (name, member) in members {
                path.push('/');
                path.push_str(&escaped(name));
                collect(member, path, found);
                path.truncate(length);
            }
        }
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                path.push('/');
                path.push_str(&place.to_string());
                collect(element, path, found);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_names_nobody_in_public_l_3() {
        let body = br#"{"data":{"allocation":"a-1","labels":{"team":"red"},"project":"vision","runtime":{"slurm_job":"7","user":"alice"},"tenant":"acme","units":[{"gpu":"GPU-1","mig":{"placement":{"size":4,"start":0}}}]},"id":"e","source":"/s","type":"gpuledger.allocation.granted.v1"}"#;
        let (content, found) = split("gpuledger.allocation.granted.v1", body);
        let text = content.to_string();
        for word in ["acme", "vision", "alice", "red", "team"] {
            assert!(!text.contains(word), "{word} stands in {text}");
        }
        let named: Vec<(&str, &str, &str)> =
            found.iter().map(|p| (p.field.as_str(), p.subject.kind, p.subject.name.as_str())).collect();
        assert_eq!(
            named,
            [
                ("/data/labels", "tenant", "acme"),
                ("/data/project", "tenant", "acme"),
                ("/data/runtime/user", "person", "alice"),
                ("/data/tenant", "tenant", "acme"),
            ]
        );
        assert_eq!(fields(&content), found.iter().map(|p| p.field.clone()).collect::<Vec<_>>());
        assert_eq!(
            content.pointer("/data/units/0/mig/placement/size"),
            Some(&json!("4")),
            "numbers are text"
        );
    }

    #[test]
    fn a_document_and_an_object_are_one_commitment_each_l_3() {
        let (content, found) = split(
            "document.issued",
            br#"{"id":"d","tenant":"acme","total":"12","customer":{"name":"Acme"},"status":"issued"}"#,
        );
        assert_eq!(content["id"], json!("d"));
        assert!(!content.to_string().contains("Acme") && !content.to_string().contains("12"));
        assert_eq!(found.len(), 2);
        let (content, found) = split(
            "object.applied",
            br#"{"kind":"Tenant","id":"acme","version":1,"object":{"name":"Acme AG"}}"#,
        );
        assert!(!content.to_string().contains("acme") && !content.to_string().contains("Acme"));
        assert!(found.iter().all(|private| private.subject == Subject::tenant("acme")));
    }

    #[test]
    fn what_is_no_json_is_named_by_its_digest() {
        let (content, found) = split("odd", b"\xff");
        assert_eq!(content["record_sha256"], json!(sha256(b"\xff")));
        assert!(found.is_empty());
    }

    #[test]
    fn a_subject_is_a_kind_and_a_name() {
        assert_eq!(Subject::parse("person:a:b"), Some(Subject { kind: "person", name: "a:b".to_owned() }));
        assert_eq!(Subject::parse("alice"), None);
        assert_eq!(Subject::parse("dog:rex"), None);
    }
}
