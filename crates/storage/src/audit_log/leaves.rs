//! Leaves and tiles go in by COPY.

use super::{NewLeaf, NewTile};
use crate::copy::BinaryRows;
use crate::error::StorageError;
use sqlx::PgConnection;

/// Appends leaves.
///
/// # Errors
/// [`StorageError::Refused`] where an index is taken: another sequencer was faster.
pub async fn append_leaves(tx: &mut PgConnection, leaves: &[NewLeaf]) -> Result<(), StorageError> {
    let mut rows = BinaryRows::new(leaves.iter().map(|leaf| leaf.leaf.len() + 96).sum());
    for leaf in leaves {
        rows.begin(5);
        rows.int8(Some(leaf.index)).int8(leaf.pending_seq).int8(leaf.fact_seq);
        rows.int8_array(&leaf.subjects)?;
        rows.field(&leaf.leaf)?;
    }
    let statement =
        "COPY audit_leaf (leaf_index, pending_seq, fact_seq, subjects, leaf) FROM STDIN (FORMAT binary)";
    rows.send(tx, statement, "appending leaves").await
}

/// Appends full tiles.
///
/// # Errors
/// [`StorageError::Refused`] where one stands already.
pub async fn append_tiles(tx: &mut PgConnection, tiles: &[NewTile]) -> Result<(), StorageError> {
    if tiles.is_empty() {
        return Ok(());
    }
    let mut rows = BinaryRows::new(tiles.len() * 8_300);
    for tile in tiles {
        rows.begin(4);
        rows.field(&tile.level.to_be_bytes())?;
        rows.int8(Some(tile.index));
        rows.field(&tile.root)?;
        rows.field(&tile.hashes)?;
    }
    let statement = "COPY audit_tile (level, tile_index, root, hashes) FROM STDIN (FORMAT binary)";
    rows.send(tx, statement, "appending tiles").await
}
