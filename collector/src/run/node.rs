//! What the node says: windows, its inventory, states of units, placements. What the spool cannot keep now is said again later.

use super::RunError;
use super::figures::figures;
use super::labels::Labels;
use super::witness::Witness;
use crate::clock::{Clock, Stamp};
use crate::cycle::{CycleReport, View};
use crate::health::{Book, BookError, Change, GpuHealth, Recovery, Signal, Xid};
use crate::integrate::SAMPLE_US;
use crate::metrics::{Board, Outcome};
use crate::placed::{NodeDevice, Placement, Placer, Rules, Sighting};
use crate::pods::Pods;
use crate::process::{Processes, Procfs};
use crate::publish::PublishWatch;
use crate::settings::Settings;
use crate::spool::Spool;
use crate::topology::inventory;
use crate::window::{ClosedWindow, Frame, NodeWindows, Part};
use gpuledger_domain::time::{Instant, MINUTE_US};
use gpuledger_nvml::{Absent, DeviceEvent, EventKind, MigInstance, Versions};
use gpuledger_wire::EventData;
use gpuledger_wire::bodies::InventoryGpu;
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// The node, as it stands and as it is told.
pub(super) struct Node {
    name: Name,
    frame: Frame,
    patience_us: i64,
    faults_file: PathBuf,
    spool: Spool,
    board: Arc<Board>,
    watch: PublishWatch,
    witness: Witness,
    placer: Placer,
    /// Placements that are not in the spool yet.
    unsaid: VecDeque<Placement>,
    /// Since the library was first loaded.
    begun: Option<Begun>,
    gpus: BTreeMap<Name, GpuState>,
    is_inventory_due: bool,
    /// The UTC minute in which the inventory was said last.
    said_minute: Option<Instant>,
    /// Who holds what, for `--dcgm-names`; none without them.
    labels: Option<Labels>,
}

/// What is known only once the node's procfs can be read.
struct Begun {
    boot_id: Name,
    windows: NodeWindows,
    book: Book,
}

/// One GPU, as it stands.
struct GpuState {
    health: GpuHealth,
    view: Option<View>,
    instances: Vec<MigInstance>,
    inventory: Option<InventoryGpu>,
}

impl Node {
    pub(super) fn new(
        name: Name,
        settings: &Settings,
        spool: Spool,
        board: Arc<Board>,
        watch: PublishWatch,
        witness: Witness,
    ) -> Self {
        let deadline_us = i64::try_from(settings.call_deadline_ms.saturating_mul(1_000)).unwrap_or(i64::MAX);
        // A lane tells a window two periods and a sample of the driver after its end, with its next cycle, and each may take its deadline.
        let lag_us = settings.period_us().saturating_mul(3).saturating_add(SAMPLE_US);
        let lag_us = i64::try_from(lag_us).unwrap_or(i64::MAX);
        Self {
            name,
            frame: settings.sampling().frame(),
            patience_us: deadline_us.saturating_add(lag_us),
            faults_file: settings.beside_the_spool("faults.json"),
            spool,
            board,
            watch,
            witness,
            placer: Placer::new(Rules::default()),
            unsaid: VecDeque::new(),
            begun: None,
            gpus: BTreeMap::new(),
            is_inventory_due: true,
            said_minute: None,
            labels: settings.dcgm_names.then(Labels::default),
        }
    }

    /// The library was loaded, at first or anew.
    pub(super) fn loaded(
        &mut self,
        processes: &Procfs,
        versions: Option<Versions>,
        now: Stamp,
    ) -> Result<(), BookError> {
        let driver = versions.as_ref().map(|versions| versions.driver.clone()).unwrap_or_default();
        if self.begun.is_none() {
            let boot_id = processes.boot_id().clone();
            let book = Book::open(&self.faults_file, &boot_id, &driver)?;
            let windows =
                NodeWindows::new(self.name.clone(), boot_id.clone(), self.frame, self.patience_us, now.real);
            self.begun = Some(Begun { boot_id, windows, book });
            let hindrance = processes.standing().to_string();
            if !hindrance.is_empty() {
                tracing::warn!(hindrance, "processes cannot be attributed fully");
            }
        } else {
            self.gpus
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .iter()
                .for_each(|gpu| self.signal(gpu, Signal::Reloaded, now));
        }
        if let Some(versions) = versions {
            self.board.loaded(versions);
        }
        Ok(())
    }

    /// The GPUs that have a lane.
    pub(super) fn has<'a>(&mut self, gpus: impl Iterator<Item = &'a Name>, now: Stamp) {
        let Some(begun) = &mut self.begun else { return };
        for gpu in gpus {
            begun.windows.expect(gpu.clone());
            self.gpus.entry(gpu.clone()).or_insert_with(|| GpuState {
                health: begun.book.health(gpu.clone(), now),
                view: None,
                instances: Vec::new(),
                inventory: None,
            });
        }
        let uuids: BTreeSet<String> = self.gpus.keys().map(ToString::to_string).collect();
        self.board.has_gpus(&uuids);
        for state in self.gpus.values() {
            self.board.judged(&state.health);
        }
    }

    /// A GPU was looked at.
    pub(super) fn looked(&mut self, gpu: &Name, report: CycleReport) {
        if let Some(begun) = &mut self.begun {
            begun.windows.add(gpu, report.told_to, report.parts);
        }
        for discard in &report.discarded {
            self.board.discarded(discard.as_str(), 1);
        }
        self.is_inventory_due |= report.inventory_changed;
        let signal = match (report.trouble, &report.view) {
            (Some(why), _) => Signal::Failed(why),
            (None, Some(view)) => Signal::Read {
                recovery: view.gauges.recovery_action.ok().map(Recovery::from),
                energy_mj: view.gauges.energy_mj.ok(),
            },
            (None, None) => Signal::Failed(Absent::NotYet),
        };
        match (&report.trouble, &report.view) {
            (None, Some(view)) => {
                let outcome = if report.torn { Outcome::Torn } else { Outcome::Complete };
                self.board.read(figures(view), report.at, outcome);
            }
            _ => self.board.failed(gpu.as_str()),
        }
        self.signal(gpu, signal, report.at);
        if let Some(state) = self.gpus.get_mut(gpu) {
            state.inventory = report.inventory.or(state.inventory.take());
            if report.trouble.is_none() && !report.torn {
                if let Some(view) = &report.view {
                    let instances =
                        view.instances.iter().flat_map(|one| one.devices.iter().cloned()).collect();
                    let identity = state.view.as_ref().map(|view| &view.identity);
                    let is_other = identity != Some(&view.identity) || state.instances != instances;
                    if let Some(labels) = self.labels.as_mut().filter(|_| is_other) {
                        labels.changed();
                    }
                    state.instances = instances;
                }
                state.view = report.view;
            }
        }
    }

    /// A GPU's lane did not answer in time.
    pub(super) fn late(&mut self, gpu: &Name, now: Stamp) {
        self.board.stalled(gpu.as_str());
        self.signal(gpu, Signal::Failed(Absent::TimedOut), now);
    }

    /// A GPU cannot be opened.
    pub(super) fn failed(&mut self, gpu: &Name, why: Absent, now: Stamp) {
        self.signal(gpu, Signal::Failed(why), now);
    }

    /// The driver reported something of a GPU.
    pub(super) fn happened(&mut self, gpu: &Name, event: &DeviceEvent, now: Stamp) {
        let Some(view) = self.gpus.get(gpu).map(|state| state.view.as_ref()) else { return };
        let signal = match event.kind {
            EventKind::Xid(number) => {
                self.board.xid(gpu.as_str(), number);
                let placement = event.gpu_instance.and_then(|id| view?.placement(id));
                Signal::Xid { xid: Xid(number), placement, mps: view.is_some_and(View::has_mps) }
            }
            EventKind::DoubleBitError => Signal::DoubleBitError,
            EventKind::MigChange | EventKind::Other(_) => return,
        };
        self.signal(gpu, signal, now);
    }

    /// A GPU's last windows.
    pub(super) fn flushed(&mut self, gpu: &Name, parts: Vec<Part>) {
        if let Some(begun) = &mut self.begun {
            let told_to = parts.iter().map(|part| part.window.end()).max().unwrap_or(Instant::MIN);
            begun.windows.add(gpu, told_to, parts);
        }
    }

    /// A GPU is no longer there: nobody waits for it, and the inventory leaves it out.
    pub(super) fn gone(&mut self, gpu: &Name) {
        self.gpus.remove(gpu);
        self.is_inventory_due = true;
        if let Some(begun) = &mut self.begun {
            begun.windows.forget(gpu);
        }
    }

    /// Whether these are the GPUs that stand in the inventory.
    #[cfg(test)]
    pub(super) fn has_only(&self, gpus: &[&str]) -> bool {
        self.gpus.keys().map(Name::as_str).eq(gpus.iter().copied())
    }

    /// After each cycle: closes windows and says what is to be said.
    pub(super) fn beat(&mut self, now: Stamp) {
        self.go_on(now);
        self.say_inventory(now.real);
        self.say_placements(now);
    }

    /// Also where nothing can be read: windows that only say so are proof that the node lives. An inventory would say what nobody has
    /// seen.
    pub(super) fn go_on(&mut self, now: Stamp) {
        let closed = self.begun.as_mut().map(|begun| begun.windows.close(now.real)).unwrap_or_default();
        self.keep(closed);
        if let Some(begun) = &mut self.begun {
            begun.book.retry(|change| say(&self.spool, change));
            self.board.late(begun.windows.late());
        }
        self.board.delivered(self.spool.status(), self.watch.status());
    }

    /// The last windows, cut at `now`.
    pub(super) fn end(&mut self, now: Stamp) {
        let closed = self.begun.as_mut().map(|begun| begun.windows.flush(now.real)).unwrap_or_default();
        self.keep(closed);
        self.say_placements(now);
    }

    fn keep(&self, closed: Vec<ClosedWindow>) {
        for window in closed {
            self.board.measured(&window.units);
            for gap in &window.gaps {
                let reason = gap.reason.as_str();
                self.board.gap(reason.split_once('(').map_or(reason, |(word, _)| word));
            }
            // What is not kept becomes a gap of the next window that is: the spool sees to it, and says so.
            drop(self.spool.append_window(window));
        }
    }

    /// With each change and each UTC minute: the inventory is also the heartbeat.
    fn say_inventory(&mut self, now: Instant) {
        let Some(begun) = &self.begun else { return };
        // Another minute, not a later one: when UTC was set back the heartbeat goes on.
        let minute = Some(now.floor(MINUTE_US));
        if !self.is_inventory_due && minute == self.said_minute {
            return;
        }
        let gpus = self.gpus.values().filter_map(|state| {
            let state_word = Name::new(state.health.word()).ok();
            Some(InventoryGpu { state: state_word, ..state.inventory.clone()? })
        });
        let body = inventory(self.name.clone(), begun.boot_id.clone(), gpus.collect());
        if self.spool.append_fact(now, EventData::from(body)).is_ok() {
            self.is_inventory_due = false;
            self.said_minute = minute;
        }
    }

    fn say_placements(&mut self, now: Stamp) {
        let listing = self.witness.latest(now);
        let devices: Vec<NodeDevice<'_>> = self.gpus.values().filter_map(GpuState::device).collect();
        let sightings: Vec<Sighting<'_>> =
            self.gpus.iter().flat_map(|(gpu, state)| state.sightings(gpu)).collect();
        let outcome = self.placer.observe(now, &devices, &sightings, listing.as_deref());
        if let Some(holders) = self.labels.as_mut().and_then(|labels| labels.take(listing.as_ref(), &devices))
        {
            self.board.held(holders);
        }
        outcome.disagreements.iter().for_each(|_| self.board.disagreed());
        self.unsaid.extend(outcome.placed);
        while let Some(placement) = self.unsaid.front() {
            if self.spool.append_fact(placement.at, EventData::from(placement.body.clone())).is_err() {
                break;
            }
            self.unsaid.pop_front();
        }
    }

    fn signal(&mut self, gpu: &Name, signal: Signal, at: Stamp) {
        let (Some(state), Some(begun)) = (self.gpus.get_mut(gpu), &mut self.begun) else { return };
        let before = state.health.word();
        let verdict = state.health.on(signal, at);
        verdict.log(gpu.as_str());
        self.is_inventory_due |= state.health.word() != before;
        if !verdict.changes.is_empty() {
            let kept = begun.book.say(&state.health, verdict.changes, |change| say(&self.spool, change));
            if let Err(error) = kept {
                tracing::error!(%error, "the book of faults cannot be written; after a restart a fault may not be taken back");
            }
        }
        self.board.judged(&state.health);
    }
}

impl GpuState {
    fn device(&self) -> Option<NodeDevice<'_>> {
        Some(NodeDevice { identity: &self.view.as_ref()?.identity, instances: &self.instances })
    }

    fn sightings<'a>(&'a self, gpu: &'a Name) -> impl Iterator<Item = Sighting<'a>> {
        let processes = self.view.iter().flat_map(|view| view.processes.iter().flatten());
        processes.map(move |process| Sighting {
            gpu: gpu.as_str(),
            gpu_instance: process.gpu_instance,
            compute_instance: process.compute_instance,
            process: process.process,
            owner: &process.owner,
        })
    }
}

fn say(spool: &Spool, change: &Change) -> Result<(), crate::spool::NotKept> {
    spool.append_fact(change.at, EventData::from(change.state.clone())).map(drop)
}

/// The witness of a node.
pub(super) fn witness(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Witness, RunError> {
    let mut pods = Pods::default();
    pods.kubelet.socket.clone_from(&settings.pod_resources_socket);
    Witness::start(pods, clock, settings.clock_file.is_some())
        .map_err(RunError::system("start a thread for the kubelet"))
}
