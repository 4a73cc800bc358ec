//! Exported folders, whole ones and spoilt ones: what the report says.

use std::fs;
use std::path::Path;

use crate::log::{bundle, export, leaves, put, signer};
use anyhow::Result;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::directory::{Report, Trust, Watch, verify_directory};
use gpuledger_tlog::policy::Policy;
use gpuledger_tlog::tile::entries_path;
use tempfile::TempDir;

fn verify(folder: &Path, last: Option<&Checkpoint>) -> Report {
    let key = signer(1);
    let policy = Policy::of_log(key.verifier().clone());
    verify_directory(folder, &Trust { last, ..Trust::new(key.verifier(), &policy) }, &mut ())
}

fn of(size: u64) -> Result<(TempDir, Vec<Vec<u8>>, Checkpoint)> {
    let folder = TempDir::new()?;
    let leaves = leaves(size, 0);
    let checkpoint = export(folder.path(), &leaves, &signer(1))?;
    Ok((folder, leaves, checkpoint))
}

#[test]
fn whole_logs_of_many_sizes_are_sound_and_continue_each_other_l_4() -> Result<()> {
    let mut last: Option<Checkpoint> = None;
    for size in [0, 1, 2, 255, 256, 257, 511, 512, 513, 700, 65_535, 65_536, 65_537, 70_000] {
        let (folder, _, checkpoint) = of(size)?;
        let report = verify(folder.path(), last.as_ref());
        assert!(report.is_sound(), "size {size}: {:?}", report.faults);
        assert_eq!((report.leaves, &report.checkpoint), (size, &Some(checkpoint.clone())));
        last = Some(checkpoint);
    }
    Ok(())
}

#[test]
fn an_edited_entry_is_named_by_its_index() -> Result<()> {
    let (folder, mut leaves, _) = of(600)?;
    leaves[300][0] ^= 1;
    put(folder.path(), &entries_path(1, 256), &bundle(&leaves, 1)?)?;
    let report = verify(folder.path(), None);
    assert_eq!(report.first_bad_index, Some(300));
    assert_eq!(report.faults[0].file, "tile/entries/001");
    assert!(!report.is_sound());
    Ok(())
}

#[test]
fn a_turned_bit_of_a_tile_is_named_by_its_leaf() -> Result<()> {
    for (name, bit, leaf) in [("tile/0/001", 32 * 8 * 3, 259), ("tile/1/000.p/2", 32 * 8, 256)] {
        let (folder, ..) = of(600)?;
        let mut bytes = fs::read(folder.path().join(name))?;
        bytes[bit / 8] ^= 1;
        put(folder.path(), name, &bytes)?;
        let report = verify(folder.path(), None);
        assert_eq!((report.first_bad_index, report.faults_total), (Some(leaf), 1), "{:?}", report.faults);
    }
    Ok(())
}

#[test]
fn a_shrunk_log_and_a_rewritten_one_are_seen_by_the_checkpoint_seen_before_l_4() -> Result<()> {
    let (old, ..) = of(600)?;
    let (_, _, seen) = of(700)?;
    assert!(verify(old.path(), None).is_sound());
    let report = verify(old.path(), Some(&seen));
    assert_eq!(report.first_bad_index, Some(600), "{:?}", report.faults);
    // Rewritten by who has the key: only memory of the old head tells.
    for size in [700, 701, 1000] {
        let rewritten = TempDir::new()?;
        let mut other = leaves(size, 0);
        other[42].push(b'!');
        export(rewritten.path(), &other, &signer(1))?;
        assert!(verify(rewritten.path(), None).is_sound());
        assert!(!verify(rewritten.path(), Some(&seen)).is_sound(), "size {size}");
    }
    Ok(())
}

#[test]
fn a_file_too_many_and_a_file_too_few_are_faults() -> Result<()> {
    for name in [
        "tile/0/002.p/80",
        "tile/0/003",
        "tile/entries/002.p/87",
        "tile/2/000.p/1",
        "tile/0/0",
        "notes.txt",
        "checkpoint.old",
    ] {
        let (folder, ..) = of(600)?;
        put(folder.path(), name, b"x")?;
        let report = verify(folder.path(), None);
        assert_eq!((report.faults_total, report.faults[0].file.as_str()), (1, name));
    }
    for name in ["tile/0/001", "tile/1/000.p/2", "tile/entries/002.p/88", "checkpoint"] {
        let (folder, ..) = of(600)?;
        fs::remove_file(folder.path().join(name))?;
        let report = verify(folder.path(), None);
        assert_eq!((report.is_sound(), report.faults[0].file.as_str()), (false, name));
    }
    Ok(())
}

#[test]
fn a_policy_of_another_key_and_a_missing_quorum_are_faults() -> Result<()> {
    let (folder, ..) = of(3)?;
    put(folder.path(), "policy", format!("log {}\nquorum none\n", signer(2).verifier()).as_bytes())?;
    assert_eq!(verify(folder.path(), None).faults[0].file, "policy");
    let (folder, ..) = of(3)?;
    let witness =
        gpuledger_tlog::note::Signer::from_seed("w/a", gpuledger_tlog::note::Kind::Cosigner, &[3; 32])?;
    let policy = Policy::parse(&format!("witness a {}\nquorum a\n", witness.verifier()))?;
    let key = signer(1);
    let report = verify_directory(folder.path(), &Trust::new(key.verifier(), &policy), &mut ());
    assert_eq!((report.is_sound(), report.faults[0].file.as_str()), (false, "checkpoint"));
    Ok(())
}

#[test]
fn a_part_of_the_entries_is_verified_where_only_a_part_was_exported() -> Result<()> {
    let (folder, ..) = of(1000)?;
    fs::remove_file(folder.path().join("tile/entries/000"))?;
    fs::remove_file(folder.path().join("tile/entries/003.p/232"))?;
    let key = signer(1);
    let policy = Policy::of_log(key.verifier().clone());
    let part = |leaves| Trust { leaves: Some(leaves), ..Trust::new(key.verifier(), &policy) };
    let report = verify_directory(folder.path(), &part(256..700), &mut ());
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(report.leaves, 512);
    assert_eq!(verify_directory(folder.path(), &part(0..700), &mut ()).faults_total, 1);
    assert_eq!(verify_directory(folder.path(), &part(256..257), &mut ()).faults[0].file, "tile/entries/002");
    Ok(())
}

/// Counts what it is told, and refuses one entry.
#[derive(Default)]
struct Counting {
    entries: u64,
    last: (u64, u64),
}

impl Watch for Counting {
    fn entry(&mut self, index: u64, entry: &[u8]) -> Result<(), String> {
        assert_eq!(index, self.entries);
        assert!(entry.starts_with(format!("leaf 0 {index} ").as_bytes()));
        self.entries += 1;
        if index == 77 { Err("not of this house".to_owned()) } else { Ok(()) }
    }

    fn progress(&mut self, leaves: u64, size: u64) {
        assert!(leaves > self.last.0);
        self.last = (leaves, size);
    }
}

#[test]
fn entries_are_handed_over_in_order_and_their_reader_may_refuse() -> Result<()> {
    let (folder, ..) = of(300)?;
    let key = signer(1);
    let policy = Policy::of_log(key.verifier().clone());
    let mut counting = Counting::default();
    let report = verify_directory(folder.path(), &Trust::new(key.verifier(), &policy), &mut counting);
    assert_eq!((counting.entries, counting.last), (300, (300, 300)));
    assert_eq!((report.first_bad_index, report.faults_total), (Some(77), 1));
    Ok(())
}

#[test]
fn a_size_that_no_folder_has_ends() -> Result<()> {
    let folder = TempDir::new()?;
    let key = signer(1);
    let text = format!("log.example/test\n{}\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", u64::MAX);
    let note = gpuledger_tlog::note::compose(&text, &[key.sign(&text, 0)])?;
    put(folder.path(), "checkpoint", note.as_bytes())?;
    let report = verify(folder.path(), None);
    assert_eq!(report.first_bad_index, Some(0));
    assert!(report.faults_total >= 100_000 && report.faults.len() == 100);
    Ok(())
}
