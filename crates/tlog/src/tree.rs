//! The stored hashes of a growing tree: every complete subtree, by level and index. Roots and proofs are made of them.
//!
//! Level 0 are leaves; the node (level, index) is over the leaves `index * 2^level` to `(index + 1) * 2^level - 1`. Only complete nodes are
//! stored; they never change as the tree grows.

use crate::hash::Hash;
use std::ops::Range;

/// A complete node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Height above the leaves, at most 63.
    pub level: u8,
    /// From the left, in its level.
    pub index: u64,
}

/// Why a root or a proof cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError<E> {
    /// The tree does not have that leaf or that size.
    #[error("{asked} is not within a tree of {size} leaves")]
    OutOfRange {
        /// What was asked for.
        asked: u64,
        /// Of which tree.
        size: u64,
    },
    /// A stored hash cannot be read.
    #[error(transparent)]
    Store(E),
}

/// Complete nodes that come to be when a leaf is appended to a tree of `size` leaves, lowest first, each with its hash. `left` gives the stored
/// hash of a node that is complete already.
///
/// # Errors
/// What `left` returns.
pub fn append<E>(
    size: u64,
    leaf: Hash,
    mut left: impl FnMut(Node) -> Result<Hash, E>,
) -> Result<Vec<(Node, Hash)>, E> {
    let mut new = vec![(Node { level: 0, index: size }, leaf)];
    let (mut index, mut hash, mut level) = (size, leaf, 0);
    // A right child completes its parent.
    while index % 2 == 1 {
        hash = Hash::of_node(left(Node { level, index: index - 1 })?, hash);
        (index, level) = (index / 2, level + 1);
        new.push((Node { level, index }, hash));
    }
    Ok(new)
}

/// The complete nodes that cover `leaves`, from the left: the largest that fit, one after the other.
pub fn cover(leaves: Range<u64>) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut at = leaves.start;
    while at < leaves.end {
        let aligned = at.trailing_zeros();
        let fits = (leaves.end - at).ilog2();
        let level = aligned.min(fits);
        nodes.push(Node { level: u8::try_from(level).unwrap_or(63), index: at >> level });
        at += 1 << level;
    }
    nodes
}

/// Root of the tree of `size` leaves.
///
/// # Errors
/// What `stored` returns.
pub fn root<E>(size: u64, stored: impl FnMut(Node) -> Result<Hash, E>) -> Result<Hash, E> {
    over(0..size, stored)
}

/// The hash over `leaves`, which begin at 0 or are a right subtree of such a range.
fn over<E>(leaves: Range<u64>, mut stored: impl FnMut(Node) -> Result<Hash, E>) -> Result<Hash, E> {
    let mut hash = None;
    // From the right: a smaller subtree hangs to the right of the larger one before it.
    for node in cover(leaves).into_iter().rev() {
        let left = stored(node)?;
        hash = Some(hash.map_or(left, |right| Hash::of_node(left, right)));
    }
    Ok(hash.unwrap_or_else(Hash::of_empty_tree))
}

/// The audit path of leaf `index` in the tree of `size` leaves, from the leaf up (RFC 6962, 2.1.1).
///
/// # Errors
/// The tree has no such leaf, or what `stored` returns.
pub fn inclusion<E>(
    index: u64,
    size: u64,
    mut stored: impl FnMut(Node) -> Result<Hash, E>,
) -> Result<Vec<Hash>, TreeError<E>> {
    if index >= size {
        return Err(TreeError::OutOfRange { asked: index, size });
    }
    let mut path = Vec::new();
    let mut leaves = 0..size;
    while leaves.end - leaves.start > 1 {
        let middle = leaves.start + split(leaves.end - leaves.start);
        let (inside, beside) = if index < middle {
            (leaves.start..middle, middle..leaves.end)
        } else {
            (middle..leaves.end, leaves.start..middle)
        };
        path.push(over(beside, &mut stored).map_err(TreeError::Store)?);
        leaves = inside;
    }
    path.reverse();
    Ok(path)
}

/// The proof that the tree of `old` leaves is the beginning of the tree of `new` leaves (RFC 6962, 2.1.2). Empty for the empty and the equal tree.
///
/// # Errors
/// The old tree is larger, or what `stored` returns.
pub fn consistency<E>(
    old: u64,
    new: u64,
    mut stored: impl FnMut(Node) -> Result<Hash, E>,
) -> Result<Vec<Hash>, TreeError<E>> {
    if old > new {
        return Err(TreeError::OutOfRange { asked: old, size: new });
    }
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let mut proof = Vec::new();
    let mut leaves = 0..new;
    // Whether what is left is the old tree as a whole, whose root the verifier has.
    let mut is_old_root = true;
    while leaves.end != old {
        let middle = leaves.start + split(leaves.end - leaves.start);
        let (inside, beside) = if old <= middle {
            (leaves.start..middle, middle..leaves.end)
        } else {
            is_old_root = false;
            (middle..leaves.end, leaves.start..middle)
        };
        proof.push(over(beside, &mut stored).map_err(TreeError::Store)?);
        leaves = inside;
    }
    if !is_old_root {
        proof.push(over(leaves, &mut stored).map_err(TreeError::Store)?);
    }
    proof.reverse();
    Ok(proof)
}

/// The largest power of two below `count`, which is 2 or more.
fn split(count: u64) -> u64 {
    1 << (count - 1).ilog2()
}
