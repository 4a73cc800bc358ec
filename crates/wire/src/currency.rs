//! Currencies and billing periods as words.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident $test:ident $what:literal $pattern:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(String);

        impl $name {
            /// Reads it, or none where the text has another form.
            pub fn parse(text: &str) -> Option<Self> {
                $test(text).then(|| Self(text.to_owned()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| de::Error::custom(format_args!("is `{text}`, expected {}", $what)))
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
                json_schema!({"type": "string", "pattern": $pattern})
            }
        }
    )*};
}

words! {
    /// A currency by its ISO 4217 code.
    Currency is_currency "an ISO 4217 code such as EUR" "^[A-Z]{3}$";
    /// A billing period: a calendar month, written `2026-10`.
    Period is_period "a month such as 2026-10" "^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])$";
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase())
}

fn is_period(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    bytes.len() == 7
        && bytes[4] == b'-'
        && digits(&bytes[..4])
        && digits(&bytes[5..])
        && &bytes[..4] != b"0000"
        && (1..=12).contains(&(10 * (bytes[5] - b'0') + bytes[6] - b'0'))
}

impl Currency {
    /// Decimal places of the currency's smaller unit: 0, 2 or 3 (M-5).
    pub fn exponent(&self) -> u32 {
        match self.0.as_str() {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND"
            | "VUV" | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            _ => 2,
        }
    }
}

impl Period {
    /// Year and month, such as (2026, 10).
    pub fn year_month(&self) -> (i32, u32) {
        let year = self.0[..4].parse().unwrap_or_default();
        let month = self.0[5..].parse().unwrap_or_default();
        (year, month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_and_months_are_read() {
        assert_eq!(Currency::parse("JPY").map(|c| c.exponent()), Some(0));
        assert!(["eur", "EU", "EURO", ""].iter().all(|t| Currency::parse(t).is_none()));
        assert_eq!(Period::parse("2026-10").map(|p| p.year_month()), Some((2026, 10)));
        assert!(
            ["2026-13", "2026-00", "0000-01", "2026-1", "26-10", "2026-1x"]
                .iter()
                .all(|t| Period::parse(t).is_none())
        );
    }
}
