//! Asks for the pods again and again, in a thread of its own: a kubelet that hangs holds up nothing else.

use super::Pods;
use super::kubelet::KubeletError;
use super::listing::Listing;
use crate::clock::Clock;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How it stands with the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KubeletState {
    /// Not asked yet.
    #[default]
    Unasked,
    /// There is none: a node without Kubernetes.
    Absent,
    /// It answers.
    Answers,
    /// It does not, and why. The last listing stands.
    Fails(String),
}

#[derive(Debug, Default)]
struct Shared {
    latest: Option<Arc<Listing>>,
    state: KubeletState,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Board {
    shared: Mutex<Shared>,
    stop: Condvar,
}

/// The thread that asks. Dropping it ends it, at the latest when the kubelet's deadline is over.
#[derive(Debug)]
pub struct Watch {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Asks now and then each `every`, in real time.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(pods: Pods, clock: Arc<dyn Clock>, every: Duration) -> io::Result<Self> {
        let board = Arc::new(Board::default());
        let asking = Arc::clone(&board);
        let thread = thread::Builder::new().name("pods".to_owned()).spawn(move || {
            while !asking.is_stopped_after(Duration::ZERO) {
                asking.note(pods.list(clock.now()));
                if asking.is_stopped_after(every) {
                    break;
                }
            }
        })?;
        Ok(Self { board, thread: Some(thread) })
    }

    /// The last listing there was.
    pub fn latest(&self) -> Option<Arc<Listing>> {
        self.board.shared().latest.clone()
    }

    /// How it stands with the kubelet.
    pub fn state(&self) -> KubeletState {
        self.board.shared().state.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.shared().stopped = true;
        self.board.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was printed there.
            drop(thread.join());
        }
    }
}

impl Board {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped_after(&self, wait: Duration) -> bool {
        let waiting = self.stop.wait_timeout_while(self.shared(), wait, |shared| !shared.stopped);
        waiting.unwrap_or_else(PoisonError::into_inner).0.stopped
    }

    fn note(&self, asked: Result<Listing, KubeletError>) {
        let mut shared = self.shared();
        let state = match asked {
            Ok(listing) => {
                shared.latest = Some(Arc::new(listing));
                KubeletState::Answers
            }
            Err(KubeletError::Absent(_)) => KubeletState::Absent,
            Err(why) => KubeletState::Fails(why.to_string()),
        };
        if state != shared.state {
            match &state {
                KubeletState::Fails(why) => tracing::warn!(%why, "the kubelet cannot be asked for its pods"),
                other => tracing::info!(state = ?other, "kubelet"),
            }
            shared.state = state;
        }
    }
}
