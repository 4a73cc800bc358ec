//! What can be done to an exported log. Each kind changes a whole folder as somebody would who has the files, and for some kinds the key too.

use std::fs;
use std::path::{Path, PathBuf};

use crate::log::{Tree, bundle, export, put, signed, signer};
use anyhow::{Context as _, Result};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::tile::{WIDTH, entries_path, new_places, new_tiles, tile_bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Untouched,
    RowEdited,
    RowEditedWithTile,
    RowDeleted,
    RowInserted,
    RowsSwapped,
    TailCut,
    BackupRestored,
    TileBitFlipped,
    CheckpointOfOtherKey,
    CheckpointSmaller,
    HistoryResigned,
    KeySwapped,
    IndexRenumbered,
}

/// All but `Untouched`.
pub(crate) const TAMPERINGS: [Kind; 13] = [
    Kind::RowEdited,
    Kind::RowEditedWithTile,
    Kind::RowDeleted,
    Kind::RowInserted,
    Kind::RowsSwapped,
    Kind::TailCut,
    Kind::BackupRestored,
    Kind::TileBitFlipped,
    Kind::CheckpointOfOtherKey,
    Kind::CheckpointSmaller,
    Kind::HistoryResigned,
    Kind::KeySwapped,
    Kind::IndexRenumbered,
];

/// Drawn numbers (splitmix64), the same for one seed everywhere.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap_or(1))).unwrap_or(0)
    }
}

/// Spoils the exported log of these leaves, which are 300 or more. Changes to leaves without the key lie before the size seen last or leave the
/// signed head as it is.
pub(crate) fn tamper(folder: &Path, kind: Kind, leaves: &[Vec<u8>], draw: &mut Draw) -> Result<()> {
    let mut changed = leaves.to_vec();
    let at = draw.place(leaves.len());
    match kind {
        Kind::Untouched => Ok(()),
        Kind::RowEdited => {
            edit(&mut changed[at], draw);
            entries(folder, &changed, leaves.len())
        }
        Kind::RowEditedWithTile => {
            edit(&mut changed[at], draw);
            entries(folder, &changed, leaves.len())?;
            lowest_tiles(folder, &changed)
        }
        Kind::RowDeleted => {
            changed.remove(at);
            rewrite(folder, &changed, leaves.len(), draw)
        }
        Kind::RowInserted => {
            changed.insert(at, format!("inserted {}", draw.0).into_bytes());
            rewrite(folder, &changed, leaves.len(), draw)
        }
        Kind::RowsSwapped => {
            let other = (at + 1 + draw.place(leaves.len() - 1)) % leaves.len();
            changed.swap(at, other);
            rewrite(folder, &changed, leaves.len(), draw)
        }
        Kind::TailCut => {
            changed.truncate(at);
            let checkpoint = fs::read(folder.join("checkpoint"))?;
            fs::remove_dir_all(folder.join("tile"))?;
            export(folder, &changed, &signer(1))?;
            put(folder, "checkpoint", &checkpoint)
        }
        Kind::BackupRestored => {
            changed.truncate(at);
            fs::remove_dir_all(folder.join("tile"))?;
            export(folder, &changed, &signer(1)).map(|_| ())
        }
        Kind::TileBitFlipped => {
            let tiles = hashes_files(folder)?;
            let path = tiles.get(draw.place(tiles.len())).context("the log has tiles")?;
            let mut bytes = fs::read(path)?;
            let place = draw.place(bytes.len());
            bytes[place] ^= 1 << draw.below(8);
            Ok(fs::write(path, bytes)?)
        }
        Kind::CheckpointOfOtherKey => {
            let tree = Tree::new(leaves);
            put(folder, "checkpoint", signed(&tree, tree.size, &signer(2)).1.as_bytes())
        }
        Kind::CheckpointSmaller => {
            let size = u64::try_from(at)?;
            put(folder, "checkpoint", signed(&Tree::new(leaves), size, &signer(1)).1.as_bytes())
        }
        Kind::HistoryResigned => {
            edit(&mut changed[at], draw);
            again(folder, &changed, 1)
        }
        Kind::KeySwapped => again(folder, leaves, 2),
        Kind::IndexRenumbered => {
            let (one, other) =
                (folder.join(entries_path(0, 256)), folder.join(entries_path(1, full(leaves.len()))));
            let (first, second) = (fs::read(&one)?, fs::read(&other)?);
            fs::write(one, second)?;
            Ok(fs::write(other, first)?)
        }
    }
}

/// Width of the second bundle.
fn full(leaves: usize) -> u16 {
    u16::try_from((leaves - 256).min(256)).unwrap_or(256)
}

fn edit(leaf: &mut [u8], draw: &mut Draw) {
    let place = draw.place(leaf.len());
    leaf[place] ^= 1 << draw.below(8);
}

/// Bundles of the changed leaves, under the names that the old number of leaves asks for.
fn entries(folder: &Path, changed: &[Vec<u8>], before: usize) -> Result<()> {
    for (index, width) in new_places(0, u64::try_from(before)?) {
        put(folder, &entries_path(index, width), &bundle(changed, index)?)?;
    }
    Ok(())
}

fn lowest_tiles(folder: &Path, changed: &[Vec<u8>]) -> Result<()> {
    for tile in new_tiles(0, u64::try_from(changed.len())?).into_iter().filter(|tile| tile.level == 0) {
        let first = usize::try_from(tile.index * WIDTH)?;
        let leaves = changed.iter().skip(first).take(usize::from(tile.width));
        let hashes: Vec<Hash> = leaves.map(|leaf| Hash::of_leaf(leaf)).collect();
        put(folder, &tile.path(), &tile_bytes(&hashes))?;
    }
    Ok(())
}

/// Without the key: the entries alone, or every tile made anew, under the old signed head.
fn rewrite(folder: &Path, changed: &[Vec<u8>], before: usize, draw: &mut Draw) -> Result<()> {
    if draw.below(2) == 0 {
        return entries(folder, changed, before);
    }
    let checkpoint = fs::read(folder.join("checkpoint"))?;
    again(folder, changed, 1)?;
    put(folder, "checkpoint", &checkpoint)
}

/// The whole log made anew, signed by a key.
fn again(folder: &Path, leaves: &[Vec<u8>], seed: u8) -> Result<()> {
    fs::remove_dir_all(folder.join("tile"))?;
    export(folder, leaves, &signer(seed)).map(|_: Checkpoint| ())
}

/// Files of hashes, sorted.
fn hashes_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.join("tile")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() {
                found.push(path);
            } else if path.file_name().is_some_and(|name| name != "entries") {
                open.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
