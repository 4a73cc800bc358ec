//! What all requests share.

use crate::limit::Limiter;
use crate::token::VerifyKey;
use gpuledger_domain::time::Instant;
use gpuledger_storage::Db;
use gpuledger_trail::keys::Seal;
use prometheus::HistogramVec;
use std::fmt;
use std::sync::Arc;

/// The clock of the process.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What all requests share.
pub(crate) struct State {
    /// Connections of the API's role.
    pub(crate) db: Db,
    /// Verifies tokens.
    pub(crate) key: VerifyKey,
    /// Opens keys of subjects.
    pub(crate) seal: Seal,
    /// The clock.
    pub(crate) now: Clock,
    /// The rate limit.
    pub(crate) limiter: Limiter,
    /// Durations by method, route and status.
    pub(crate) requests: HistogramVec,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}
