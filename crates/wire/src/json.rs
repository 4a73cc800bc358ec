//! JSON read strictly: no member twice, no NUL, whole numbers kept exactly; and the place where reading stopped.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::fmt::{self, Write as _};

/// Whole numbers beyond this are kept as text, which is how they travel: 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// Why bytes are no JSON.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// JSON path of the place, empty for the whole.
    pub(crate) path: String,
    /// What the reader says.
    pub(crate) problem: String,
    /// Short texts of the outermost object and of its `data`, read before the stop: `id`, `data.allocation`.
    pub(crate) seen: Map<String, Value>,
}

/// Reads one JSON value. Numbers that are whole become whole (`1.0` is `1`); beyond 2^53 they become text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Stopped> {
    let state = RefCell::new(State::default());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(&state).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let state = state.take();
        Stopped { path: state.path(), problem: error.to_string(), seen: state.seen }
    })
}

#[derive(Default)]
struct State {
    place: Vec<Step>,
    seen: Map<String, Value>,
}

enum Step {
    Member(String),
    Element(usize),
}

impl State {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.place {
            let written = match step {
                Step::Member(name) if path.is_empty() => write!(path, "{name}"),
                Step::Member(name) => write!(path, ".{name}"),
                Step::Element(index) => write!(path, "[{index}]"),
            };
            debug_assert!(written.is_ok(), "writing to a string does not fail");
        }
        path
    }

    /// Keeps short texts near the top, so that an event that breaks off later still has a name.
    fn keep(&mut self, value: &Value) {
        let key = match self.place.as_slice() {
            [Step::Member(name)] => name.clone(),
            [Step::Member(outer), Step::Member(name)] if outer == "data" => format!("data.{name}"),
            _ => return,
        };
        if value.as_str().is_some_and(|text| text.len() <= 512) {
            self.seen.insert(key, value.clone());
        }
    }
}

#[derive(Clone, Copy)]
struct Strict<'a>(&'a RefCell<State>);

impl Strict<'_> {
    fn enter(self, step: Step) {
        self.0.borrow_mut().place.push(step);
    }

    fn leave(self, value: &Value) {
        let mut state = self.0.borrow_mut();
        state.keep(value);
        state.place.pop();
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(if value.unsigned_abs() > MAX_EXACT { Value::String(value.to_string()) } else { value.into() })
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(if value > MAX_EXACT { Value::String(value.to_string()) } else { value.into() })
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // 2^53 as a float: beyond it a float says nothing exact.
        const LIMIT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= LIMIT {
            return format!("{value:.0}").parse::<i64>().map(Value::from).map_err(E::custom);
        }
        Ok(Value::from(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        if text.contains('\0') {
            return Err(E::custom("text holds the character U+0000, which is not allowed"));
        }
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.enter(Step::Element(list.len()));
            let Some(value) = elements.next_element_seed(self)? else {
                self.leave(&Value::Null);
                return Ok(Value::Array(list));
            };
            self.leave(&value);
            list.push(value);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.enter(Step::Member(name.clone()));
            if name.contains('\0') {
                return Err(de::Error::custom(
                    "a member's name holds the character U+0000, which is not allowed",
                ));
            }
            if map.contains_key(&name) {
                return Err(de::Error::custom("the member stands twice in its object, expected once"));
            }
            let value = members.next_value_seed(self)?;
            self.leave(&value);
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(text: &str) -> (String, String) {
        let stopped = parse(text.as_bytes()).unwrap_err();
        (stopped.path, stopped.problem)
    }

    #[test]
    fn numbers_keep_their_value() {
        let value =
            parse(br#"[1.0, 1, -0.0, 9007199254740993, 18446744073709551615, 1.5, -9007199254740993]"#)
                .unwrap();
        let same = serde_json::json!([
            1,
            1,
            0,
            "9007199254740993",
            "18446744073709551615",
            1.5,
            "-9007199254740993"
        ]);
        assert_eq!(value, same);
    }

    #[test]
    fn a_stop_names_its_place() {
        assert_eq!(stop(r#"{"a":{"b":[1,{"c":NaN}]}}"#).0, "a.b[1].c");
        assert_eq!(stop(r#"{"a":{"b":[1,{"c":"x"#).0, "a.b[1].c");
        assert_eq!(stop(r#"{"a":1,"b":2,"a":3}"#).0, "a");
        assert!(stop(r#"{"a":1,"a":3}"#).1.starts_with("the member stands twice"));
        assert_eq!(stop(r#"{"a":1e999}"#).0, "a");
        assert_eq!(stop(r#"{"a":"\u0000"}"#).0, "a");
        assert_eq!(stop("{} {}").0, "");
        assert_eq!(stop(&"[".repeat(100_000)).0.len(), 127 * 3);
    }

    #[test]
    fn what_was_seen_before_the_stop_is_kept() {
        let stopped = parse(br#"{"id":"1","source":"/s","data":{"gpu":"G","units":[{"#).unwrap_err();
        assert_eq!(
            Value::Object(stopped.seen),
            serde_json::json!({"id": "1", "source": "/s", "data.gpu": "G"})
        );
    }
}
