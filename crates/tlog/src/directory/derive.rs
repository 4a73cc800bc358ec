//! The tree derived from the entries, and every tile compared with it.

use super::edge::{Edge, first_leaf};
use super::files::{CHECKPOINT, Files};
use super::{Report, Trust, Watch};
use crate::hash::Hash;
use crate::tile::{Tile, WIDTH, entries_path, fold};
use std::path::Path;

/// Bytes of the longest bundle: 256 entries of 65,535 bytes and their lengths.
const BUNDLE_BYTES_MAX: u64 = 256 * 65_537;
/// Bytes of a full tile.
const TILE_BYTES: u64 = 256 * 32;

/// Reads all entries and compares all tiles; the root that follows, or none where reading ended early.
pub(super) fn log(
    folder: &Path,
    size: u64,
    trust: &Trust<'_>,
    watch: &mut impl Watch,
    report: &mut Report,
) -> Option<Hash> {
    let mut edge = Edge::new();
    let mut reading = Reading { files: Files::new(folder), report, hashes: [Hash([0; 32]); 256] };
    compare_last(&edge, &[], 0, trust, reading.report);
    for bundle in 0..size.div_ceil(WIDTH) {
        let first = bundle * WIDTH;
        let width = u16::try_from((size - first).min(WIDTH)).unwrap_or(256);
        let tile = Tile { level: 0, index: bundle, width };
        reading.leaves(tile, trust.wants(bundle), watch);
        let hashes = reading.hashes;
        let hashes = hashes.get(..usize::from(width)).unwrap_or_default();
        compare_last(&edge, hashes, first, trust, reading.report);
        watch.progress(first + u64::from(width), size);
        if reading.report.is_hopeless() {
            return None;
        }
        match fold(hashes).filter(|_| u64::from(width) == WIDTH) {
            Some(over) => edge.push(over, |tile, hashes| reading.compare(tile, hashes)),
            None => {
                edge.finish(|tile, hashes| reading.compare(tile, hashes));
                return Some(edge.root(hashes));
            }
        }
    }
    edge.finish(|tile, hashes| reading.compare(tile, hashes));
    Some(edge.root(&[]))
}

/// Compares the root at the size that was seen before, if that size ends among these hashes, which follow `first` leaves.
fn compare_last(edge: &Edge, hashes: &[Hash], first: u64, trust: &Trust<'_>, report: &mut Report) {
    let Some(last) = trust.last else { return };
    let within = last.size.checked_sub(first).and_then(|within| usize::try_from(within).ok());
    // A size that ends with the tile before was compared there; the empty tree has no tile before.
    let within = within.filter(|within| *within > 0 || (first == 0 && hashes.is_empty()));
    let Some(hashes) = within.and_then(|within| hashes.get(..within)) else { return };
    if edge.root(hashes) != last.root {
        let why = format!(
            "its first {} leaves are not those of the checkpoint seen before: history was rewritten",
            last.size
        );
        report.fault(CHECKPOINT, None, why);
    }
}

struct Reading<'r> {
    files: Files<'r>,
    report: &'r mut Report,
    /// Of the leaves of one tile.
    hashes: [Hash; 256],
}

impl Reading<'_> {
    /// Hashes of the leaves of one tile, from its entries where they are to be had and else from the tile; the two are compared.
    fn leaves(&mut self, tile: Tile, with_entries: bool, watch: &mut impl Watch) {
        let path = tile.path();
        let first = tile.index * WIDTH;
        let width = usize::from(tile.width);
        self.report.tiles += 1;
        let stored = self.files.tile(&path, TILE_BYTES);
        let stored = stored.map_err(|why| self.report.fault(path.as_str(), Some(first), why));
        let stored: Vec<Hash> = match stored {
            Ok(bytes) if bytes.len() == width * 32 => bytes.as_chunks().0.iter().copied().map(Hash).collect(),
            Ok(bytes) => {
                let why = format!("it has {} bytes; {} hashes of 32 are right", bytes.len(), tile.width);
                self.report.fault(path.as_str(), Some(first), why);
                Vec::new()
            }
            Err(()) => Vec::new(),
        };
        self.hashes = [Hash([0; 32]); 256];
        for (hash, stored) in self.hashes.iter_mut().zip(&stored) {
            *hash = *stored;
        }
        if with_entries {
            self.entries(tile, &stored, watch);
        }
    }

    fn entries(&mut self, tile: Tile, stored: &[Hash], watch: &mut impl Watch) {
        let path = entries_path(tile.index, tile.width);
        let first = tile.index * WIDTH;
        let mut bytes = match self.files.entries(&path, BUNDLE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(why) => return self.report.fault(path, Some(first), why),
        };
        let mut differs = false;
        for (index, place) in (first..).zip(0..usize::from(tile.width)) {
            let Some((entry, rest)) = next_entry(bytes) else {
                let why = format!("the bundle ends within it or before it; {} entries are right", tile.width);
                return self.report.fault(path, Some(index), why);
            };
            bytes = rest;
            self.report.leaves += 1;
            let hash = Hash::of_leaf(entry);
            if let Some(kept) = self.hashes.get_mut(place) {
                *kept = hash;
            }
            match stored.get(place) {
                Some(stored) if *stored == hash => {
                    if let Err(why) = watch.entry(index, entry) {
                        self.report.fault(path.as_str(), Some(index), why);
                    }
                }
                // Where a row was lost or came in between, all that follow differ: one fault a bundle says it.
                Some(_) if !differs => {
                    differs = true;
                    let why = format!("the entry does not have the hash that {} has", tile.path());
                    self.report.fault(path.as_str(), Some(index), why);
                }
                _ => {}
            }
        }
        if !bytes.is_empty() {
            let why = format!("bytes follow its {} entries", tile.width);
            self.report.fault(path, Some(first + u64::from(tile.width)), why);
        }
    }

    /// Compares a tile above the leaves with what the entries make of it.
    fn compare(&mut self, tile: Tile, derived: &[Hash]) {
        let path = tile.path();
        self.report.tiles += 1;
        let bytes = match self.files.tile(&path, TILE_BYTES) {
            Ok(bytes) => bytes,
            Err(why) => return self.report.fault(path, first_leaf(tile, 0), why),
        };
        let (stored, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() || stored.len() != derived.len() {
            let why = format!("it has {} bytes; {} hashes of 32 are right", bytes.len(), derived.len());
            return self.report.fault(path, first_leaf(tile, 0), why);
        }
        let differs = stored.iter().zip(derived).position(|(stored, derived)| *stored != derived.0);
        if let Some(place) = differs {
            let why = format!("hash {place} is not that of the leaves below it");
            let (first, end) = (first_leaf(tile, place), first_leaf(tile, place + 1));
            // What was found among these leaves before is the nearer name of the same fault.
            let known = self
                .report
                .first_bad_index
                .filter(|bad| first <= Some(*bad) && end.is_none_or(|end| *bad < end));
            self.report.fault(path, known.or(first), why);
        }
    }
}

fn next_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
