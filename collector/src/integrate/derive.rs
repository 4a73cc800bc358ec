//! A device's reading divided among its processes, where nothing tells them apart: the rule is part of the label.

use super::roster::Roster;
use crate::ladder::{Quality, Rule, Why};
use crate::window::{ProcessKey, UnitKey};
use gpuledger_nvml::ProcessKind;

/// How the reading of a unit is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// Who has a part.
    pub(super) among: Vec<ProcessKey>,
    /// By which rule.
    pub(super) rule: Rule,
}

/// Who shares a unit's reading of the time between the last two lists.
///
/// Exactly one process from beginning to end has all of it. Several have equal parts on a whole GPU, where they take turns; in a GPU instance
/// NVML gives nothing to go by, and a guess would be one tenant's against another's.
///
/// # Errors
/// The label of processes that get no part.
pub(super) fn divide(roster: &Roster, unit: UnitKey) -> Result<Division, Quality> {
    let (stable, is_same) = roster.stable(unit);
    match (unit, stable.as_slice(), is_same) {
        (_, [sole], true) => Ok(Division { among: vec![*sole], rule: Rule::SoleProcess }),
        (UnitKey::Device, [_, ..], _) => Ok(Division { among: clients(roster, stable), rule: Rule::Equal }),
        _ => Err(Quality::Unavailable(Why::Shared)),
    }
}

/// With MPS the server does nothing by itself: its clients share.
fn clients(roster: &Roster, all: Vec<ProcessKey>) -> Vec<ProcessKey> {
    let is_client =
        |key: &ProcessKey| roster.get(key).is_some_and(|entry| entry.kind == ProcessKind::MpsClient);
    let clients: Vec<ProcessKey> = all.iter().copied().filter(is_client).collect();
    if clients.is_empty() { all } else { clients }
}

/// Divides a number into equal whole parts that add up to it.
pub(super) fn parts(amount: u128, count: usize) -> impl Iterator<Item = u128> {
    let count_wide = u128::try_from(count).unwrap_or(1).max(1);
    (1..=count).map(move |n| {
        let n = u128::try_from(n).unwrap_or(1);
        amount * n / count_wide - amount * (n - 1) / count_wide
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_add_up() {
        for (amount, count) in [(10, 3), (0, 4), (7, 7), (1_000_003, 2)] {
            assert_eq!(parts(amount, count).sum::<u128>(), amount);
            assert_eq!(parts(amount, count).count(), count);
        }
    }
}
