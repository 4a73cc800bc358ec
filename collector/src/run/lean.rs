//! Staying small: what only the start needed is given back to the kernel once the start is over, and again at growing distances.

use std::time::{Duration, Instant};

/// By then every device was probed, a window was closed and sent, and connections stand. Each next time comes after twice as long: the start
/// fades.
const FIRST: Duration = Duration::from_secs(30);
/// What rare work (a reload, a reconfiguration, a reconnect) brings in goes again after this.
const LONGEST: Duration = Duration::from_secs(3600);
/// Freed memory, such as that of an answer to a scrape, stays no longer than this.
const MINUTE: Duration = Duration::from_secs(60);

/// When memory is given back next. Real time: it is about this process, whatever clock it measures by.
pub(super) struct Lean {
    pages_at: Instant,
    pages_after: Duration,
    freed_at: Instant,
}

impl Default for Lean {
    fn default() -> Self {
        let now = Instant::now();
        Self { pages_at: now + FIRST, pages_after: FIRST, freed_at: now + FIRST }
    }
}

impl Lean {
    /// After a cycle that began at `now`: no library is being loaded.
    pub(super) fn cycled(&mut self, now: Instant) {
        if now >= self.freed_at {
            self.freed_at = now + MINUTE;
            gpuledger_footprint::give_back_freed_memory();
        }
        if now >= self.pages_at {
            self.pages_at = now + self.pages_after;
            self.pages_after = (self.pages_after * 2).min(LONGEST);
            match gpuledger_footprint::give_back_file_pages() {
                Ok(bytes) => tracing::debug!(bytes, "gave file pages back"),
                Err(error) => tracing::debug!(%error, "file pages stay"),
            }
        }
    }
}
