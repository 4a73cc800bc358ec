//! The right edge of a growing tree, by levels of tiles: all that must be remembered of the leaves so far.

use crate::hash::Hash;
use crate::tile::{Tile, WIDTH, fold};

/// Levels of tiles that 2^64 leaves have.
const LEVELS: usize = 8;
/// Hashes in a full tile.
const FULL: usize = 256;

/// For each level above the leaves the hashes of the tile that is not full yet.
#[derive(Debug)]
pub(super) struct Edge {
    levels: [Vec<Hash>; LEVELS],
    /// Full tiles before it, by level.
    full: [u64; LEVELS],
}

impl Edge {
    pub(super) fn new() -> Self {
        Self { levels: std::array::from_fn(|_| Vec::with_capacity(FULL)), full: [0; LEVELS] }
    }

    /// The root of the tree of all leaves so far and `more`, hashes of at most 256 leaves.
    pub(super) fn root(&self, more: &[Hash]) -> Hash {
        let leaves = std::iter::once(more);
        let above = self.levels.iter().skip(1).map(Vec::as_slice);
        let mut root = None;
        for hashes in leaves.chain(above) {
            root = hang(hashes, root);
        }
        root.unwrap_or_else(Hash::of_empty_tree)
    }

    /// Takes the hash over a full tile of leaves; each tile above that is full by it is handed over.
    pub(super) fn push(&mut self, mut hash: Hash, mut done: impl FnMut(Tile, &[Hash])) {
        let levels = self.levels.iter_mut().zip(&mut self.full).zip(0_u8..).skip(1);
        for ((hashes, full), level) in levels {
            hashes.push(hash);
            if hashes.len() < FULL {
                return;
            }
            done(Tile { level, index: *full, width: 256 }, hashes);
            let Some(over) = fold(hashes) else { return };
            hash = over;
            hashes.clear();
            *full += 1;
        }
    }

    /// Hands over the tiles that are not full.
    pub(super) fn finish(&self, mut done: impl FnMut(Tile, &[Hash])) {
        let levels = self.levels.iter().zip(self.full).zip(0_u8..).skip(1);
        for ((hashes, index), level) in levels.filter(|((hashes, _), _)| !hashes.is_empty()) {
            let width = u16::try_from(hashes.len()).unwrap_or(256);
            done(Tile { level, index, width }, hashes);
        }
    }
}

/// Hangs what is to the right under the complete subtrees that `hashes` make, the smallest of which is the last.
fn hang(mut hashes: &[Hash], mut right: Option<Hash>) -> Option<Hash> {
    while !hashes.is_empty() {
        let smallest = 1_usize << hashes.len().trailing_zeros();
        let (before, group) = hashes.split_at(hashes.len() - smallest);
        let left = fold(group)?;
        right = Some(right.map_or(left, |right| Hash::of_node(left, right)));
        hashes = before;
    }
    right
}

/// The first leaf below hash `place` of a tile.
pub(super) fn first_leaf(tile: Tile, place: usize) -> Option<u64> {
    let hash = tile.index.checked_mul(WIDTH)?.checked_add(u64::try_from(place).ok()?)?;
    hash.checked_mul(1_u64.checked_shl(u32::from(tile.level) * 8)?)
}
