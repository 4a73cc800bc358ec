//! Words of business objects: countries, zones, lines of an address.

use serde::de::{self, Deserializer, IgnoredAny, SeqAccess};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// The member `kind` of a document, read and left aside: the type says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag;

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A country by its ISO 3166-1 code of two letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Country(String);

impl Country {
    /// The code, such as `DE`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Country {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()) {
            return Ok(Self(text));
        }
        Err(de::Error::custom(format_args!("is `{text}`, expected a country code of two letters such as DE")))
    }
}

/// A time zone by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(pub chrono_tz::Tz);

impl TimeZone {
    /// The name, such as `Europe/Berlin`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl Serialize for TimeZone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for TimeZone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let unknown =
            || de::Error::custom(format_args!("is `{text}`, expected an IANA zone such as Europe/Berlin"));
        text.parse().map(Self).map_err(|_| unknown())
    }
}

/// Lines of text, such as an address: one text or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lines(pub Vec<String>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany).map(Self)
    }
}

/// Reads one text, cut at its line ends, or a list of texts.
pub(super) struct OneOrMany;

impl<'de> de::Visitor<'de> for OneOrMany {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<String>, A::Error> {
        let mut lines = Vec::new();
        while let Some(line) = elements.next_element()? {
            lines.push(line);
        }
        Ok(lines)
    }
}

/// Where an invoice is paid to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bank {
    /// International account number.
    pub iban: crate::text::Name,
    /// The bank's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bic: Option<crate::text::Name>,
    /// The bank's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<crate::text::Name>,
}
