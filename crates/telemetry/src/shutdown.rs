//! Shutdown in one order: stop taking work, let tasks finish, say who did not.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The process's tasks and the word that ends them. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
    tracker: TaskTracker,
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    started: u64,
    names: BTreeMap<u64, &'static str>,
}

/// Tasks that were still running at the deadline.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("still running after {waited:?}: {}", .tasks.join(", "))]
pub struct Stragglers {
    /// How long they were waited for.
    pub waited: Duration,
    /// Their names, in the order of their start.
    pub tasks: Vec<&'static str>,
}

impl Shutdown {
    /// The word: a task ends its loop when it is cancelled. Cancelling it begins the shutdown.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Begins the shutdown.
    pub fn begin(&self) {
        self.token.cancel();
    }

    /// Completes when the shutdown has begun.
    pub async fn begun(&self) {
        self.token.cancelled().await;
    }

    /// Runs a task that shutdown waits for. It must end soon after the word.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let entry = self.enter(name);
        self.tracker.spawn(async move {
            let output = task.await;
            drop(entry);
            output
        })
    }

    /// Begins the shutdown at the first SIGTERM or SIGINT. Later ones change nothing: it is the deadline of
    /// [`Shutdown::wait`] that ends a process which hangs.
    ///
    /// # Errors
    /// The system's refusal to install a handler.
    pub fn on_signals(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let token = self.token.clone();
        tokio::spawn(async move {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                () = token.cancelled() => return,
            };
            tracing::info!(signal = name, "shutting down");
            token.cancel();
        });
        Ok(())
    }

    /// Waits for the word, then up to `deadline` for the tasks.
    ///
    /// # Errors
    /// [`Stragglers`] names the tasks that did not end.
    pub async fn wait(&self, deadline: Duration) -> Result<(), Stragglers> {
        self.begun().await;
        self.tracker.close();
        match tokio::time::timeout(deadline, self.tracker.wait()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Stragglers { waited: deadline, tasks: self.running() }),
        }
    }

    fn running(&self) -> Vec<&'static str> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).names.values().copied().collect()
    }

    fn enter(&self, name: &'static str) -> Entry {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.started += 1;
        let number = running.started;
        running.names.insert(number, name);
        Entry { number, running: self.running.clone() }
    }
}

/// A running task's place in the list, left also when the task panics or is aborted.
struct Entry {
    number: u64,
    running: Arc<Mutex<Running>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).names.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn tasks_that_heed_the_word_end_it() {
        let shutdown = Shutdown::default();
        let token = shutdown.token();
        let task = shutdown.spawn("ledger", async move {
            token.cancelled().await;
            7
        });
        shutdown.begin();
        assert_eq!(shutdown.wait(DEADLINE).await, Ok(()));
        assert_eq!(task.await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn stragglers_are_named_and_the_finished_are_not() {
        let shutdown = Shutdown::default();
        drop(shutdown.spawn("quick", async {}));
        drop(shutdown.spawn("stuck", std::future::pending::<()>()));
        drop(shutdown.spawn("panics", async { assert!(std::hint::black_box(false), "on purpose") }));
        shutdown.begin();
        let left = shutdown.wait(DEADLINE).await.unwrap_err();
        assert_eq!(left.tasks, ["stuck"]);
        assert_eq!(left.to_string(), "still running after 5s: stuck");
    }

    #[tokio::test]
    async fn sigterm_is_the_word() {
        let shutdown = Shutdown::default();
        shutdown.on_signals().unwrap();
        let me = std::process::id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &me]).status().unwrap().success());
        tokio::time::timeout(DEADLINE, shutdown.begun()).await.expect("the signal begins the shutdown");
    }
}
