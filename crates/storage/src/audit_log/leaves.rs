//! Leaves and tiles go in by COPY, in Postgres's binary format: as text their bytes would be twice as many.

use super::{NewLeaf, NewTile};
use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Signature, flags, and length of the header's extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// A message to the server stays well below its limit of 1 GiB.
const CHUNK_BYTES: usize = 1 << 20;
/// Type number of INT8 in the server's catalogue; it is part of an array's format.
const INT8_OID: u32 = 20;

/// Appends leaves.
///
/// # Errors
/// [`StorageError::Refused`] where an index is taken: another sequencer was faster.
pub async fn append_leaves(tx: &mut PgConnection, leaves: &[NewLeaf]) -> Result<(), StorageError> {
    let mut rows = Rows::new(leaves.iter().map(|leaf| leaf.leaf.len() + 96).sum());
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
    let mut rows = Rows::new(tiles.len() * 8_300);
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

struct Rows(Vec<u8>);

impl Rows {
    fn new(bytes: usize) -> Self {
        let mut rows = Vec::with_capacity(bytes + 64);
        rows.extend_from_slice(HEADER);
        Self(rows)
    }

    fn begin(&mut self, fields: i16) {
        self.0.extend(fields.to_be_bytes());
    }

    fn int8(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => {
                self.0.extend(8_i32.to_be_bytes());
                self.0.extend(value.to_be_bytes());
            }
            None => self.0.extend((-1_i32).to_be_bytes()),
        }
        self
    }

    fn field(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.0.extend(length(bytes.len())?);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// One dimension, from 1 on, without nulls; an empty array has none.
    fn int8_array(&mut self, values: &[i64]) -> Result<(), StorageError> {
        let dimensions: i32 = if values.is_empty() { 0 } else { 1 };
        let mut array = Vec::with_capacity(20 + values.len() * 12);
        array.extend(dimensions.to_be_bytes());
        array.extend(0_i32.to_be_bytes());
        array.extend(INT8_OID.to_be_bytes());
        if !values.is_empty() {
            array.extend(length(values.len())?);
            array.extend(1_i32.to_be_bytes());
        }
        for value in values {
            array.extend(8_i32.to_be_bytes());
            array.extend(value.to_be_bytes());
        }
        self.field(&array)
    }

    async fn send(
        mut self,
        tx: &mut PgConnection,
        statement: &'static str,
        doing: &'static str,
    ) -> Result<(), StorageError> {
        self.0.extend((-1_i16).to_be_bytes());
        let mut copy = tx.copy_in_raw(statement).await.doing(doing)?;
        for chunk in self.0.chunks(CHUNK_BYTES) {
            copy.send(chunk).await.doing(doing)?;
        }
        copy.finish().await.doing(doing)?;
        Ok(())
    }
}

fn length(of: usize) -> Result<[u8; 4], StorageError> {
    let length =
        i32::try_from(of).map_err(|_| StorageError::invalid("a field", "want fewer than 2^31 bytes"))?;
    Ok(length.to_be_bytes())
}
