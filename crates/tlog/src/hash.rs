//! Hashes of RFC 6962, section 2.1: leaves and nodes are told apart by their first byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Root of the tree without leaves: the hash of nothing.
    pub fn of_empty_tree() -> Self {
        Self(Sha256::digest([]).into())
    }

    /// The leaf hash of an entry.
    pub fn of_leaf(entry: &[u8]) -> Self {
        Self(Sha256::new().chain_update([0]).chain_update(entry).finalize().into())
    }

    /// The node above two others.
    pub fn of_node(left: Self, right: Self) -> Self {
        Self(Sha256::new().chain_update([1]).chain_update(left.0).chain_update(right.0).finalize().into())
    }

    /// Reads 32 bytes of standard base64 with padding; none for anything else.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Standard base64 with padding.
    pub fn to_base64(self) -> String {
        STANDARD.encode(self.0)
    }
}

impl fmt::Display for Hash {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
