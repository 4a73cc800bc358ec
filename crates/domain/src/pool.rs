//! Pools: by what the time of shared or served units is divided among tenants.

mod weighed;

pub use weighed::{Served, Weighed, weigh};

use crate::ids::{ProjectId, TenantId};
use crate::share::Share;
use crate::time::{Instant, MINUTE_US, Window};
use std::collections::BTreeMap;

/// Pools by id, as they were applied.
pub type Pools = BTreeMap<String, Pool>;

/// A pool of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// By what its time is divided.
    pub policy: Policy,
    /// Who bears its idle time.
    pub idle: Idle,
}

/// By what a pool is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// By the share that was granted.
    Entitlement,
    /// By SM-active time of the holders' processes; the rest is idle.
    Measured,
    /// By reported work, window by window. The grant's tenant is the operator.
    Work {
        /// What one of each kind of work weighs, not negative; a kind that is not named weighs nothing.
        weights: BTreeMap<WorkKind, Share>,
        /// Length of a window.
        window: WorkWindow,
    },
}

/// Length of a work pool's windows: each divides a UTC quarter of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkWindow {
    /// A minute.
    #[default]
    One,
    /// Five minutes.
    Five,
    /// A quarter of an hour.
    Fifteen,
}

impl WorkWindow {
    /// Length in microseconds.
    pub const fn micros(self) -> i64 {
        match self {
            Self::One => MINUTE_US,
            Self::Five => 5 * MINUTE_US,
            Self::Fifteen => 15 * MINUTE_US,
        }
    }
}

/// Who bears a pool's idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// The provider; in a work pool the operator.
    #[default]
    Provider,
    /// The holders, in proportion to their parts.
    Proportional,
    /// The holders, evenly; in a measured pool those that have a part.
    Even,
}

/// A kind of reported work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Tokens read.
    InputTokens,
    /// Tokens written.
    OutputTokens,
    /// Tokens read from a cache.
    CachedTokens,
    /// Requests served.
    Requests,
    /// Key-value cache held, in bytes times microseconds.
    KvByteUs,
    /// Work in a unit of the pool's own.
    Units,
}

impl WorkKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::InputTokens,
        Self::OutputTokens,
        Self::CachedTokens,
        Self::Requests,
        Self::KvByteUs,
        Self::Units,
    ];

    /// The word used in events and weights.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::CachedTokens => "cached_tokens",
            Self::Requests => "requests",
            Self::KvByteUs => "kv_byte_us",
            Self::Units => "units",
        }
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Reported work of one tenant, spread evenly over its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// In which pool.
    pub pool: String,
    /// For whom.
    pub tenant: TenantId,
    /// For which of the tenant's projects.
    pub project: Option<ProjectId>,
    /// Adapter served.
    pub adapter: Option<String>,
    /// Begin of the work.
    pub start: Instant,
    /// End of the work; equal to the start where it took no time.
    pub end: Instant,
    /// How much of each kind, not negative.
    pub amounts: BTreeMap<WorkKind, Share>,
}

impl Work {
    /// The time the work took; none where it took none.
    pub fn window(&self) -> Option<Window> {
        Window::new(self.start, self.end)
    }
}
