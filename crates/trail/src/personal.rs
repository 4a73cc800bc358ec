//! Personal fields of a JSON text, found where they stand: whatever else is in the text stays byte by byte as it came (L-3).

use crate::private::Subject;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt;

/// Levels that are looked into. An event that is read has fewer; what is deeper counts as no JSON.
const LEVELS: u32 = 128;
/// The member whose members are labels.
const LABELS: &str = "labels";

/// Which labels name a person besides those that are called like a personal field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// Those of these names.
    Names(BTreeSet<String>),
    /// Any: a label that is sealed was marked when it came.
    All,
}

impl Marked {
    fn is_personal(&self, name: &str, is_label: bool) -> bool {
        let is_marked = || match self {
            Self::Names(names) => names.contains(name),
            Self::All => true,
        };
        Subject::kind_of_field(name).is_some() || is_label && is_marked()
    }
}

/// Whom a personal field is about.
fn subject(name: &str, text: &str) -> Subject {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    Subject::named(Subject::kind_of_field(name).unwrap_or("person"), &value)
}

/// A personal field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'t> {
    /// Its value as it stands in the text.
    pub value: &'t str,
    /// Whom it is about.
    pub subject: Subject,
}

/// The personal fields of a text, in their order; none where it is no JSON.
pub fn find<'t>(text: &'t str, marked: &Marked) -> Option<Vec<Field<'t>>> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut found = Vec::new();
    walk(text, LEVELS, false, marked, &mut found)?;
    Some(found)
}

/// Whether a value has personal fields.
pub fn is_in(value: &Value, marked: &Marked) -> bool {
    has(value, false, marked)
}

fn has(value: &Value, is_labels: bool, marked: &Marked) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| {
            let is_personal = !member.is_null() && marked.is_personal(name, is_labels);
            is_personal || has(member, name == LABELS, marked)
        }),
        Value::Array(elements) => elements.iter().any(|element| has(element, false, marked)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The text with other values in place of its personal fields; none: the field stays.
pub fn replaced<E>(
    text: &str,
    fields: &[Field<'_>],
    mut with: impl FnMut(&Field<'_>) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    for field in fields {
        // A field lies within the text, behind the one before.
        let at = field.value.as_ptr().addr() - rest.as_ptr().addr();
        let (before, after) = rest.split_at(at);
        new.push_str(before);
        match with(field)? {
            Some(value) => new.push_str(&value),
            None => new.push_str(field.value),
        }
        rest = after.split_at(field.value.len()).1;
    }
    new.push_str(rest);
    Ok(new)
}

fn walk<'t>(
    text: &'t str,
    levels: u32,
    is_labels: bool,
    marked: &Marked,
    found: &mut Vec<Field<'t>>,
) -> Option<()> {
    let deeper = levels.checked_sub(1)?;
    match text.trim_start().as_bytes().first()? {
        b'{' => {
            for (name, member) in serde_json::from_str::<Members<'t>>(text).ok()?.0 {
                let value = member.get();
                if value != "null" && marked.is_personal(&name, is_labels) {
                    found.push(Field { value, subject: subject(&name, value) });
                } else {
                    walk(value, deeper, name == LABELS, marked, found)?;
                }
            }
        }
        b'[' => {
            for element in serde_json::from_str::<Vec<&'t RawValue>>(text).ok()? {
                walk(element.get(), deeper, false, marked, found)?;
            }
        }
        _ => {}
    }
    Some(())
}

/// Members in their order, those that stand twice too.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(names: &[&str]) -> Marked {
        Marked::Names(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn found(text: &str, marked: &Marked) -> Option<Vec<String>> {
        let name =
            |field: Field<'_>| format!("{}:{} {}", field.subject.kind, field.subject.name, field.value);
        Some(find(text, marked)?.into_iter().map(name).collect())
    }

    #[test]
    fn fields_are_personal_by_name_wherever_they_stand_and_labels_where_they_are_marked_l_3() {
        let text = r#" {"data": {"operator" : "bob", "approver":null, "team": "blue", "runtime":{"user":"al\u0069ce"},
            "processes": [{"container":"c1"}, {"container": {"id": 1}}], "labels":{"user":"eve","owner":"zoë","team":"red"}}, "owner": "me"}"#;
        let named = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let always = [
            "person:bob \"bob\"",
            "person:alice \"al\\u0069ce\"",
            "container:c1 \"c1\"",
            "container:{\"id\":1} {\"id\": 1}",
            "person:eve \"eve\"",
        ];
        assert_eq!(found(text, &marked(&[])), named(&always));
        let with_owner = [&always[..], &["person:zoë \"zoë\""]].concat();
        assert_eq!(found(text, &marked(&["owner"])), named(&with_owner));
        for marks in [marked(&[]), marked(&["owner"])] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(is_in(&value, &marks));
        }
        assert!(!is_in(&serde_json::json!({"operator": null, "labels": {"owner": "zoë"}}), &marked(&[])));
        assert!(is_in(&serde_json::json!([{"labels": {"owner": "zoë"}}]), &marked(&["owner"])));
    }

    #[test]
    fn whatever_is_not_personal_stays_as_it_came() {
        let text = "{ \"n\": 1e999, \"n\":2, \"user\" : 7 , \"user\":\"x\"\n}";
        let fields = find(text, &Marked::All).unwrap();
        let new =
            replaced(text, &fields, |field| Ok::<_, ()>((field.value == "7").then(|| "\"?\"".to_owned())));
        assert_eq!(new.unwrap(), "{ \"n\": 1e999, \"n\":2, \"user\" : \"?\" , \"user\":\"x\"\n}");
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_said_to_be_none() {
        for text in ["", "{", "{\"user\":\"alice\"", "user=alice", "[1,]", "{} x"] {
            assert_eq!(find(text, &Marked::All), None, "{text}");
        }
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(find(&nested(127), &Marked::All), Some(Vec::new()));
        assert_eq!(find(&nested(100_000), &Marked::All), None);
    }
}
