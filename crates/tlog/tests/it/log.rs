//! A log for tests: its leaves, its tree, and the folder that it is exported to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Signer, compose};
use gpuledger_tlog::tile::{WIDTH, entries_path, new_places, new_tiles, push_entry, tile_bytes};
use gpuledger_tlog::tree::{self, Node};

pub(crate) const ORIGIN: &str = "log.example/test";

/// Leaves that all differ.
pub(crate) fn leaves(count: u64, salt: u64) -> Vec<Vec<u8>> {
    let length = |index: u64| usize::try_from(index * 7 % 23).unwrap_or(0);
    (0..count)
        .map(|index| format!("leaf {salt} {index} {}", "x".repeat(length(index))).into_bytes())
        .collect()
}

/// The tree over some leaves.
pub(crate) struct Tree {
    pub(crate) size: u64,
    stored: BTreeMap<Node, Hash>,
}

impl Tree {
    pub(crate) fn new(leaves: &[Vec<u8>]) -> Self {
        let mut tree = Self { size: 0, stored: BTreeMap::new() };
        for leaf in leaves {
            let Ok(new) = tree::append(tree.size, Hash::of_leaf(leaf), |node| tree.at(node));
            tree.stored.extend(new);
            tree.size += 1;
        }
        tree
    }

    pub(crate) fn at(&self, node: Node) -> Result<Hash, Infallible> {
        Ok(*self.stored.get(&node).expect("only complete nodes are asked for"))
    }

    pub(crate) fn root(&self, size: u64) -> Hash {
        let Ok(root) = tree::root(size, |node| self.at(node));
        root
    }

    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Vec<Hash> {
        tree::inclusion(index, size, |node| self.at(node)).expect("within the tree")
    }

    pub(crate) fn consistency(&self, old: u64, new: u64) -> Vec<Hash> {
        tree::consistency(old, new, |node| self.at(node)).expect("within the tree")
    }
}

pub(crate) fn signer(seed: u8) -> Signer {
    Signer::from_seed(ORIGIN, Kind::Ed25519, &[seed; 32]).expect("a seed of 32 bytes")
}

/// The signed head of the first `size` leaves.
pub(crate) fn signed(tree: &Tree, size: u64, key: &Signer) -> (Checkpoint, String) {
    let checkpoint = Checkpoint { origin: ORIGIN.to_owned(), size, root: tree.root(size) };
    let text = checkpoint.text();
    let note = compose(&text, &[key.sign(&text, 0)]).expect("a text with a line end");
    (checkpoint, note)
}

/// Writes the tiles and the signed head of all leaves into an empty folder.
pub(crate) fn export(folder: &Path, leaves: &[Vec<u8>], key: &Signer) -> Result<Checkpoint> {
    let tree = Tree::new(leaves);
    for tile in new_tiles(0, tree.size) {
        let hashes: Vec<Hash> = tile.nodes().map(|node| tree.at(node)).collect::<Result<_, _>>()?;
        put(folder, &tile.path(), &tile_bytes(&hashes))?;
    }
    for (index, width) in new_places(0, tree.size) {
        put(folder, &entries_path(index, width), &bundle(leaves, index)?)?;
    }
    let (checkpoint, note) = signed(&tree, tree.size, key);
    put(folder, "checkpoint", note.as_bytes())?;
    put(folder, "policy", format!("log {}\nquorum none\n", key.verifier()).as_bytes())?;
    Ok(checkpoint)
}

/// The bundle of entries with this index.
pub(crate) fn bundle(leaves: &[Vec<u8>], index: u64) -> Result<Vec<u8>> {
    let (first, width) = (usize::try_from(index * WIDTH)?, usize::try_from(WIDTH)?);
    let mut bytes = Vec::new();
    for leaf in leaves.iter().skip(first).take(width) {
        ensure!(push_entry(&mut bytes, leaf), "the leaf is too long");
    }
    Ok(bytes)
}

pub(crate) fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)?;
    Ok(())
}
