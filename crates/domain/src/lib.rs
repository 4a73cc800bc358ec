//! Words and pure rules of gpuledger: time, shares, geometry, attribution of GPU-time, and the rating of charges.
//!
//! Everything here is a function from values to values. No I/O, no clock, no encoding: the same facts give the same ledger
//! wherever and whenever they are read (rule A-5).

pub mod attribution;
pub mod fact;
pub mod finding;
pub mod geometry;
pub mod ids;
pub mod journal;
pub mod measured;
pub mod money;
pub mod pool;
pub mod rating;
pub mod reconcile;
pub mod report;
pub mod residue;
pub mod share;
pub mod sku;
pub mod time;
pub mod usage;
