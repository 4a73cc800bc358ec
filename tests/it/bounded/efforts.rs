//! How much settling read, as the ledger says it in its log.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// How many settlements there were, and how they read.
#[derive(Clone, Default)]
pub(crate) struct Efforts(Arc<Counts>);

#[derive(Default)]
struct Counts {
    all: AtomicU64,
    settled: AtomicU64,
    lowered: AtomicU64,
    bounded: AtomicU64,
    steps: AtomicU64,
    waiting: AtomicU64,
}

impl Efforts {
    /// So many facts stand: reading fewer is reading less than all.
    pub(crate) fn expect(&self, facts: usize) {
        self.0.all.store(u64::try_from(facts).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A step was taken, and facts of a backlog wait behind it.
    pub(crate) fn count_step(&self, waits: bool) {
        self.0.steps.fetch_add(1, Ordering::Relaxed);
        self.0.waiting.fetch_add(u64::from(waits), Ordering::Relaxed);
    }

    /// Steps behind which facts of a backlog wait, in percent.
    pub(crate) fn waiting_percent(&self) -> u64 {
        self.0.waiting.load(Ordering::Relaxed) * 100 / self.0.steps.load(Ordering::Relaxed).max(1)
    }

    pub(crate) fn settled(&self) -> u64 {
        self.0.settled.load(Ordering::Relaxed)
    }

    /// Settlements for which more had to be read, in percent.
    pub(crate) fn lowered_percent(&self) -> u64 {
        self.0.lowered.load(Ordering::Relaxed) * 100 / self.settled().max(1)
    }

    /// Settlements that read less than all, in percent.
    pub(crate) fn bounded_percent(&self) -> u64 {
        self.0.bounded.load(Ordering::Relaxed) * 100 / self.settled().max(1)
    }
}

impl Visit for &Counts {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "facts" => {
                self.settled.fetch_add(1, Ordering::Relaxed);
                self.bounded
                    .fetch_add(u64::from(value < self.all.load(Ordering::Relaxed)), Ordering::Relaxed);
            }
            "lowered" => drop(self.lowered.fetch_add(u64::from(value > 0), Ordering::Relaxed)),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if std::env::var_os("STORY").is_some() {
            drop(writeln!(std::io::stderr(), "  {field}: {value:?}"));
        }
    }
}

impl Subscriber for Efforts {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "gpuledger_ledger::settle"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
