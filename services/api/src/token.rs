//! Tokens: who calls, and for whom it may speak.
//!
//! A token is a JWT (RFC 9068 shape) signed with Ed25519 or RSA. The algorithm belongs to the key, never to the token's header.

mod key;
mod mint;
mod verify;

pub use key::{KeyError, SigningKey, VerifyKey, generate_ed25519_pem, write_key_file};
pub use mint::mint;
pub use verify::{TokenError, verify};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The issuer of tokens that are taken.
pub const ISSUER: &str = "gpuledger";
/// The audience a token must be meant for.
pub const AUDIENCE: &str = "gpuledger-api";
/// Clocks may differ by so many seconds.
pub const LEEWAY_SECONDS: u64 = 5;
/// Longest token that is read, in bytes.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// Among the nodes or pools of a token: all of them.
pub const ANY: &str = "*";

/// What a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads its own usage and documents.
    Tenant,
    /// Reads everyone's.
    Finance,
    /// Runs the fleet: reads everything, says what nobody else owns.
    Platform,
    /// A scheduler: says who holds what on its nodes.
    Allocator,
    /// A shared server's front: says what work it did for whom.
    Gateway,
    /// A node's collector: says what stands on it.
    Node,
    /// Reads everything.
    Auditor,
    /// May do anything.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 8] = [
        Self::Tenant,
        Self::Finance,
        Self::Platform,
        Self::Allocator,
        Self::Gateway,
        Self::Node,
        Self::Auditor,
        Self::Admin,
    ];

    /// The word in tokens and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Finance => "finance",
            Self::Platform => "platform",
            Self::Allocator => "allocator",
            Self::Gateway => "gateway",
            Self::Node => "node",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a token says of its principal (I-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Name of the principal.
    pub subject: String,
    /// What it is.
    pub role: Role,
    /// Whose rows it may see; needed for role `tenant`, and a narrowing for every other.
    pub tenant: Option<String>,
    /// Prefix of the `source`s it may speak as, at the edge of a path segment: `/nodes/n1` covers `/nodes/n1/collector`.
    pub source: Option<String>,
    /// Nodes it may speak of; [`ANY`]: all; empty: none.
    pub nodes: Vec<String>,
    /// Pools it may speak of; [`ANY`]: all; empty: none.
    pub pools: Vec<String>,
}

impl Claims {
    /// Checks what makes no sense together. Used when a token is made and when it is read.
    fn fault(&self) -> Option<&'static str> {
        let empty = |text: &Option<String>| text.as_deref() == Some("");
        if self.subject.is_empty() || self.subject.len() > 512 {
            return Some("the subject must have 1 to 512 bytes");
        }
        let names = [Some(&self.subject), self.tenant.as_ref(), self.source.as_ref()];
        let mut names = names.into_iter().flatten().chain(&self.nodes).chain(&self.pools);
        if names.any(|name| name.chars().any(char::is_control)) {
            return Some("a name has a control character");
        }
        if self.role == Role::Tenant && self.tenant.is_none() {
            return Some("role tenant needs a tenant");
        }
        if empty(&self.tenant) || self.tenant.as_deref() == Some(ANY) {
            return Some("the tenant must be one tenant's id");
        }
        if self.source.as_ref().is_some_and(|source| !source.starts_with('/')) {
            return Some("the source must be a prefix that begins with `/`, such as /nodes/n1");
        }
        None
    }
}

/// The claims as they travel.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    iss: String,
    aud: Audience,
    sub: String,
    exp: u64,
    nbf: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iat: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pools: Vec<String>,
}

/// One audience or several.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

#[cfg(test)]
mod tests;
