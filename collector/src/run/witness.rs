//! What the kubelet says, as far as there is one.

use crate::clock::{Clock, Stamp};
use crate::pods::{KubeletError, Listing, Pods, Watch};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Microseconds between two questions.
const EVERY_US: u64 = 10_000_000;

/// Asks the kubelet.
pub(super) enum Witness {
    /// In a thread of its own: one that hangs holds up nothing.
    Watch(Watch),
    /// Of a simulated node, in its time.
    Asked { pods: Pods, latest: Option<Arc<Listing>>, next_us: u64 },
}

impl Witness {
    pub(super) fn start(pods: Pods, clock: Arc<dyn Clock>, is_simulated: bool) -> io::Result<Self> {
        if is_simulated {
            return Ok(Self::Asked { pods, latest: None, next_us: 0 });
        }
        Ok(Self::Watch(Watch::start(pods, clock, Duration::from_micros(EVERY_US))?))
    }

    /// The last listing there was.
    pub(super) fn latest(&mut self, now: Stamp) -> Option<Arc<Listing>> {
        match self {
            Self::Watch(watch) => watch.latest(),
            Self::Asked { pods, latest, next_us } => {
                if now.monotonic_us >= *next_us {
                    *next_us = now.monotonic_us.saturating_add(EVERY_US);
                    match pods.list(now) {
                        Ok(listing) => *latest = Some(Arc::new(listing)),
                        Err(KubeletError::Absent(_)) => {}
                        Err(why) => tracing::warn!(%why, "the kubelet cannot be asked for its pods"),
                    }
                }
                latest.clone()
            }
        }
    }
}
