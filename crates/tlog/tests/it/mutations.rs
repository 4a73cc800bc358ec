//! Seeded mutations of exported folders: each one is found, by our verifier and by one of another lineage, given the pinned key and the last checkpoint seen, and no untouched one is accused.
//!
//! `SOAK_CASES=n` of them (500), `SOAK_SEED=n` begins with another seed. With `TLOG_CASES=FOLDER` the folders and `cases.ndjson`, which says what each is, are kept
//! there for the outside judges (`tests/tlog`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use crate::cloudflare;
use crate::log::{Tree, export, leaves, signed, signer};
use crate::tamper::{Draw, Kind, TAMPERINGS, tamper};
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuledger_tlog::directory::{Trust, verify_directory};
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{self, Signer};
use gpuledger_tlog::policy::Policy;
use tempfile::TempDir;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Where the cases lie: kept, or in a folder that goes with the test.
struct Place {
    folder: PathBuf,
    kept: Option<File>,
    _own: Option<TempDir>,
}

impl Place {
    fn new() -> Result<Self> {
        if let Some(folder) = std::env::var_os("TLOG_CASES").map(PathBuf::from) {
            std::fs::create_dir_all(&folder)?;
            let kept = Some(File::create(folder.join("cases.ndjson"))?);
            return Ok(Self { folder, kept, _own: None });
        }
        let own = TempDir::new()?;
        Ok(Self { folder: own.path().to_path_buf(), kept: None, _own: Some(own) })
    }
}

#[test]
fn every_mutation_is_found_and_no_untouched_log_is_accused_l_7() -> Result<()> {
    let (cases, first) = (number("SOAK_CASES", 500), number("SOAK_SEED", 0));
    let mut place = Place::new()?;
    let mut met: BTreeMap<Kind, u64> = BTreeMap::new();
    for seed in first..first + cases {
        let kind = case(seed, &mut place)?;
        *met.entry(kind).or_default() += 1;
    }
    let counts: Vec<String> = met.iter().map(|(kind, count)| format!("{kind:?}={count}")).collect();
    println!("{cases} random cases: {}", counts.join(" "));
    ensure!(cases < 100 || met.len() == TAMPERINGS.len() + 1, "a kind never came up");
    Ok(())
}

/// One in eight is left untouched.
fn case(seed: u64, place: &mut Place) -> Result<Kind> {
    let mut draw = Draw(seed);
    let kind = match draw.below(8) {
        0 => Kind::Untouched,
        _ => TAMPERINGS[usize::try_from(draw.below(13))?],
    };
    let leaves = leaves(300 + draw.below(400), seed);
    let folder = place.folder.join(format!("{seed}"));
    std::fs::create_dir_all(&folder)?;
    let tree = Tree::new(&leaves);
    export(&folder, &leaves, &signer(1))?;
    // Against who has the key only a head that covers the change helps; else any earlier one will do.
    let resigns = [Kind::BackupRestored, Kind::CheckpointSmaller, Kind::HistoryResigned].contains(&kind);
    let seen = if resigns { tree.size } else { 1 + draw.below(tree.size) };
    let (last, last_note) = signed(&tree, seen, &signer(1));
    tamper(&folder, kind, &leaves, &mut draw)?;

    let key = signer(1);
    let policy = Policy::of_log(key.verifier().clone());
    let trust = Trust { last: Some(&last), ..Trust::new(key.verifier(), &policy) };
    let report = verify_directory(&folder, &trust, &mut ());
    ensure!(
        report.is_sound() == (kind == Kind::Untouched),
        "SOAK_SEED={seed}: {kind:?}, verdict {}: {:?}",
        report.is_sound(),
        report.faults
    );
    let judged = cloudflare::judge(&folder, &key.verifier().to_string(), last_note.as_bytes());
    ensure!(
        judged.is_ok() == (kind == Kind::Untouched),
        "SOAK_SEED={seed}: {kind:?}, the other lineage: {judged:?}"
    );
    let Some(kept) = &mut place.kept else {
        std::fs::remove_dir_all(&folder)?;
        return Ok(kind);
    };
    let mut line = serde_json::json!({"folder": seed.to_string(), "kind": format!("{kind:?}"), "key": key.verifier().to_string(), "last": last_note});
    if kind == Kind::Untouched {
        with_proofs(&mut line, &tree, &leaves, seen, &mut draw)?;
    }
    writeln!(kept, "{line}")?;
    Ok(kind)
}

/// Proofs of a leaf and from the head seen last, and the head with a cosignature: for the judges.
fn with_proofs(
    line: &mut serde_json::Value,
    tree: &Tree,
    leaves: &[Vec<u8>],
    seen: u64,
    draw: &mut Draw,
) -> Result<()> {
    let hashes = |proof: Vec<Hash>| proof.into_iter().map(Hash::to_base64).collect::<Vec<_>>();
    let index = draw.below(tree.size);
    let witness = Signer::from_seed("witness.example/test", note::Kind::Cosigner, &[5; 32])?;
    let (head, _) = signed(tree, tree.size, &signer(1));
    let text = head.text();
    let lines = [signer(1).sign(&text, 0), witness.sign(&text, 1_790_000_000)];
    line["index"] = index.into();
    line["entry"] = STANDARD.encode(&leaves[usize::try_from(index)?]).into();
    line["path"] = hashes(tree.inclusion(index, tree.size)).into();
    line["consistency"] = hashes(tree.consistency(seen, tree.size)).into();
    line["witness"] = witness.verifier().to_string().into();
    line["cosigned"] = note::compose(&text, &lines)?.into();
    Ok(())
}
