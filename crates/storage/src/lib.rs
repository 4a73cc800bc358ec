//! Postgres: rows, queries, transactions, and the embedded migrations. The only package that speaks SQL.
//!
//! Rows are plain structs; what they mean is decided elsewhere. Functions take the connection of the caller's transaction, so that
//! the effects of a batch commit together or not at all (rule I-3). Instants are microseconds UTC (`*_us`).

pub mod alive;
pub mod archive;
pub mod audit;
pub mod audit_log;
pub mod balance;
pub mod blocks;
pub mod closes;
pub mod connect;
mod copy;
pub mod documents;
pub mod error;
pub mod facts;
pub mod findings;
pub mod hours;
pub mod inbox;
pub mod index;
pub mod journals;
pub mod leaves;
pub mod locks;
pub mod measured_marks;
pub mod migrate;
mod numeric;
pub mod objects;
pub mod offsets;
pub mod pages;
pub mod parked;
pub mod partitions;
pub mod progress;
pub mod reach;
pub mod retry;
pub mod signals;
pub mod skew;
pub mod sold;
pub mod spans;
pub mod state;
pub mod subject_keys;
pub mod telemetry;
pub mod touched;
pub mod trial;
pub mod unread;
pub mod unsettled;
pub mod violations;

pub use connect::{Db, Memory, Role, Scope, Tx, connect};
pub use error::StorageError;
pub use migrate::migrate;
/// A connection, open in the caller's transaction. [`Tx`] dereferences to it.
pub use sqlx::PgConnection;
