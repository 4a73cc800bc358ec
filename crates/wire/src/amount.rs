//! Decimal amounts as they travel: text, so that no float comes between (M-6).

use gpuledger_domain::share::Share;
use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A decimal of any sign: up to 18 digits before and 10 after the point. Money, quantities, limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(Decimal);

/// A decimal that is not negative: prices, rates, quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unsigned(Decimal);

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a plain decimal.
    #[error("is no decimal, expected text such as \"2.40\": up to 18 digits, then up to 10 after a point")]
    Text,
    /// Below zero where that makes no sense.
    #[error("is below zero")]
    Negative,
}

/// Reads a plain decimal exactly, keeping its scale.
///
/// # Errors
/// The text is no plain decimal, or too long for one.
pub fn parse_decimal(text: &str) -> Result<Decimal, AmountError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(AmountError::Text),
        None => (digits, ""),
    };
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let padded = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty()
        || whole.len() > 18
        || fraction.len() > 10
        || padded
        || !plain(whole)
        || !plain(fraction)
    {
        return Err(AmountError::Text);
    }
    Decimal::from_str_exact(text).map_err(|_| AmountError::Text)
}

impl Amount {
    /// Reads a plain decimal.
    ///
    /// # Errors
    /// As [`parse_decimal`].
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        parse_decimal(text).map(Self)
    }

    /// The decimal.
    pub const fn get(self) -> Decimal {
        self.0
    }
}

impl Unsigned {
    /// Reads a plain decimal that is not below zero.
    ///
    /// # Errors
    /// As [`parse_decimal`], or below zero.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let value = parse_decimal(text)?;
        if value.is_sign_negative() && !value.is_zero() {
            Err(AmountError::Negative)
        } else {
            Ok(Self(value.abs()))
        }
    }

    /// The decimal.
    pub const fn get(self) -> Decimal {
        self.0
    }
}

impl Unsigned {
    /// The decimal as an exact rational.
    pub fn ratio(self) -> Share {
        Share::new(self.0.mantissa(), 10_i128.pow(self.0.scale()))
    }
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal as text, such as \"2.40\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<String, E> {
        Err(E::custom(format_args!("the number {value} may have lost digits, put it in quotes: \"{value}\"")))
    }
}

macro_rules! amounts {
    ($($name:ident $sign:literal $number:tt;)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = deserializer.deserialize_any(Reader)?;
                Self::parse(&text).map_err(|why| de::Error::custom(format_args!("`{text}` {why}")))
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
                let pattern = concat!("^", $sign, "(0|[1-9][0-9]{0,17})(\\.[0-9]{1,10})?$");
                json_schema!({"anyOf": [{"type": "string", "pattern": pattern}, $number]})
            }
        }
    )*};
}

amounts! {
    Amount "-?" {"type": "integer"};
    Unsigned "" {"type": "integer", "minimum": 0};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_and_keep_their_scale() {
        assert_eq!(Amount::parse("2.40").unwrap().to_string(), "2.40");
        assert_eq!(Amount::parse("-0.0001").unwrap().to_string(), "-0.0001");
        assert_eq!(serde_json::from_str::<Unsigned>("3").unwrap().to_string(), "3");
        for bad in ["", "-", "1.", ".5", "1e3", "+1", "01", "1,5", "NaN", "1234567890123456789"] {
            assert_eq!(Amount::parse(bad), Err(AmountError::Text), "{bad}");
        }
        assert_eq!(Unsigned::parse("-1"), Err(AmountError::Negative));
        let message = serde_json::from_str::<Unsigned>("2.4").unwrap_err().to_string();
        assert!(message.contains("put it in quotes"), "{message}");
    }
}
