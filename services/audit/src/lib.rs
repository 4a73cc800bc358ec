//! The audit log as a service: one sequencer composes leaves from pending records (L-4), a signer outside the database signs heads of the tree (L-6), and what is
//! signed is published. Nothing here is in the way of a close or of taking events in: records wait in the database until this comes to them.
//!
//! Invariants: indexes are contiguous from 0; a record has one leaf; a head is signed only after the leaves since the last signed head were read back and hashed
//! again; a signed head is on disk before anybody sees it; no head shrinks or forks.

pub mod edge;
pub mod erase;
pub mod error;
pub mod export;
pub mod head;
pub mod key;
mod points;
pub mod publish;
pub mod sequencer;
pub mod serve;
pub mod signer;
pub mod socket;
pub mod witness;

pub use error::AuditError;
