//! Every proof of every small tree, and what is wrong about them refused. A wrong size alone is not tried: a root does not bind the size of its tree.

use crate::log::{Tree, leaves};
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::proof::{verify_consistency, verify_inclusion};

const SIZES: u64 = 64;

/// Wrong proofs: one hash less, one more, each hash with a bit turned.
fn spoilt(proof: &[Hash]) -> Vec<Vec<Hash>> {
    let mut found = vec![[proof, &[Hash([7; 32])]].concat()];
    if let Some((_, rest)) = proof.split_first() {
        found.push(rest.to_vec());
        found.push(proof[..proof.len() - 1].to_vec());
    }
    for place in 0..proof.len() {
        let mut other = proof.to_vec();
        other[place].0[place % 32] ^= 1;
        found.push(other);
    }
    found
}

#[test]
fn inclusion_is_proven_for_each_leaf_of_each_size_l_2() {
    let leaves = leaves(SIZES, 0);
    let tree = Tree::new(&leaves);
    for size in 1..=SIZES {
        let root = tree.root(size);
        for (index, leaf) in (0..size).zip(&leaves) {
            let (leaf, path) = (Hash::of_leaf(leaf), tree.inclusion(index, size));
            assert_eq!(verify_inclusion(leaf, index, size, root, &path), Ok(()), "{index} of {size}");
            for wrong in spoilt(&path) {
                assert!(verify_inclusion(leaf, index, size, root, &wrong).is_err(), "{index} of {size}");
            }
            for other in (0..size).filter(|other| *other != index) {
                assert!(
                    verify_inclusion(leaf, other, size, root, &path).is_err(),
                    "{index} as {other} of {size}"
                );
            }
            assert!(verify_inclusion(Hash([9; 32]), index, size, root, &path).is_err());
            assert!(verify_inclusion(leaf, index, size, Hash([9; 32]), &path).is_err());
            assert!(verify_inclusion(leaf, size, size, root, &path).is_err());
        }
    }
}

#[test]
fn consistency_is_proven_for_each_pair_of_sizes_l_4() {
    let tree = Tree::new(&leaves(SIZES, 0));
    for new in 0..=SIZES {
        for old in 0..=new {
            let (old_root, new_root, proof) = (tree.root(old), tree.root(new), tree.consistency(old, new));
            assert_eq!(verify_consistency(old, old_root, new, new_root, &proof), Ok(()), "{old} to {new}");
            for wrong in spoilt(&proof) {
                assert!(verify_consistency(old, old_root, new, new_root, &wrong).is_err(), "{old} to {new}");
            }
            assert!(verify_consistency(old, Hash([9; 32]), new, new_root, &proof).is_err(), "{old} to {new}");
            // From nothing everything follows; there is no new root to compare.
            assert!(
                old == 0 || verify_consistency(old, old_root, new, Hash([9; 32]), &proof).is_err(),
                "{old} to {new}"
            );
            assert!(
                old == new || verify_consistency(new, new_root, old, old_root, &proof).is_err(),
                "{new} to {old}"
            );
        }
    }
}

#[test]
fn a_tree_with_one_other_leaf_is_no_continuation() {
    let mut leaves = leaves(SIZES, 0);
    let tree = Tree::new(&leaves);
    leaves[5].push(b'!');
    let other = Tree::new(&leaves);
    for old in 6..SIZES {
        let proof = other.consistency(old, SIZES);
        assert!(verify_consistency(old, tree.root(old), SIZES, other.root(SIZES), &proof).is_err(), "{old}");
    }
}
