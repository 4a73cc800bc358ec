//! The right edge of the tree: of each level of tiles the hashes that are in no full tile yet. It is all that appending and the root need.

use gpuledger_storage::PgConnection;
use gpuledger_storage::audit_log::NewTile;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::tile::{HEIGHT, WIDTH, fold, tile_bytes, tile_of};
use gpuledger_tlog::tree::{self, Node};
use gpuledger_trail::stored::{StoredError, hashes};

/// Levels of tiles that 2^63 leaves need.
const LEVELS: u8 = 8;

/// The right edge of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    /// At most 255 hashes each.
    levels: Vec<Vec<Hash>>,
}

impl Edge {
    /// The edge of the tree of `size` leaves, from the database.
    ///
    /// # Errors
    /// Hashes are missing, or the database.
    pub async fn load(connection: &mut PgConnection, size: u64) -> Result<Self, StoredError> {
        let mut levels = Vec::new();
        for level in 0..LEVELS {
            let count = size >> (u32::from(level) * u32::from(HEIGHT));
            if count == 0 {
                break;
            }
            let is_partial = !count.is_multiple_of(WIDTH);
            levels.push(if is_partial {
                hashes(connection, level, count / WIDTH, size).await?
            } else {
                Vec::new()
            });
        }
        Ok(Self { size, levels })
    }

    /// Number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf; tiles that become full are added to `full`, lowest first.
    pub fn push(&mut self, leaf: Hash, full: &mut Vec<NewTile>) {
        let mut hash = leaf;
        for level in 0..LEVELS {
            let place = usize::from(level);
            if self.levels.len() <= place {
                self.levels.push(Vec::new());
            }
            let Some(hashes) = self.levels.get_mut(place) else { break };
            hashes.push(hash);
            if u64::try_from(hashes.len()) != Ok(WIDTH) {
                break;
            }
            let Some(root) = fold(hashes) else { break };
            let index = self.size >> (u32::from(level + 1) * u32::from(HEIGHT));
            full.push(NewTile {
                level: level.into(),
                index: i64::try_from(index).unwrap_or(i64::MAX),
                root: root.0,
                hashes: tile_bytes(hashes),
            });
            hashes.clear();
            hash = root;
        }
        self.size += 1;
    }

    /// The root.
    ///
    /// # Errors
    /// A hash is missing, which is a fault of this program.
    pub fn root(&self) -> Result<Hash, StoredError> {
        tree::root(self.size, |node| {
            self.hash(node).ok_or_else(|| StoredError::Missing(format!("the hash of {node:?} at the edge")))
        })
    }

    fn hash(&self, node: Node) -> Option<Hash> {
        let (tile, within) = tile_of(node, self.size)?;
        fold(self.levels.get(usize::from(tile.level))?.get(within)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    #[test]
    fn edge_and_tree_agree_at_every_size_around_tiles() {
        let (mut edge, mut full, mut nodes) = (Edge::default(), Vec::new(), BTreeMap::new());
        for index in 0..66_200_u64 {
            let leaf = Hash::of_leaf(&index.to_be_bytes());
            let left = |node| Ok::<_, Infallible>(nodes[&node]);
            let new = tree::append(index, leaf, left).unwrap();
            nodes.extend(new);
            edge.push(leaf, &mut full);
            let size = index + 1;
            if size < 600 || size % 256 < 2 || size > 65_500 && size < 65_600 {
                let stored = |node| Ok::<_, Infallible>(nodes[&node]);
                assert_eq!(edge.root().unwrap(), tree::root(size, stored).unwrap(), "size {size}");
            }
        }
        let places: Vec<(i16, i64)> =
            full.iter().filter(|tile| tile.level > 0).map(|t| (t.level, t.index)).collect();
        assert_eq!(places, [(1, 0)]);
        assert_eq!(full.iter().filter(|tile| tile.level == 0).count(), 258);
    }
}
