//! The clock of the built-in day: the nodes drive it, each its own file, and the ledger follows the one that is furthest.

use super::day::MIDNIGHT;
use super::day::scenario::UPTIME_SECONDS;
use anyhow::{Context, Result};
use gpuledger_api::Clock;
use gpuledger_domain::time::{Instant, SECOND_US};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes of a clock file: microseconds since boot, then microseconds since 1970, both little endian.
const LENGTH: usize = 16;

/// Cheap to clone; clones are the same clock. It never goes back.
#[derive(Clone, Debug)]
pub(crate) struct DayClock {
    files: Arc<[PathBuf]>,
    reached: Arc<AtomicI64>,
}

impl DayClock {
    /// Sets every file to midnight.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn start(files: Vec<PathBuf>) -> Result<Self> {
        let mut bytes = (UPTIME_SECONDS * SECOND_US).to_le_bytes().to_vec();
        bytes.extend(MIDNIGHT.as_micros().to_le_bytes());
        for file in &files {
            std::fs::write(file, &bytes).with_context(|| file.display().to_string())?;
        }
        Ok(Self { files: files.into(), reached: Arc::new(AtomicI64::new(MIDNIGHT.as_micros())) })
    }

    /// The furthest of the nodes.
    pub(crate) fn now(&self) -> Instant {
        let furthest = self.files.iter().filter_map(|file| read(file)).max().unwrap_or(MIDNIGHT);
        let before = self.reached.fetch_max(furthest.as_micros(), Ordering::AcqRel);
        furthest.max(Instant::from_micros(before))
    }

    /// The same as a function, for services.
    pub(crate) fn shared(&self) -> Clock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }

    /// The node that is behind.
    pub(crate) fn slowest(&self) -> Instant {
        self.files.iter().filter_map(|file| read(file)).min().unwrap_or(MIDNIGHT)
    }

    /// Goes on to an instant that no node will reach.
    pub(crate) fn move_to(&self, at: Instant) {
        self.reached.fetch_max(at.as_micros(), Ordering::AcqRel);
    }
}

fn read(file: &Path) -> Option<Instant> {
    let mut bytes = [0; LENGTH];
    File::open(file).ok()?.read_exact_at(&mut bytes, 0).ok()?;
    let (_, real) = bytes.split_last_chunk::<8>()?;
    Some(Instant::from_micros(i64::from_le_bytes(*real)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_node_leads_and_the_clock_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let files = vec![folder.path().join("a"), folder.path().join("b")];
        let clock = DayClock::start(files.clone()).unwrap();
        assert_eq!(clock.now(), MIDNIGHT);
        let set = |file: &PathBuf, at: Instant| {
            std::fs::write(file, [[0; 8], at.as_micros().to_le_bytes()].concat()).unwrap();
        };
        set(&files[1], MIDNIGHT.plus(7));
        assert_eq!((clock.now(), clock.slowest()), (MIDNIGHT.plus(7), MIDNIGHT));
        set(&files[1], MIDNIGHT.plus(3));
        assert_eq!(clock.now(), MIDNIGHT.plus(7));
        clock.move_to(MIDNIGHT.plus(9));
        assert_eq!(clock.now(), MIDNIGHT.plus(9));
    }
}
