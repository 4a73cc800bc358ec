//! Vectors of RFC 6962 and of C2SP's texts.

use crate::log::Tree;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Note, Verifier};
use gpuledger_tlog::tile::{Named, Tile, entries_path, new_places, new_tiles, read_path};

/// Entries of the vectors that RFC 6962 implementations share.
fn entries() -> Vec<Vec<u8>> {
    let runs: [std::ops::RangeInclusive<u8>; 3] = [0x40..=0x43, 0x50..=0x57, 0x60..=0x6f];
    let mut entries: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0x10], vec![0x20, 0x21], vec![0x30, 0x31]];
    entries.extend(runs.map(Iterator::collect));
    entries
}

#[test]
fn roots_of_sizes_0_to_8_are_those_of_rfc_6962_l_2() {
    let tree = Tree::new(&entries());
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    for (size, root) in (0..).zip(roots) {
        assert_eq!(tree.root(size).to_string(), root, "size {size}");
    }
    assert_eq!(Hash::of_empty_tree().to_base64(), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

#[test]
fn paths_of_tiles_have_groups_of_three_digits() {
    let cases = [
        (0, 256, "000"),
        (255, 256, "255"),
        (256, 1, "256.p/1"),
        (1000, 256, "x001/000"),
        (1_234_067, 256, "x001/x234/067"),
    ];
    for (index, width, place) in cases {
        assert_eq!(entries_path(index, width), format!("tile/entries/{place}"));
        assert_eq!(read_path(&entries_path(index, width)), Some(Named::Entries { index, width }));
        let tile = Tile { level: 2, index, width };
        assert_eq!(tile.path(), format!("tile/2/{place}"));
        assert_eq!(read_path(&tile.path()), Some(Named::Hashes(tile)));
    }
}

#[test]
fn another_spelling_of_a_path_is_none() {
    let wrong = [
        "tile/0/0",
        "tile/0/x000/001",
        "tile/0/001/x002",
        "tile/00/000",
        "tile/0/000.p/256",
        "tile/0/000.p/0",
        "tile/0/000.p/01",
        "tile/9/000",
        "tile/0/+01",
        "tile/entries/",
        "tile/0/000/",
        "/tile/0/000",
        "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
    ];
    for path in wrong {
        assert_eq!(read_path(path), None, "{path}");
    }
}

fn tiles(size: u64) -> Vec<(u8, u64, u16)> {
    let mut found: Vec<(u8, u64, u16)> = Vec::new();
    for tile in new_tiles(0, size) {
        // Full tiles of a level as their number, so that a case stays a line.
        match found.last_mut() {
            Some((level, count, 256)) if *level == tile.level && tile.width == 256 => *count += 1,
            _ => found.push((tile.level, if tile.width == 256 { 1 } else { tile.index }, tile.width)),
        }
    }
    found
}

#[test]
fn a_size_has_exactly_its_tiles() {
    assert_eq!(tiles(255), [(0, 0, 255)]);
    assert_eq!(tiles(256), [(0, 1, 256), (1, 0, 1)]);
    assert_eq!(tiles(65_536), [(0, 256, 256), (1, 1, 256), (2, 0, 1)]);
    assert_eq!(tiles(70_000), [(0, 273, 256), (0, 273, 112), (1, 1, 256), (1, 1, 17), (2, 0, 1)]);
    assert_eq!(new_places(256, 257), [(1, 1)]);
    assert_eq!(new_places(255, 256), [(0, 256)]);
}

#[test]
fn the_public_example_of_a_signed_note_verifies() {
    let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let note = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
    let key = Verifier::parse(key).expect("a key");
    assert_eq!(key.id(), 0xc74f_20a3);
    let opened = Note::parse(note.as_bytes()).expect("a note");
    let keys = [key];
    assert_eq!(opened.verify(&keys).expect("signed"), [&keys[0]]);
    let other = note.replace("answer", "answex");
    assert!(Note::parse(other.as_bytes()).expect("a note").verify(&keys).is_err());
}
