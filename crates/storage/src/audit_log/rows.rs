//! Rows of the log on their way in and out.

/// A pending record without a leaf.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Waiting {
    /// Its number.
    pub seq: i64,
    /// The fact it records.
    pub fact_seq: Option<i64>,
    /// Event type, or what else it is.
    pub kind: String,
    /// Canonical bytes.
    pub body: Vec<u8>,
    /// When it was recorded.
    pub recorded_at_us: i64,
}

/// A leaf to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLeaf {
    /// Its place.
    pub index: i64,
    /// The pending record; none: a heartbeat.
    pub pending_seq: Option<i64>,
    /// The fact.
    pub fact_seq: Option<i64>,
    /// Whose keys salt its commitments, in the order of its fields; then tenants that it concerns without naming them.
    pub subjects: Vec<i64>,
    /// The bytes that are hashed.
    pub leaf: Vec<u8>,
}

/// A full tile to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTile {
    /// Level of tiles.
    pub level: i16,
    /// From the left.
    pub index: i64,
    /// The hash over all of it.
    pub root: [u8; 32],
    /// Its 256 hashes.
    pub hashes: Vec<u8>,
}
