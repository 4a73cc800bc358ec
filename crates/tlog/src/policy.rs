//! Policies (`c2sp.org/tlog-policy`): which log, which witnesses, and how many of them are enough.

use crate::note::{Kind, NoteError, Verifier};
use std::collections::BTreeMap;

/// Most names of witnesses and groups in a policy.
const NAMES_MAX: usize = 1024;

/// Whose signatures are enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    logs: Vec<Verifier>,
    witnesses: Vec<Verifier>,
    /// Witnesses by the policy's own names for them: places in `witnesses`.
    named: BTreeMap<String, usize>,
    groups: BTreeMap<String, Group>,
    quorum: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    least: usize,
    members: Vec<String>,
}

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A line.
    #[error("policy, line {line}: {why}")]
    Line {
        /// Which, counted from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// No quorum line.
    #[error("policy: a line `quorum NAME` or `quorum none` is missing")]
    NoQuorum,
}

impl Policy {
    /// Only the log's own signature is asked for.
    pub fn of_log(log: Verifier) -> Self {
        Self { logs: vec![log], ..Self::default() }
    }

    /// Reads a policy: lines `log VKEY [URL]`, `witness NAME VKEY [URL]`, `group NAME K|any|all MEMBER…`, `quorum NAME|none`; `#` begins a comment.
    ///
    /// # Errors
    /// Names the line.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        let mut quorum = None;
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let words: Vec<&str> = words.collect();
            let read = match (first, words.as_slice()) {
                ("log", [key, ..]) if words.len() <= 2 => policy.add_log(key),
                ("witness", [name, key, ..]) if words.len() <= 3 => policy.add_witness(name, key),
                ("group", [name, least, members @ ..]) => policy.add_group(name, least, members),
                ("quorum", [name]) if quorum.is_none() => {
                    policy.check_quorum(name).map(|()| quorum = Some(*name))
                }
                ("quorum", [_]) => Err("a second quorum".to_owned()),
                _ => Err(format!("`{line}` is no line of a policy")),
            };
            read.map_err(|why| PolicyError::Line { line: index + 1, why })?;
        }
        policy.quorum = match quorum {
            None => return Err(PolicyError::NoQuorum),
            Some("none") => None,
            Some(name) => Some(name.to_owned()),
        };
        Ok(policy)
    }

    /// The logs it trusts.
    pub fn logs(&self) -> &[Verifier] {
        &self.logs
    }

    /// All witnesses it knows.
    pub fn witnesses(&self) -> &[Verifier] {
        &self.witnesses
    }

    /// Whether these cosigners are enough.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn check(&self, cosigned: &[&Verifier]) -> Result<(), String> {
        match &self.quorum {
            None => Ok(()),
            Some(name) if self.holds(name, cosigned) => Ok(()),
            Some(name) => Err(format!("quorum `{name}` is not reached by {} cosignatures", cosigned.len())),
        }
    }

    /// A group's members were named before it, so this ends.
    fn holds(&self, name: &str, cosigned: &[&Verifier]) -> bool {
        if let Some(witness) = self.named.get(name).and_then(|place| self.witnesses.get(*place)) {
            return cosigned.contains(&witness);
        }
        self.groups.get(name).is_some_and(|group| {
            group.members.iter().filter(|member| self.holds(member, cosigned)).count() >= group.least
        })
    }

    fn add_log(&mut self, key: &str) -> Result<(), String> {
        let log = Verifier::parse(key).map_err(|error| error.to_string())?;
        if log.kind() != Kind::Ed25519 {
            return Err("a log's key has type 1".to_owned());
        }
        if self.logs.iter().any(|known| known.key() == log.key()) {
            return Err("this key was named before".to_owned());
        }
        self.logs.push(log);
        Ok(())
    }

    fn add_witness(&mut self, name: &str, key: &str) -> Result<(), String> {
        self.check_new(name)?;
        let witness = Verifier::parse(key).map_err(|error: NoteError| error.to_string())?;
        if witness.kind() != Kind::Cosigner {
            return Err("a witness's key has type 4".to_owned());
        }
        if self.witnesses.iter().any(|known| known.key() == witness.key()) {
            return Err("this key was named before".to_owned());
        }
        self.named.insert(name.to_owned(), self.witnesses.len());
        self.witnesses.push(witness);
        Ok(())
    }

    fn add_group(&mut self, name: &str, least: &str, members: &[&str]) -> Result<(), String> {
        self.check_new(name)?;
        let unknown = members.iter().find(|member| !self.is_known(member));
        if let Some(member) = unknown {
            return Err(format!("`{member}` was not named before"));
        }
        let mut distinct = members.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != members.len() {
            return Err("a member stands twice".to_owned());
        }
        let least = match least {
            "any" => 1,
            "all" => members.len(),
            number => number.parse().map_err(|_| format!("`{number}` is not any, all or a number"))?,
        };
        if least == 0 || least > members.len() {
            return Err(format!("{least} of {} members cannot be asked for", members.len()));
        }
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        self.groups.insert(name.to_owned(), Group { least, members });
        Ok(())
    }

    fn check_quorum(&self, name: &str) -> Result<(), String> {
        if name == "none" || self.is_known(name) {
            Ok(())
        } else {
            Err(format!("`{name}` was not named before"))
        }
    }

    fn check_new(&self, name: &str) -> Result<(), String> {
        if name == "none" || self.is_known(name) {
            return Err(format!("`{name}` is taken"));
        }
        if self.named.len() + self.groups.len() >= NAMES_MAX {
            return Err("more than 1024 names".to_owned());
        }
        Ok(())
    }

    fn is_known(&self, name: &str) -> bool {
        self.named.contains_key(name) || self.groups.contains_key(name)
    }
}
