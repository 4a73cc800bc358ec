//! The archive: telemetry as immutable Parquet files in an object store, a folder by default. The only package that speaks Parquet and
//! to object stores.
//!
//! Two kinds of files, each about one UTC hour: [`windows`] has every window that was accepted, so that it can be replayed to the same bytes;
//! [`minutes`] has what they say as one row a unit, owner and minute, for whoever asks with `DuckDB`, Spark or Trino. A file is
//! named by its SHA-256 ([`key`]) and is never changed; windows that come late give another part. Invariants: what is read
//! has the digest its name says; the same rows give the same bytes; nothing here knows the database.

mod columns;
pub mod error;
pub mod key;
pub mod minutes;
pub mod sealed;
pub mod settings;
pub mod store;
pub mod windows;

pub use error::ArchiveError;
pub use key::{FileKey, Kind};
pub use sealed::Sealed;
pub use settings::{ArchiveSettings, S3Settings};
pub use store::Archive;
