//! Whole numbers as they travel: as numbers up to 2^53, as text above, so that no reader loses digits.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The greatest whole number that every JSON reader keeps exactly: 2^53.
pub const MAX_EXACT: i128 = 1 << 53;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($int:ty) $low:literal ..= $high:expr, $what:literal, $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($int);

        impl $name {
            /// The smallest value.
            pub const MIN: $int = $low;
            /// The greatest value.
            pub const MAX: $int = $high;

            /// The number, or none where it lies outside the bounds.
            pub fn new(value: $int) -> Option<Self> {
                (Self::MIN..=Self::MAX).contains(&value).then_some(Self(value))
            }

            /// The number.
            pub const fn get(self) -> $int {
                self.0
            }

            fn from_wide(value: i128) -> Option<Self> {
                <$int>::try_from(value).ok().and_then(Self::new)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match i64::try_from(self.0) {
                    Ok(small) if i128::from(small) <= MAX_EXACT => serializer.serialize_i64(small),
                    _ => serializer.collect_str(&self.0),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let whole = Whole { what: $what, as_text: i128::from(Self::MAX) > MAX_EXACT };
                deserializer.deserialize_any(whole).and_then(|value| {
                    Self::from_wide(value)
                        .ok_or_else(|| de::Error::custom(format_args!("is {value}, expected {}", $what)))
                })
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

numbers! {
    /// A count, or an amount of microseconds, bytes or millijoules: 0 to 2^63 - 1. As text where it passes 2^53.
    Count(i64) 0 ..= i64::MAX, "a whole number from 0 to 9223372036854775807", number_or_text(19);
    /// A product of bytes and microseconds: 0 to 10^36 - 1. As text where it passes 2^53.
    BigCount(i128) 0 ..= 10_i128.pow(36) - 1, "a whole number from 0 to 10^36 - 1", number_or_text(36);
    /// A number of units: 1 to 65,536. A grant of more is several grants.
    UnitCount(u32) 1 ..= 65_536, "a whole number from 1 to 65536", number(1, 65_536);
    /// A number of slices: 1 to 16.
    Slices(u8) 1 ..= 16, "a whole number from 1 to 16", number(1, 16);
    /// A memory slice of a GPU: 0 to 15.
    SliceIndex(u8) 0 ..= 15, "a whole number from 0 to 15", number(0, 15);
}

fn number(low: u32, high: u32) -> Schema {
    json_schema!({"type": "integer", "minimum": low, "maximum": high})
}

/// A number up to 2^53, or up to `digits` digits of text. The reader takes greater numbers too, as far as JSON keeps them exactly.
fn number_or_text(digits: usize) -> Schema {
    let pattern = format!("^(0|[1-9][0-9]{{0,{}}})$", digits - 1);
    json_schema!({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1_u64 << 53}, {"type": "string", "pattern": pattern}]})
}

/// Reads a whole number, or its decimal text, without a float in between.
struct Whole {
    what: &'static str,
    /// Whether text is a form of it: only where the bounds pass 2^53.
    as_text: bool,
}

impl Whole {
    fn text<E: de::Error>(&self, text: &str) -> Result<i128, E> {
        let plain = !text.is_empty() && text.len() <= 37 && text.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = text.len() > 1 && text.starts_with('0');
        (plain && !leading_zero)
            .then(|| text.parse().ok())
            .flatten()
            .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), self))
    }
}

impl de::Visitor<'_> for Whole {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<i128, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<i128, E> {
        Ok(value.into())
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<i128, E> {
        Ok(value)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<i128, E> {
        if self.as_text { self.text(text) } else { Err(E::invalid_type(de::Unexpected::Str(text), &self)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_above_2_to_53_travel_as_text() {
        let at = Count::new(9_007_199_254_740_992).unwrap();
        let above = Count::new(9_007_199_254_740_993).unwrap();
        assert_eq!(serde_json::to_string(&at).unwrap(), "9007199254740992");
        assert_eq!(serde_json::to_string(&above).unwrap(), "\"9007199254740993\"");
        assert_eq!(serde_json::from_str::<Count>("9007199254740993").unwrap(), above);
        assert_eq!(serde_json::from_str::<Count>("\"9007199254740993\"").unwrap(), above);
    }

    #[test]
    fn what_is_out_of_bounds_says_what_is_right() {
        for (text, why) in [
            ("-1", "is -1, expected a whole number from 1 to 16"),
            ("17", "is 17, expected a whole number from 1 to 16"),
            ("1.5", "invalid type: floating point `1.5`, expected a whole number from 1 to 16"),
            ("\"7\"", "invalid type: string \"7\", expected a whole number from 1 to 16"),
        ] {
            let message = serde_json::from_str::<Slices>(text).unwrap_err().to_string();
            assert!(message.starts_with(why), "{message}");
        }
        assert!(serde_json::from_str::<Count>("\"007\"").is_err());
        assert!(serde_json::from_str::<BigCount>("\"1000000000000000000000000000000000000\"").is_err());
    }
}
