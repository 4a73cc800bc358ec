//! `run`: measure until stopped, keep everything on disk, and deliver it.
//!
//! One thread leads: it wakes each period, has every GPU looked at in its own lane, and puts together what comes back. Two others send what the
//! spool keeps and answer on the metrics port. Nothing they wait for holds up a sample.

mod device;
mod figures;
mod fleet;
mod labels;
mod lean;
mod library;
mod node;
mod services;
mod witness;

use crate::clock::{Clock, FileClock, RealClock};
use crate::metrics::Board;
use crate::publish::Drained;
use crate::settings::Settings;
use crate::sink::{AnySink, SinkError};
use crate::spool::{Spool, SpoolError};
use fleet::{Fleet, Trouble};
use gpuledger_domain::time::Instant;
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::shutdown::Shutdown;
use gpuledger_wire::text::Name;
use lean::Lean;
use node::Node;
use services::{Publishing, Showing};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The leader sleeps at most this long at a time, so that it hears of an end.
const NAP_US: u64 = 500_000;

/// Why `run` could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No sink is set.
    #[error("settings: sink is not set, one of [sink.kafka], [sink.http], [sink.file] is right")]
    NoSink,
    /// The sink cannot be used.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The clock file of a simulated node cannot be used.
    #[error("the clock file {file}: {source}")]
    Clock {
        /// Which file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A port or a thread cannot be had.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The name of the node cannot travel.
    #[error("settings: node {0}")]
    Node(String),
    /// Only a new process can go on: the supervisor starts it.
    #[error("this process must be started anew: {0}")]
    Restart(String),
}

impl RunError {
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

/// How `run` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Records that stay in the spool for the next start.
    pub left: u64,
}

/// Measures and delivers until a signal, or until an instant of the node's clock. `shown` hears where the metrics port is.
///
/// # Errors
/// Settings that cannot work, a port that is taken, a spool that another process has; and what only a new process can mend.
pub fn run(
    settings: &Settings,
    until: Option<Instant>,
    shown: impl FnOnce(std::net::SocketAddr),
) -> Result<Finished, RunError> {
    let name = Name::new(&settings.node).map_err(|why| RunError::Node(why.to_string()))?;
    let sink = AnySink::new(settings.sink.clone().ok_or(RunError::NoSink)?)?;
    let clock = clock(settings.clock_file.as_deref())?;
    let spool = Spool::open(settings.spool.clone(), name.clone())?;
    let health = Health::default();
    let stop = CancellationToken::new();
    let board = Arc::new(Board::new(
        &settings.node,
        Arc::clone(&clock),
        health.clone(),
        settings.stale_us(),
        settings.dcgm_names,
    ));
    let showing = Showing::start(settings.metrics_bind, Arc::clone(&board), stop.clone())?;
    shown(showing.address());
    let publishing = Publishing::start(spool.clone(), sink, settings.publish.clone())?;
    let witness = node::witness(settings, Arc::clone(&clock))?;
    let node = Node::new(name, settings, spool, Arc::clone(&board), publishing.watch(), witness);
    let mut leader = Leader {
        fleet: Fleet::new(settings, Arc::clone(&clock))?,
        node,
        board,
        clock,
        period_us: settings.period_us(),
        until,
        stop,
    };
    leader.listen_to_signals()?;
    let led = leader.lead(&health);
    let Drained { left } = publishing.end();
    health.ending();
    leader.stop.cancel();
    showing.end();
    led.map(|()| Finished { left })
}

fn clock(file: Option<&Path>) -> Result<Arc<dyn Clock>, RunError> {
    let Some(file) = file else { return Ok(Arc::new(RealClock)) };
    let fault = |source| RunError::Clock { file: file.to_owned(), source };
    Ok(Arc::new(FileClock::open(file).map_err(fault)?))
}

/// The thread that leads.
struct Leader {
    fleet: Fleet,
    node: Node,
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    period_us: u64,
    until: Option<Instant>,
    stop: CancellationToken,
}

impl Leader {
    /// A signal ends the measuring first; what is in the spool is then sent.
    fn listen_to_signals(&self) -> Result<(), RunError> {
        let stop = self.stop.clone();
        let listen = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let shutdown = Shutdown::default();
                shutdown.on_signals()?;
                tokio::select! {
                    () = shutdown.begun() => stop.cancel(),
                    () = stop.cancelled() => {}
                }
                io::Result::Ok(())
            })
        };
        let watched = move || {
            if let Err(error) = listen() {
                tracing::error!(%error, "signals are not heard; SIGKILL ends the process, and nothing in the spool is lost");
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(watched);
        thread.map(drop).map_err(RunError::system("start a thread for signals"))
    }

    fn lead(&mut self, health: &Health) -> Result<(), RunError> {
        let part = health.part("nvml");
        part.waiting("not loaded yet");
        let mut next_us = self.clock.now().monotonic_us;
        let mut lean = Lean::default();
        while self.sleep_until(next_us) {
            let woke = std::time::Instant::now();
            let cycled = self.fleet.cycle(&mut self.node);
            self.board.cycled(woke.elapsed());
            lean.cycled(woke);
            match cycled {
                Ok(()) => match self.fleet.nameless() {
                    None => part.ready(),
                    Some(why) => part.waiting(why),
                },
                Err(Trouble::NotLoaded(why)) => {
                    self.node.go_on(self.clock.now());
                    part.waiting(why);
                }
                Err(Trouble::Restart(why)) => {
                    self.end();
                    return Err(RunError::Restart(why));
                }
            }
            // A cycle that took longer than a period leaves out the periods it missed.
            let now_us = self.clock.now().monotonic_us;
            let missed = now_us.saturating_sub(next_us) / self.period_us.max(1);
            next_us = next_us.saturating_add(self.period_us.saturating_mul(missed + 1));
        }
        self.end();
        Ok(())
    }

    /// Sleeps in naps. False: it is time to end.
    fn sleep_until(&self, next_us: u64) -> bool {
        loop {
            let now = self.clock.now();
            if self.stop.is_cancelled() || self.until.is_some_and(|until| now.real >= until) {
                return false;
            }
            if now.monotonic_us >= next_us {
                return true;
            }
            let left_us =
                self.until.map_or(u64::MAX, |until| u64::try_from(until.since(now.real)).unwrap_or(0));
            let nap_us = NAP_US.min(left_us);
            self.clock.sleep_until(next_us.min(now.monotonic_us.saturating_add(nap_us)));
        }
    }

    /// The last windows are cut at this instant and kept.
    fn end(&mut self) {
        self.fleet.end(&mut self.node);
        self.node.end(self.clock.now());
    }
}
