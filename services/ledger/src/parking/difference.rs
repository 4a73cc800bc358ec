//! In what two events differ, member by member.

use serde_json::Value;
use std::collections::BTreeSet;

/// One member that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `time`, `data.units[0].gpu`.
    pub path: String,
    /// What the parked event says; none: nothing.
    pub parked: Option<Value>,
    /// What stands; none: nothing.
    pub stands: Option<Value>,
}

/// The members that differ, in order of their paths. Lists are compared place by place.
pub fn differences(parked: &Value, stands: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(parked), Some(stands), &mut found);
    found
}

fn compare(path: &str, parked: Option<&Value>, stands: Option<&Value>, found: &mut Vec<Difference>) {
    match (parked, stands) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&path, one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for place in 0..one.len().max(other.len()) {
                compare(&format!("{path}[{place}]"), one.get(place), other.get(place), found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => {
            found.push(Difference { path: path.to_owned(), parked: one.cloned(), stands: other.cloned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_member_that_differs_is_named_by_its_path() {
        let parked =
            json!({"time": "t", "data": {"units": [{"gpu": "G1"}, {"gpu": "G2"}], "tenant": "acme"}});
        let stands =
            json!({"time": "t", "data": {"units": [{"gpu": "G3"}], "tenant": "acme", "class": "spot"}});
        let found = differences(&parked, &stands);
        let texts: Vec<String> = found
            .iter()
            .map(|d| {
                format!(
                    "{} {} {}",
                    d.path,
                    d.parked.clone().unwrap_or_default(),
                    d.stands.clone().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            texts,
            [
                r#"data.class null "spot""#,
                r#"data.units[0].gpu "G1" "G3""#,
                r#"data.units[1] {"gpu":"G2"} null"#
            ]
        );
        assert!(differences(&parked, &parked).is_empty());
    }
}
