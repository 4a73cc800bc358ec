//! Proofs verified from hashes alone, by the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2.

use crate::hash::Hash;

/// Why a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The leaf or the old tree lies beyond the tree.
    #[error("index or old size lies beyond the tree")]
    OutOfRange,
    /// Too few or too many hashes.
    #[error("the proof has too few or too many hashes for these sizes")]
    Length,
    /// The hashes lead to another root.
    #[error("the proof leads to another root")]
    Root,
}

/// Verifies that `leaf` is the leaf `index` of the tree with `size` leaves and `root`.
///
/// # Errors
/// It is not proven.
pub fn verify_inclusion(
    leaf: Hash,
    index: u64,
    size: u64,
    root: Hash,
    path: &[Hash],
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::OutOfRange);
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for &beside in path {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if at % 2 == 1 || at == last {
            hash = Hash::of_node(beside, hash);
            while at.is_multiple_of(2) && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            hash = Hash::of_node(hash, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    ended(last, hash == root)
}

/// Verifies that the tree with `old` leaves and `old_root` is the beginning of the tree with `new` leaves and `new_root`. From the empty tree every
/// tree is a continuation, with an empty proof.
///
/// # Errors
/// It is not proven.
pub fn verify_consistency(
    old: u64,
    old_root: Hash,
    new: u64,
    new_root: Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if old > new {
        return Err(ProofError::OutOfRange);
    }
    if old == 0 || old == new {
        let expected = if old == 0 { Hash::of_empty_tree() } else { new_root };
        return if !proof.is_empty() {
            Err(ProofError::Length)
        } else if old_root != expected {
            Err(ProofError::Root)
        } else {
            Ok(())
        };
    }
    // The old tree is one complete subtree: its root is where the proof begins.
    let (seed, rest) = match proof.split_first() {
        _ if old.is_power_of_two() => (old_root, proof),
        Some((first, rest)) => (*first, rest),
        None => return Err(ProofError::Length),
    };
    let (mut at, mut last) = (old - 1, new - 1);
    while at % 2 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let (mut then, mut now) = (seed, seed);
    for &beside in rest {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if at % 2 == 1 || at == last {
            then = Hash::of_node(beside, then);
            now = Hash::of_node(beside, now);
            while at.is_multiple_of(2) && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            now = Hash::of_node(now, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    ended(last, then == old_root && now == new_root)
}

fn ended(last: u64, same: bool) -> Result<(), ProofError> {
    match (last, same) {
        (0, true) => Ok(()),
        (0, false) => Err(ProofError::Root),
        _ => Err(ProofError::Length),
    }
}
