//! Cursors: where the next page begins, bound to the query and to whose rows it reads. Opaque to clients.
//!
//! A cursor is no permission: the rows of the next page are chosen by the token again. The binding only keeps a client from
//! carrying a cursor over to another query, where it would skip rows in silence.

use crate::problem::{BAD_CURSOR, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Bytes of the binding that a cursor carries.
const BINDING_BYTES: usize = 12;
/// Longest cursor that is read, in characters.
const MAX_CURSOR: usize = 16 * 1024;

/// What a cursor belongs to: route, whose rows, and every parameter but cursor and limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding([u8; BINDING_BYTES]);

impl Binding {
    /// The binding of these parts, in order; absent is another value than empty.
    pub(crate) fn new(parts: &[Option<&str>]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            match part {
                Some(text) => {
                    hash.update([1]);
                    hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
                    hash.update(text.as_bytes());
                }
                None => hash.update([0]),
            }
        }
        let digest = hash.finalize();
        let mut bytes = [0; BINDING_BYTES];
        bytes.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// The cursor after a row with this key.
    pub(crate) fn write<K: Serialize>(&self, key: &K) -> Option<String> {
        let key = serde_json::to_vec(key).ok()?;
        Some(hex(self.0.iter().chain(key.iter())))
    }

    /// The key in a cursor, where there is one.
    ///
    /// # Errors
    /// 400 where it is none of ours or belongs to another query.
    pub(crate) fn read<K: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<K>, Problem> {
        let Some(text) = cursor else { return Ok(None) };
        let bad = || {
            Problem::with(
                BAD_CURSOR,
                "send `next_cursor` of the page before, with the same parameters and token",
            )
        };
        let bytes = unhex(text).ok_or_else(bad)?;
        let (binding, key) = bytes.split_at_checked(BINDING_BYTES).ok_or_else(bad)?;
        if binding != self.0 {
            return Err(bad());
        }
        // No row has a name with U+0000, and the database refuses to compare with one.
        let text = std::str::from_utf8(key).ok().filter(|text| !text.contains("\\u0000")).ok_or_else(bad)?;
        serde_json::from_str(text).map(Some).map_err(|_| bad())
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_CURSOR || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let binding = Binding::new(&[Some("/v1/usage"), None]);
        let key = vec![Some("acme".to_owned()), None];
        let cursor = binding.write(&key).unwrap();
        assert_eq!(binding.read::<Vec<Option<String>>>(Some(&cursor)).unwrap(), Some(key));
        assert_eq!(binding.read::<String>(None).unwrap(), None);
    }

    #[test]
    fn a_cursor_of_another_query_or_none_at_all_is_refused() {
        let cursor = Binding::new(&[Some("a"), Some("b")]).write(&1).unwrap();
        for other in [&[Some("ab"), None][..], &[Some("a"), Some("")], &[Some("a")], &[Some("b"), Some("a")]]
        {
            assert!(Binding::new(other).read::<i32>(Some(&cursor)).is_err(), "{other:?}");
        }
        let binding = Binding::new(&[Some("a"), Some("b")]);
        let long = "00".repeat(MAX_CURSOR);
        for broken in ["", "0", "zz", "+1+1", "é0", "00", &cursor[..cursor.len() - 2], &long] {
            assert!(binding.read::<i32>(Some(broken)).is_err(), "{broken}");
        }
    }
}
