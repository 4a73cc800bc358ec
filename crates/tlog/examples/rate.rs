//! How fast an exported folder is verified: a million leaves of 400 bytes, on one thread. The last line is the result.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::time::Instant;

use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::directory::{Trust, verify_directory};
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Signer, compose};
use gpuledger_tlog::policy::Policy;
use gpuledger_tlog::tile::{WIDTH, entries_path, fold, new_tiles, push_entry, tile_bytes};

const LEAVES: u64 = 1 << 20;
const LEAF_BYTES: usize = 400;
/// The best of these counts: the first one reads files that are not in the page cache yet.
const ROUNDS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::TempDir::new()?;
    let key = Signer::from_seed("rate.example/log", Kind::Ed25519, &[1; 32])?;
    export(folder.path(), &key)?;
    let policy = Policy::of_log(key.verifier().clone());
    let mut best = 0;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let report = verify_directory(folder.path(), &Trust::new(key.verifier(), &policy), &mut ());
        let took_us = began.elapsed().as_micros().max(1);
        if !report.is_sound() || report.leaves != LEAVES {
            return Err(format!("not verified: {:?}", report.faults).into());
        }
        best = best.max(u128::from(LEAVES) * 1_000_000 / took_us);
    }
    writeln!(
        io::stdout(),
        "RESULT verify-rate leaves={LEAVES} leaf_bytes={LEAF_BYTES} verify_leaves_per_second={best}"
    )?;
    Ok(())
}

/// Writes whole tiles only: the number of leaves is a power of 256 times 16.
fn export(folder: &std::path::Path, key: &Signer) -> Result<(), Box<dyn Error>> {
    let mut levels: Vec<Vec<Hash>> = vec![Vec::new()];
    for bundle in 0..LEAVES / WIDTH {
        let mut bytes = Vec::new();
        for index in bundle * WIDTH..(bundle + 1) * WIDTH {
            let entry = format!("{index:LEAF_BYTES$}");
            push_entry(&mut bytes, entry.as_bytes());
            levels[0].push(Hash::of_leaf(entry.as_bytes()));
        }
        put(folder, &entries_path(bundle, 256), &bytes)?;
    }
    while let Some(above) =
        levels.last().map(|below| below.chunks_exact(256).filter_map(fold).collect::<Vec<_>>())
    {
        if above.is_empty() {
            break;
        }
        levels.push(above);
    }
    for tile in new_tiles(0, LEAVES) {
        let first = usize::try_from(tile.index * WIDTH)?;
        let hashes = &levels[usize::from(tile.level)][first..first + usize::from(tile.width)];
        put(folder, &tile.path(), &tile_bytes(hashes))?;
    }
    let top = levels.last().and_then(|top| fold(top)).unwrap_or_else(Hash::of_empty_tree);
    let text = Checkpoint { origin: key.verifier().name().to_owned(), size: LEAVES, root: top }.text();
    put(folder, "checkpoint", compose(&text, &[key.sign(&text, 0)])?.as_bytes())
}

fn put(folder: &std::path::Path, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, bytes)?)
}
