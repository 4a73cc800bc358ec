//! No parser panics, whatever the bytes; what reads is written as it was read.

use crate::log::{Tree, leaves, signed, signer};
use gpuledger_tlog::bundle::ProofFile;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::note::{Note, Verifier};
use gpuledger_tlog::policy::Policy;
use gpuledger_tlog::tile::{Named, entries_path, push_entry, read_entries, read_path, read_tile};
use proptest::prelude::*;

fn read_all(bytes: &[u8]) {
    let key = signer(1);
    drop(Note::parse(bytes).map(|note| note.verify(std::slice::from_ref(key.verifier())).is_ok()));
    drop(Checkpoint::open(bytes, key.verifier(), &[]));
    drop(read_tile(bytes, 256));
    let text = String::from_utf8_lossy(bytes);
    drop(Policy::parse(&text));
    if let Ok(checkpoint) = Checkpoint::parse(&text) {
        assert!(text.starts_with(&checkpoint.text()));
    }
    if let Ok(key) = Verifier::parse(&text) {
        assert_eq!(key.to_string(), text);
    }
    if let Ok(file) = ProofFile::parse(&text) {
        assert_eq!(file.text(), text);
    }
    match read_path(&text) {
        Some(Named::Hashes(tile)) => assert_eq!(tile.path(), text),
        Some(Named::Entries { index, width }) => assert_eq!(entries_path(index, width), text),
        None => {}
    }
    for width in [1, 2, 256] {
        if let Some(entries) = read_entries(bytes, width) {
            let mut again = Vec::new();
            assert!(entries.iter().all(|entry| push_entry(&mut again, entry)));
            assert_eq!(again, bytes);
        }
    }
}

/// Good texts of every kind, to be spoilt.
fn good() -> Vec<Vec<u8>> {
    let leaves = leaves(5, 0);
    let tree = Tree::new(&leaves);
    let (checkpoint, note) = signed(&tree, 5, &signer(1));
    let file =
        ProofFile { extra: Some(vec![1, 2]), index: 3, path: tree.inclusion(3, 5), checkpoint: note.clone() };
    let key = signer(1).verifier().to_string();
    let policy = format!("log {key}\ngroup g 1 a\nquorum none\n");
    let mut bundle = Vec::new();
    assert!(push_entry(&mut bundle, &leaves[0]) && push_entry(&mut bundle, &leaves[1]));
    let texts = [
        note,
        checkpoint.text(),
        file.text(),
        key,
        policy,
        "tile/0/x001/000.p/7".to_owned(),
        "tile/entries/x001/x234/067".to_owned(),
    ];
    texts.into_iter().map(String::into_bytes).chain([bundle]).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn spoilt_texts_are_read_without_a_panic(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[\\PC\n\u{2014}+ 0-9]{0,3}"), 1..4),
    ) {
        let mut bytes = which.get(&good()).clone();
        for (from, length, with) in cuts {
            let from = from.index(bytes.len() + 1);
            let to = (from + length.index(6)).min(bytes.len());
            bytes.splice(from..to, with.bytes());
        }
        read_all(&bytes);
    }

    #[test]
    fn a_spoilt_signed_text_never_opens(place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let (_, note) = signed(&Tree::new(&leaves(5, 0)), 5, &signer(1));
        let text = note.find("\n\n").expect("a note") + 1;
        let mut bytes = note.into_bytes();
        bytes[place.index(text)] ^= 1 << bit;
        prop_assert!(Checkpoint::open(&bytes, signer(1).verifier(), &[]).is_err());
    }
}
