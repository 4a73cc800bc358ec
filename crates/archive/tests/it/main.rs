//! Files written and read back, in a folder, and in a bucket where one is built for.

#[cfg(feature = "s3")]
mod bucket;
mod files;
mod folder;
