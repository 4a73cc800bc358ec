//! A judge of another lineage: `signed_note` and `tlog_tiles`, ports of Go's `golang.org/x/mod/sumdb`, on what our code wrote.

use std::fs;
use std::path::Path;

use crate::log::{Tree, leaves, signed, signer};
use anyhow::{Context as _, Result, anyhow, ensure};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use proptest::prelude::*;
use signed_note::{Note, StandardVerifier, VerifierList};
use tlog_tiles::{HashReader, Tile};

/// All stored hashes in their order, as Go's log keeps them.
struct Stored(Vec<tlog_tiles::Hash>);

impl HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        let at = |index: &u64| usize::try_from(*index).ok().and_then(|index| self.0.get(index)).copied();
        indexes.iter().map(at).collect::<Option<_>>().ok_or(tlog_tiles::Error::IndexesNotInTree)
    }
}

fn open(note: &[u8], key: &str) -> Result<tlog_tiles::Checkpoint> {
    let verifier = StandardVerifier::new(key).map_err(|error| anyhow!("{error:?}"))?;
    let note = Note::from_bytes(note).map_err(|error| anyhow!("{error:?}"))?;
    let known = VerifierList::new(vec![Box::new(verifier)]);
    note.verify(&known).map_err(|error| anyhow!("{error:?}"))?;
    let checkpoint = tlog_tiles::Checkpoint::from_bytes(note.text()).map_err(|error| anyhow!("{error}"))?;
    ensure!(Some(checkpoint.origin()) == key.split('+').next(), "another log");
    Ok(checkpoint)
}

/// Verifies an exported folder: its head, the tree over its entries, every tile, and that it extends the last head.
///
/// Everything is derived from the entries. `TileHashReader` of version 0.2.0 is not asked: through it an entry edited together with its tile passed in one of the
/// mutations.
pub(crate) fn judge(folder: &Path, key: &str, last: &[u8]) -> Result<()> {
    let (head, last) = (open(&fs::read(folder.join("checkpoint"))?, key)?, open(last, key)?);
    ensure!(last.size() <= head.size(), "the log shrank");
    let mut stored = Stored(Vec::new());
    let tiles = Tile::new_tiles(8, 0, head.size());
    for tile in tiles.iter().filter(|tile| tile.level() == 0) {
        let bytes = fs::read(folder.join(tile.path().replacen("tile/8/0/", "tile/entries/", 1)))?;
        append(&mut stored, &bytes, tile.level_index() * 256, tile.width())?;
    }
    ensure!(tlog_tiles::tree_hash(head.size(), &stored)? == *head.hash(), "the entries have another root");
    for tile in tiles {
        // Under C2SP's name: that of Go has the height besides.
        let bytes = fs::read(folder.join(tile.path().replacen("tile/8/", "tile/", 1)))?;
        ensure!(tile.read_data(&stored)? == bytes, "{} is not that of the entries", tile.path());
    }
    let proof = tlog_tiles::prove_tree(head.size(), last.size(), &stored)?;
    tlog_tiles::check_tree(&proof, head.size(), *head.hash(), last.size(), *last.hash())?;
    Ok(())
}

/// Appends the entries of a bundle.
fn append(stored: &mut Stored, mut bytes: &[u8], first: u64, width: u32) -> Result<()> {
    for index in first..first + u64::from(width) {
        let (length, rest) = bytes.split_first_chunk::<2>().context("too few entries")?;
        let (entry, rest) =
            rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).context("a cut entry")?;
        let new = tlog_tiles::stored_hashes(index, entry, &*stored)?;
        stored.0.extend(new);
        bytes = rest;
    }
    ensure!(bytes.is_empty(), "too many entries");
    Ok(())
}

fn theirs(hashes: &[Hash]) -> Vec<tlog_tiles::Hash> {
    hashes.iter().map(|hash| tlog_tiles::Hash(hash.0)).collect()
}

#[test]
fn our_proofs_are_accepted_by_the_other_lineage_l_2() {
    let leaves = leaves(40, 3);
    let tree = Tree::new(&leaves);
    let root = |size| tlog_tiles::Hash(tree.root(size).0);
    for size in 1..=40 {
        for (index, leaf) in (0..size).zip(&leaves) {
            let path = theirs(&tree.inclusion(index, size));
            let leaf = tlog_tiles::record_hash(leaf);
            assert!(
                tlog_tiles::check_record(&path, size, root(size), index, leaf).is_ok(),
                "{index} of {size}"
            );
        }
        for old in 1..=size {
            let proof = theirs(&tree.consistency(old, size));
            assert!(
                tlog_tiles::check_tree(&proof, size, root(size), old, root(old)).is_ok(),
                "{old} to {size}"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_note_that_we_open_is_opened_by_the_other_lineage(place in any::<prop::sample::Index>(), with in "[\\PC\n]{0,2}", length in 0_usize..3) {
        let (_, note) = signed(&Tree::new(&leaves(5, 0)), 5, &signer(1));
        let mut bytes = note.into_bytes();
        let from = place.index(bytes.len());
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, with.bytes());
        let key = signer(1);
        if let Ok((ours, _)) = Checkpoint::open(&bytes, key.verifier(), &[]) {
            let other = open(&bytes, &key.verifier().to_string());
            prop_assert!(other.is_ok_and(|other| (other.size(), other.hash().0) == (ours.size, ours.root.0)));
        }
    }
}
