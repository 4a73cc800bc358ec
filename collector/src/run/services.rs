//! The two threads beside the leader: sending, and the metrics port.

use super::RunError;
use crate::metrics::{Board, bind, serve};
use crate::publish::{Drained, PublishSettings, PublishWatch, Publisher};
use crate::sink::AnySink;
use crate::spool::Spool;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Sends what the spool keeps.
pub(super) struct Publishing {
    thread: JoinHandle<Drained>,
    stop: CancellationToken,
    watch: PublishWatch,
}

impl Publishing {
    pub(super) fn start(spool: Spool, sink: AnySink, settings: PublishSettings) -> Result<Self, RunError> {
        let publisher = Publisher::new(spool, sink, settings);
        let (stop, watch) = (CancellationToken::new(), publisher.watch());
        let (runtime, told) = (runtime("publish")?, stop.clone());
        let thread = spawn("publish", move || runtime.block_on(publisher.run(told)))?;
        Ok(Self { thread, stop, watch })
    }

    pub(super) fn watch(&self) -> PublishWatch {
        self.watch.clone()
    }

    /// Sends what is left, within the drain's time.
    pub(super) fn end(self) -> Drained {
        self.stop.cancel();
        // A thread that panicked has printed why; what it did not send is in the spool.
        self.thread.join().unwrap_or(Drained { left: u64::MAX })
    }
}

/// Answers on the metrics port.
pub(super) struct Showing {
    thread: JoinHandle<()>,
    address: SocketAddr,
}

impl Showing {
    pub(super) fn start(
        address: SocketAddr,
        board: Arc<Board>,
        stop: CancellationToken,
    ) -> Result<Self, RunError> {
        let runtime = runtime("metrics")?;
        let bound = runtime.block_on(bind(address));
        let (listener, address) =
            bound.map_err(RunError::system(format!("listen on metrics_bind {address}")))?;
        let thread =
            spawn("metrics", move || runtime.block_on(serve(listener, board, stop.cancelled_owned())))?;
        Ok(Self { thread, address })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for its end, which its token brings.
    pub(super) fn end(self) {
        if self.thread.join().is_err() {
            tracing::error!("the thread of the metrics port panicked");
        }
    }
}

fn runtime(name: &str) -> Result<Runtime, RunError> {
    let built = Builder::new_current_thread().enable_all().max_blocking_threads(4).build();
    built.map_err(RunError::system(format!("start the runtime of {name}")))
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    let started: io::Result<JoinHandle<T>> = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(RunError::system(format!("start the thread {name}")))
}
