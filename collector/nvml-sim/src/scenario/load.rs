//! How busy a context keeps its GPU.

use super::text::Percent;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// A load: the share of its unit's multiprocessors that a context keeps busy, as long as there is room.
///
/// `40%` is constant; `{from: 20%, to: 80%}` is drawn from the seed, whole per cent for each cell; `{cells: [100%, 0%]}` is repeated over the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// The same until changed.
    Constant(Percent),
    /// Drawn for each of the 64 cells.
    Drawn {
        /// At least.
        from: Percent,
        /// At most.
        to: Percent,
    },
    /// Given for each cell; their number divides 64.
    Cells(Vec<Percent>),
}

impl Default for Load {
    fn default() -> Self {
        Self::Constant(Percent(0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Percent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Percent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cells: Option<Vec<Percent>>,
}

impl Written {
    fn load(self) -> Result<Load, &'static str> {
        match (self.from, self.to, self.cells) {
            (Some(from), Some(to), None) if from <= to => Ok(Load::Drawn { from, to }),
            (Some(_), Some(_), None) => Err("`from` is above `to`"),
            (None, None, Some(cells)) if !cells.is_empty() && 64 % cells.len() == 0 => Ok(Load::Cells(cells)),
            (None, None, Some(_)) => Err("the number of `cells` must be 1, 2, 4, 8, 16, 32 or 64"),
            _ => Err("expected `from` and `to`, or `cells`"),
        }
    }
}

impl Serialize for Load {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(share) => share.serialize(serializer),
            Self::Drawn { from, to } => {
                Written { from: Some(*from), to: Some(*to), cells: None }.serialize(serializer)
            }
            Self::Cells(cells) => {
                Written { from: None, to: None, cells: Some(cells.clone()) }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LoadVisitor)
    }
}

struct LoadVisitor;

impl<'de> de::Visitor<'de> for LoadVisitor {
    type Value = Load;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share such as 40%, or {from: 20%, to: 80%}, or {cells: [100%, 0%]}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Load, E> {
        Percent::deserialize(de::value::StrDeserializer::new(text)).map(Load::Constant)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Load, A::Error> {
        Written::deserialize(de::value::MapAccessDeserializer::new(map))?.load().map_err(de::Error::custom)
    }
}
