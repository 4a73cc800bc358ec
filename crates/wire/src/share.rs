//! A share as it travels: a rational as text.

use gpuledger_domain::share::{Share, parse_share};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A share of a unit, above 0 and at most 1, written `"1/4"` or `"0.25"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareText(pub Share);

impl Serialize for ShareText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ShareText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = ShareText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rational as text such as \"1/4\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ShareText, E> {
                parse_share(text).map(ShareText).map_err(|why| E::custom(format_args!("is `{text}`: {why}")))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for ShareText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The bound "at most 1" of the quotient is left to the reader.
        let pattern = "^(?![0.]+(/|$))[0-9]{1,15}(/(?!0+$)[0-9]{1,15}|\\.[0-9]{1,15})?$";
        json_schema!({"type": "string", "pattern": pattern})
    }
}
