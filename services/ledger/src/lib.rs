//! The ledger: takes events in, decides once whether each is accepted (I-6), and keeps journals and read models equal to what the accepted
//! facts say.
//!
//! One batch is one transaction: identities, facts, pending audit records, parked events, telemetry, changed journals, read models and the next
//! offsets stand together or not at all (I-3). Invariants: nothing is posted from a fact that is not accepted; nothing posted is
//! changed, only negated and posted anew; every batch holds the close lock shared and its subjects' locks alone.

mod anew;
pub mod archive;
pub mod balance;
pub mod batch;
pub mod consume;
pub mod decide;
pub mod error;
pub mod horizon;
pub mod inbox;
pub mod incoming;
mod measured;
mod models;
pub mod offsets;
pub mod pack;
pub mod parking;
mod points;
mod post;
mod progress;
pub mod replay;
mod residue;
mod sealing;
pub mod serve;
mod settle;
mod telemetry;
#[cfg(test)]
mod testing;
pub mod unsettled;
pub mod verify;

pub use error::LedgerError;

/// Version of the rules facts are accepted and attributed under; it is stored with each.
pub const RULE_SET: &str = "2026-11";
