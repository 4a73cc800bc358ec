//! Which processes are on a device, and since when that was seen.

use crate::process::Owner;
use crate::window::{ProcessKey, UnitKey};
use gpuledger_nvml::ProcessKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One process on one unit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// In which of NVML's lists it stood.
    pub kind: ProcessKind,
    /// Whose it is, as last known.
    pub owner: Arc<Owner>,
    /// The last list without it, where there was one: it began after that.
    pub absent_us: Option<u64>,
    /// The first list with it.
    pub first_us: u64,
    /// The last list with it.
    pub seen_us: u64,
    /// The first list without it again.
    pub gone_us: Option<u64>,
}

/// A process as a list showed it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which, and where.
    pub key: ProcessKey,
    /// In which list.
    pub kind: ProcessKind,
    /// Memory in bytes; none where the driver does not say.
    pub memory_bytes: Option<u64>,
    /// Whose it is.
    pub owner: Arc<Owner>,
}

/// All processes of one device, the last ones that ended included.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    entries: BTreeMap<ProcessKey, Entry>,
    listed_us: Option<u64>,
    /// The processes of the last list, and of the one before it.
    now: BTreeSet<ProcessKey>,
    before: BTreeSet<ProcessKey>,
}

impl Roster {
    /// Takes a list. Processes that left it long ago are forgotten.
    ///
    /// `confirmed_us`: when the kernel was asked again. Who was in the list and not there by then ended, or lost his number, in between.
    pub fn update(&mut self, at_us: u64, confirmed_us: u64, seen: &[Seen], keep_us: u64) {
        self.before = std::mem::replace(&mut self.now, seen.iter().map(|process| process.key).collect());
        for process in seen {
            let entry = self.entries.entry(process.key).or_insert_with(|| Entry {
                kind: process.kind,
                owner: Arc::clone(&process.owner),
                absent_us: self.listed_us,
                first_us: at_us,
                seen_us: at_us,
                gone_us: None,
            });
            entry.owner = Arc::clone(&process.owner);
            entry.kind = process.kind;
            entry.seen_us = at_us;
            entry.gone_us = None;
        }
        for (key, entry) in &mut self.entries {
            if !self.now.contains(key) {
                entry.gone_us.get_or_insert(confirmed_us);
            }
        }
        self.entries
            .retain(|_, entry| entry.gone_us.is_none_or(|gone_us| at_us.saturating_sub(gone_us) <= keep_us));
        self.listed_us = Some(at_us);
    }

    /// Nothing is known of the time before the next list.
    pub fn reseed(&mut self) {
        self.listed_us = None;
        self.before.clear();
        self.now.clear();
    }

    /// One process, live or ended lately.
    pub fn get(&self, key: &ProcessKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Whether the last list has it, and there was none since that could not be read.
    pub fn is_listed(&self, key: &ProcessKey) -> bool {
        self.now.contains(key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&ProcessKey, &Entry)> {
        self.entries.iter()
    }

    /// Those that are live by the last list.
    pub fn live(&self) -> impl Iterator<Item = (&ProcessKey, &Entry)> {
        self.entries.iter().filter(|(_, entry)| entry.gone_us.is_none())
    }

    /// Processes of a unit that were in both of the last lists, and whether those lists were the same.
    pub fn stable(&self, unit: UnitKey) -> (Vec<ProcessKey>, bool) {
        let of = |set: &BTreeSet<ProcessKey>| -> BTreeSet<ProcessKey> {
            set.iter().filter(|key| key.unit == unit).copied().collect()
        };
        let (before, now) = (of(&self.before), of(&self.now));
        (before.intersection(&now).copied().collect(), before == now)
    }

    /// Whether several processes were on a unit at once in the last two lists.
    pub fn is_shared(&self, unit: UnitKey) -> bool {
        let on = |set: &BTreeSet<ProcessKey>| set.iter().filter(|key| key.unit == unit).count();
        on(&self.now).max(on(&self.before)) > 1
    }
}
