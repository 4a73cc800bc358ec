//! Tiles and proofs out of the database. Full tiles are stored; what is not full is made of leaves and of the roots of the tiles below it.

use gpuledger_storage::{PgConnection, StorageError, audit_log};
use gpuledger_tlog::bundle::ProofFile;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::tile::{HEIGHT, Tile, WIDTH, entries_path, fold, push_entry, tile_of};
use gpuledger_tlog::tree::{self, Node, TreeError};
use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Why a tile or a proof cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The database.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The tree has no such leaf or size.
    #[error("{asked} is not within the log of {size} leaves")]
    OutOfRange {
        /// What was asked for.
        asked: u64,
        /// Of which size.
        size: u64,
    },
    /// A leaf or a tile that must be there is not.
    #[error("the stored log lacks {0}")]
    Missing(String),
}

/// Hashes of a level of tiles: those of tile `index` that the tree of `size` leaves has.
///
/// # Errors
/// Some are missing, or the database.
pub async fn hashes(
    connection: &mut PgConnection,
    level: u8,
    index: u64,
    size: u64,
) -> Result<Vec<Hash>, StoredError> {
    let count = size.checked_shr(u32::from(level) * u32::from(HEIGHT)).unwrap_or(0);
    let first = index.saturating_mul(WIDTH);
    let width = count.saturating_sub(first).min(WIDTH);
    let name = || format!("tile {level}/{index} of {size} leaves");
    if width == 0 {
        return Err(StoredError::OutOfRange { asked: index, size });
    }
    let found: Vec<Hash> = match audit_log::tile(connection, i16::from(level), signed(index)?).await? {
        Some(bytes) => bytes.as_chunks::<32>().0.iter().map(|hash| Hash(*hash)).collect(),
        None => unfull(connection, level, first, width).await?,
    };
    let width = usize::try_from(width).unwrap_or(0);
    found.get(..width).map(<[Hash]>::to_vec).ok_or_else(|| StoredError::Missing(name()))
}

async fn unfull(
    connection: &mut PgConnection,
    level: u8,
    first: u64,
    width: u64,
) -> Result<Vec<Hash>, StoredError> {
    let (from, to) = (signed(first)?, signed(first + width)?);
    let Some(below) = level.checked_sub(1) else {
        let leaves = audit_log::leaf_bytes(connection, from, to).await?;
        return Ok(leaves.iter().map(|leaf| Hash::of_leaf(leaf)).collect());
    };
    let roots = audit_log::roots(connection, i16::from(below), from, to).await?;
    roots
        .into_iter()
        .map(|root| {
            root.try_into().map(Hash).map_err(|_| StoredError::Missing(format!("roots of level {below}")))
        })
        .collect()
}

/// The bytes of a tile that the tree of `size` leaves has; none where it has none of this width.
///
/// # Errors
/// The database.
pub async fn tile_bytes(
    connection: &mut PgConnection,
    tile: Tile,
    size: u64,
) -> Result<Option<Vec<u8>>, StoredError> {
    let width = usize::from(tile.width);
    match hashes(connection, tile.level, tile.index, size).await {
        Ok(hashes) => Ok(hashes.get(..width).map(gpuledger_tlog::tile::tile_bytes)),
        Err(StoredError::OutOfRange { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bundle of entries `index`, `width` of them; none where the log of `size` leaves has fewer.
///
/// # Errors
/// The database, or a leaf is missing.
pub async fn entries(
    connection: &mut PgConnection,
    index: u64,
    width: u16,
    size: u64,
) -> Result<Option<Vec<u8>>, StoredError> {
    let first = index.saturating_mul(WIDTH);
    let end = first.saturating_add(u64::from(width));
    if width == 0 || u64::from(width) > WIDTH || end > size {
        return Ok(None);
    }
    let leaves = audit_log::leaf_bytes(connection, signed(first)?, signed(end)?).await?;
    let mut bundle = Vec::new();
    let fits = leaves.iter().all(|leaf| push_entry(&mut bundle, leaf));
    if !fits || leaves.len() != usize::from(width) {
        return Err(StoredError::Missing(entries_path(index, width)));
    }
    Ok(Some(bundle))
}

/// The audit path of leaf `index` in the tree of `size` leaves.
///
/// # Errors
/// There is no such leaf, hashes are missing, or the database.
pub async fn inclusion(
    connection: &mut PgConnection,
    index: u64,
    size: u64,
) -> Result<Vec<Hash>, StoredError> {
    with_nodes(connection, size, |stored| tree::inclusion(index, size, stored)).await
}

/// The proof that the tree of `old` leaves is the beginning of that of `new` leaves.
///
/// # Errors
/// `old` is larger, hashes are missing, or the database.
pub async fn consistency(
    connection: &mut PgConnection,
    old: u64,
    new: u64,
) -> Result<Vec<Hash>, StoredError> {
    with_nodes(connection, new, |stored| tree::consistency(old, new, stored)).await
}

/// The root of the tree of `size` leaves, from stored hashes.
///
/// # Errors
/// Hashes are missing, or the database.
pub async fn root(connection: &mut PgConnection, size: u64) -> Result<Hash, StoredError> {
    with_nodes(connection, size, |stored| tree::root(size, stored).map_err(TreeError::Store)).await
}

type Stored<'a> = &'a dyn Fn(Node) -> Result<Hash, Node>;

/// Computes twice: once to see which nodes are wanted, then, with their tiles read, for good.
async fn with_nodes<T>(
    connection: &mut PgConnection,
    size: u64,
    compute: impl Fn(Stored<'_>) -> Result<T, TreeError<Node>>,
) -> Result<T, StoredError> {
    let wanted = wanted(&compute)?;
    let mut tiles: BTreeMap<(u8, u64), Vec<Hash>> = BTreeMap::new();
    let mut nodes: BTreeMap<Node, Hash> = BTreeMap::new();
    for node in wanted {
        let missing = || explain(TreeError::Store(node));
        let (tile, within) = tile_of(node, size).ok_or_else(missing)?;
        let place = (tile.level, tile.index);
        let hashes = match tiles.entry(place) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => unread.insert(hashes(connection, tile.level, tile.index, size).await?),
        };
        let hash = hashes.get(within).and_then(fold).ok_or_else(missing)?;
        nodes.insert(node, hash);
    }
    compute(&|node| nodes.get(&node).copied().ok_or(node)).map_err(explain)
}

fn wanted<T>(
    compute: impl Fn(Stored<'_>) -> Result<T, TreeError<Node>>,
) -> Result<BTreeSet<Node>, StoredError> {
    let wanted = RefCell::new(BTreeSet::new());
    let note = |node| {
        wanted.borrow_mut().insert(node);
        Ok(Hash([0; 32]))
    };
    compute(&note).map_err(explain)?;
    Ok(wanted.into_inner())
}

fn explain(error: TreeError<Node>) -> StoredError {
    match error {
        TreeError::OutOfRange { asked, size } => StoredError::OutOfRange { asked, size },
        TreeError::Store(node) => {
            StoredError::Missing(format!("the hash of node {}/{}", node.level, node.index))
        }
    }
}

/// The database counts in signed numbers.
fn signed(number: u64) -> Result<i64, StoredError> {
    i64::try_from(number).map_err(|_| StoredError::OutOfRange { asked: number, size: u64::MAX })
}

/// A published head as it is served: with the cosignatures that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Number of leaves.
    pub size: u64,
    /// The whole signed note.
    pub note: String,
}

/// The largest published head.
///
/// # Errors
/// The database.
pub async fn published(connection: &mut PgConnection) -> Result<Option<Published>, StoredError> {
    let Some(head) = audit_log::latest_checkpoint(connection).await? else { return Ok(None) };
    let mut note = String::from_utf8_lossy(&head.note).into_owned();
    for (_, line) in audit_log::cosignatures(connection, head.size).await? {
        note.push_str(&line);
    }
    Ok(Some(Published { size: u64::try_from(head.size).unwrap_or(0), note }))
}

/// The proof file of a leaf under the largest published head; none where that does not reach it. Proof and head are of one snapshot.
///
/// # Errors
/// Hashes are missing, or the database.
pub async fn proof(
    connection: &mut PgConnection,
    index: u64,
    extra: Option<Vec<u8>>,
) -> Result<Option<ProofFile>, StoredError> {
    let Some(head) = published(connection).await? else { return Ok(None) };
    if index >= head.size {
        return Ok(None);
    }
    let path = inclusion(connection, index, head.size).await?;
    Ok(Some(ProofFile { extra, index, path, checkpoint: head.note }))
}
