//! The board: the latest figures of each GPU, and counters of the collector's own work.

use super::durations::Durations;
use super::exposition::Exposition;
use super::figures::{GpuFigures, Holder, InstanceFigures};
use super::{dcgm, own};
use crate::clock::{Clock, Stamp};
use crate::health::{Fault, GpuHealth};
use crate::publish::PublishStatus;
use crate::spool::SpoolStatus;
use gpuledger_nvml::{Placement, Versions};
use gpuledger_telemetry::health::{Health, Report};
use gpuledger_wire::bodies::UnitReading;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a cycle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Read and believed.
    Complete,
    /// The instances changed while it was read.
    Torn,
    /// The device could not be read.
    Failed,
}

impl Outcome {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Torn => "torn",
            Self::Failed => "failed",
        }
    }
}

/// The board of a node. Lanes write, whoever scrapes reads; clones of the `Arc` are the same board.
pub struct Board {
    clock: Arc<dyn Clock>,
    health: Health,
    /// Figures older than this are not shown, and the node is not ready.
    stale_us: u64,
    with_dcgm_names: bool,
    state: Mutex<State>,
}

/// What stands on it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) node: String,
    pub(super) versions: Option<Versions>,
    /// By UUID.
    pub(super) gpus: BTreeMap<String, Gpu>,
    /// By UUID and GPU instance.
    pub(super) holders: BTreeMap<(String, Option<u32>), Holder>,
    pub(super) discarded: BTreeMap<&'static str, u64>,
    pub(super) gaps: BTreeMap<String, u64>,
    pub(super) durations: Durations,
    pub(super) late_parts: u64,
    pub(super) reloads: u64,
    pub(super) disagreements: u64,
    pub(super) delivery: Option<(SpoolStatus, PublishStatus)>,
}

/// What stands on it of one GPU.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) read: Option<Read>,
    /// `ok` or `fault`; none: not judged yet.
    pub(super) word: Option<&'static str>,
    pub(super) is_readable: bool,
    /// Known to be off the bus, or to want a reset.
    is_away: bool,
    why_not: String,
    pub(super) cycles: BTreeMap<Outcome, u64>,
    pub(super) stalled: u64,
    pub(super) xids: BTreeMap<u64, u64>,
    pub(super) last_xid: u64,
    device: Totals,
    /// By placement: the generation they are of, and the sums.
    instances: BTreeMap<Placement, (u64, Totals)>,
}

/// The last good cycle of a GPU.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) at: Stamp,
    pub(super) figures: GpuFigures,
}

/// Sums since the collector, or the instance, began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// None until something was measured once.
    pub(super) sm_active_us: Option<u128>,
    pub(super) sm_covered_us: u128,
    pub(super) memory_byte_us: Option<u128>,
}

impl Totals {
    fn add(&mut self, reading: &UnitReading) {
        if let Some(active) = reading.sm_active_us {
            self.sm_active_us = Some(self.sm_active_us.unwrap_or_default() + positive(active.get().into()));
            self.sm_covered_us += positive(reading.covered_us_of("sm_active_us").get().into());
        }
        if let Some(byte_us) = reading.memory_byte_us {
            let sum = self.memory_byte_us.unwrap_or_default().saturating_add(positive(byte_us.get()));
            self.memory_byte_us = Some(sum);
        }
    }
}

/// Counts are never negative.
fn positive(number: i128) -> u128 {
    u128::try_from(number).unwrap_or_default()
}

impl Gpu {
    pub(super) const fn device(&self) -> Totals {
        self.device
    }

    pub(super) fn instance(&self, instance: &InstanceFigures) -> Totals {
        let entry = instance.placement.as_ref().ok().and_then(|placement| self.instances.get(placement));
        entry.map(|(_, totals)| *totals).unwrap_or_default()
    }

    /// Sums of instances that are gone go with them, and a new one in the same place begins at zero.
    fn lives(&mut self, figures: &GpuFigures) {
        let before = std::mem::take(&mut self.instances);
        for InstanceFigures { generation, placement, .. } in &figures.instances {
            let Ok(placement) = *placement else { continue };
            let kept = before.get(&placement).filter(|(of, _)| of == generation);
            self.instances.insert(placement, kept.copied().unwrap_or((*generation, Totals::default())));
        }
    }

    fn measured(&mut self, reading: &UnitReading) {
        let Some(on_the_wire) = reading.placement else { return self.device.add(reading) };
        let placement =
            Placement { start: on_the_wire.start.get().into(), size: on_the_wire.size.get().into() };
        if let Some((_, totals)) = self.instances.get_mut(&placement) {
            totals.add(reading);
        }
    }
}

impl Board {
    /// An empty board. `stale_us`: microseconds after which figures are too old to be shown; some cycles' worth.
    pub fn new(
        node: &str,
        clock: Arc<dyn Clock>,
        health: Health,
        stale_us: u64,
        with_dcgm_names: bool,
    ) -> Self {
        let state = State { node: node.to_owned(), ..State::default() };
        Self { clock, health, stale_us, with_dcgm_names, state: Mutex::new(state) }
    }

    /// The driver was loaded, at first or anew.
    pub fn loaded(&self, versions: Versions) {
        let mut state = self.state();
        if state.versions.replace(versions).is_some() {
            state.reloads += 1;
        }
    }

    /// The GPUs that the node has now: what stands of others is taken off.
    pub fn has_gpus(&self, uuids: &BTreeSet<String>) {
        let mut state = self.state();
        state.gpus.retain(|uuid, _| uuids.contains(uuid));
        for uuid in uuids {
            state.gpus.entry(uuid.clone()).or_default();
        }
    }

    /// A good cycle of a GPU, or a torn one whose device values are good.
    pub fn read(&self, figures: GpuFigures, at: Stamp, outcome: Outcome) {
        let mut state = self.state();
        let gpu = state.gpus.entry(figures.identity.uuid.clone()).or_default();
        *gpu.cycles.entry(outcome).or_default() += 1;
        gpu.lives(&figures);
        gpu.read = Some(Read { at, figures });
    }

    /// A closed window: what it says of units is added to their counters, so that these are the numbers the ledger gets.
    pub fn measured(&self, units: &[UnitReading]) {
        let mut state = self.state();
        for reading in units {
            if let Some(gpu) = state.gpus.get_mut(reading.gpu.as_str()) {
                gpu.measured(reading);
            }
        }
    }

    /// A cycle of a GPU that showed nothing.
    pub fn failed(&self, uuid: &str) {
        self.gpu(uuid, |gpu| *gpu.cycles.entry(Outcome::Failed).or_default() += 1);
    }

    /// What is thought of a GPU.
    pub fn judged(&self, health: &GpuHealth) {
        self.gpu(health.gpu(), |gpu| {
            gpu.word = Some(health.word());
            gpu.is_away = health.fault().is_some_and(Fault::is_away);
            gpu.is_readable = health.blind().is_none() && !gpu.is_away;
            gpu.why_not = health.blind().map(|blind| blind.why.to_string()).unwrap_or_default();
        });
    }

    /// A cycle of all GPUs took this long.
    pub fn cycled(&self, duration: Duration) {
        self.state().durations.add(duration);
    }

    /// Parts of windows, since the collector began, that came after their window was closed.
    pub fn late(&self, parts: u64) {
        self.state().late_parts = parts;
    }

    /// An Xid error of a GPU.
    pub fn xid(&self, uuid: &str, number: u64) {
        self.gpu(uuid, |gpu| {
            *gpu.xids.entry(number).or_default() += 1;
            gpu.last_xid = number;
        });
    }

    /// A call to a GPU passed its deadline.
    pub fn stalled(&self, uuid: &str) {
        self.gpu(uuid, |gpu| gpu.stalled += 1);
    }

    /// Process rows that were not believed.
    pub fn discarded(&self, reason: &'static str, rows: u64) {
        *self.state().discarded.entry(reason).or_default() += rows;
    }

    /// A gap was recorded.
    pub fn gap(&self, reason: &str) {
        *self.state().gaps.entry(reason.to_owned()).or_default() += 1;
    }

    /// The two ways to tell an owner did not agree.
    pub fn disagreed(&self) {
        self.state().disagreements += 1;
    }

    /// How delivery stands.
    pub fn delivered(&self, spool: SpoolStatus, publish: PublishStatus) {
        self.state().delivery = Some((spool, publish));
    }

    /// Who holds each unit now, by UUID of the GPU and GPU instance. For the labels of `--dcgm-names` only.
    pub fn held(&self, holders: BTreeMap<(String, Option<u32>), Holder>) {
        self.state().holders = holders;
    }

    /// The text for `/metrics`.
    pub fn exposition(&self) -> String {
        let now = self.clock.now();
        let state = self.state();
        let mut exposition = Exposition::default();
        let fresh = self.fresh(&state, now);
        own::write(&mut exposition, &state, &fresh, now);
        if self.with_dcgm_names {
            dcgm::write(&mut exposition, &state, &fresh);
        }
        exposition.into_text()
    }

    /// The answer to `/readyz`: every part of the process is ready, and every GPU was read of late.
    pub fn ready(&self) -> Report {
        let now = self.clock.now();
        let mut report = self.health.ready();
        let state = self.state();
        for (uuid, gpu) in &state.gpus {
            if let Some(why) = self.why_unready(gpu, now) {
                report.faults.push((uuid.clone(), why));
            }
        }
        let trouble = state.delivery.as_ref().and_then(|(spool, _)| spool.trouble);
        report
            .faults
            .extend(trouble.map(|why| ("spool".to_owned(), format!("windows are not kept: {}", why.word()))));
        report.ok = report.faults.is_empty();
        report
    }

    /// The answer to `/healthz`.
    pub fn live(&self) -> Report {
        self.health.live()
    }

    /// GPUs with figures young enough to be shown.
    fn fresh<'a>(&self, state: &'a State, now: Stamp) -> BTreeMap<&'a str, &'a Read> {
        let fresh = |read: &&Read| self.is_fresh(read, now);
        state
            .gpus
            .iter()
            .filter_map(|(uuid, gpu)| Some((uuid.as_str(), gpu.read.as_ref().filter(fresh)?)))
            .collect()
    }

    fn is_fresh(&self, read: &Read, now: Stamp) -> bool {
        now.monotonic_us.saturating_sub(read.at.monotonic_us) <= self.stale_us
    }

    fn why_unready(&self, gpu: &Gpu, now: Stamp) -> Option<String> {
        match &gpu.read {
            // A GPU known to be away is looked after: its state is said, and the node goes on with the others.
            _ if gpu.is_away => None,
            Some(read) if self.is_fresh(read, now) => None,
            _ if !gpu.why_not.is_empty() => Some(format!("cannot be read: {}", gpu.why_not)),
            Some(read) => Some(format!("not read since {}", read.at.real)),
            None => Some("not read yet".to_owned()),
        }
    }

    fn gpu(&self, uuid: &str, change: impl FnOnce(&mut Gpu)) {
        change(self.state().gpus.entry(uuid.to_owned()).or_default());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests;
