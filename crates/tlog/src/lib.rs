//! A transparency log in public formats, usable by itself: nothing here knows gpuledger.
//!
//! The tree is that of RFC 6962 with SHA-256. Tiles, checkpoints, cosignatures, proofs and policies are those of C2SP (`c2sp.org/tlog-tiles`,
//! `tlog-checkpoint`, `signed-note`, `tlog-cosignature`, `tlog-proof`, `tlog-policy`), so that any verifier of these formats accepts what is made here.
//!
//! | module | what |
//! |---|---|
//! | [`hash`] | hashes of leaves and nodes |
//! | [`tree`] | the hashes a growing tree stores, its root, proofs out of them |
//! | [`proof`] | inclusion and consistency, verified from hashes alone |
//! | [`tile`] | tiles: names, contents, which are new at a size |
//! | [`note`] | signed notes: keys, signing, opening |
//! | [`checkpoint`] | a signed tree head |
//! | [`cosignature`] | a witness's signature with its time |
//! | [`bundle`] | proof files: one record proven by one text |
//! | [`policy`] | whose signatures are enough |
//! | [`directory`] | an exported log, verified as a stream |
//!
//! Parsers take any bytes and never panic. A root does not bind the size of its tree: always take both from one signed checkpoint.

pub mod bundle;
pub mod checkpoint;
pub mod cosignature;
pub mod directory;
pub mod hash;
pub mod note;
pub mod policy;
pub mod proof;
pub mod tile;
pub mod tree;
