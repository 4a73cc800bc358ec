//! Names and free texts as they travel: bounded, and free of characters that no database or terminal should get.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Greatest length of a [`Name`] in characters.
pub const MAX_NAME: usize = 512;
/// Greatest length of a [`Name`] in bytes of UTF-8: with its prefix it still fits an index row.
pub const MAX_NAME_BYTES: usize = 1024;
/// Greatest length of a [`Text`] in characters.
pub const MAX_TEXT: usize = 8192;

/// An identifier or word: 1 to 512 characters, none of them a control character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Name(String);

impl Name {
    /// The name with this text.
    ///
    /// # Errors
    /// Says what is wrong: empty, too long, or a control character inside.
    pub fn new(text: &str) -> Result<Self, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        if text.chars().nth(MAX_NAME).is_some() || text.len() > MAX_NAME_BYTES {
            return Err(TextError::Long(MAX_NAME));
        }
        if text.chars().any(char::is_control) {
            return Err(TextError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Free text, such as a label's value or an explanation: up to 8192 characters, empty too.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Text(String);

impl Text {
    /// The text.
    ///
    /// # Errors
    /// Longer than 8192 characters.
    pub fn new(text: &str) -> Result<Self, TextError> {
        if text.chars().nth(MAX_TEXT).is_some() {
            return Err(TextError::Long(MAX_TEXT));
        }
        if text.contains('\0') {
            return Err(TextError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing in it.
    #[error("is empty, expected at least one character")]
    Empty,
    /// More characters than this.
    #[error("is longer than {0} characters")]
    Long(usize),
    /// A control character inside.
    #[error("holds a control character, expected printable text")]
    Control,
}

macro_rules! texts {
    ($($name:ident $what:literal $schema:expr;)*) => {$(
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = TextError;

            fn try_from(text: &str) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
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

texts! {
    Name "a text of 1 to 512 characters" json_schema!({
        "type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"
    });
    Text "a text of up to 8192 characters" json_schema!({"type": "string", "maxLength": MAX_TEXT, "pattern": "^[^\\u0000]*$"});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_512_printable_characters() {
        assert_eq!(Name::new(""), Err(TextError::Empty));
        assert_eq!(Name::new("a\nb"), Err(TextError::Control));
        assert_eq!(Name::new(&"é".repeat(513)), Err(TextError::Long(512)));
        assert_eq!(Name::new(&"é".repeat(512)).unwrap().chars().count(), 512);
    }
}
