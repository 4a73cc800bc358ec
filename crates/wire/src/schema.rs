//! The machine-readable form of the contract: what stands in `schemas/`.

use crate::event::DATA_SCHEMAS;
use crate::findings::FINDINGS;
use crate::text::Name;
use crate::time::Time;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Every generated file: its path below `schemas/` and its text.
pub fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = DATA_SCHEMAS
        .iter()
        .map(|(type_name, data)| (format!("events/{type_name}.json"), text(&event_schema(type_name, *data))))
        .collect();
    files.push(("findings.json".to_owned(), text(&findings())));
    files
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// JSON Schema (2020-12) of one event type, envelope and data. It says what a consumer takes; members it does not name are
/// ignored there, and a fault of the producer that sends them.
fn event_schema(type_name: &str, data: fn(&mut schemars::SchemaGenerator) -> schemars::Schema) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let data = data(&mut generator).to_value();
    let name = generator.subschema_for::<Name>().to_value();
    let time = generator.subschema_for::<Time>().to_value();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": type_name,
        "type": "object",
        "required": ["specversion", "id", "source", "type", "time", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": name,
            "source": name,
            "type": {"const": type_name},
            "time": time,
            "datacontenttype": {"type": ["string", "null"], "pattern": "^([Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/[Jj][Ss][Oo][Nn]|[^;]*\\+[Jj][Ss][Oo][Nn])\\s*(;.*)?$"},
            "data": data,
        },
        "not": {"required": ["data_base64"]},
        "$defs": generator.take_definitions(true),
    });
    open(&mut schema);
    schema
}

/// Consumers ignore unknown members: an object is closed only where its members' names follow a pattern.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
            if closed && !members.contains_key("patternProperties") {
                members.remove("additionalProperties");
            }
            if members.get("unevaluatedProperties") == Some(&Value::Bool(false)) {
                members.remove("unevaluatedProperties");
            }
            members.values_mut().for_each(open);
        }
        Value::Array(elements) => elements.iter_mut().for_each(open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The kinds of findings with severity and threshold.
fn findings() -> Value {
    let kinds: Map<String, Value> = FINDINGS
        .iter()
        .map(|finding| {
            (
                finding.kind.to_owned(),
                json!({"severity": finding.severity.as_str(), "threshold": finding.threshold}),
            )
        })
        .collect();
    json!({"title": "Kinds of findings, with the severity of each and the threshold from which it is raised", "kinds": kinds})
}

#[cfg(test)]
mod tests;
