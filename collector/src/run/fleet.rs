//! The library and the lanes of all GPUs: one cycle of the node.

use super::RunError;
use super::device::{DeviceLane, Looked};
use super::library::{Library, Order, Report};
use super::node::Node;
use crate::clock::Clock;
use crate::cycle::{Sampler, SamplerSettings};
use crate::driver::{LOAD_DEADLINE, Opened};
use crate::health::{Backoff, BookError};
use crate::lanes::{Answer, Lane};
use crate::process::{BootError, Procfs};
use crate::settings::Settings;
use gpuledger_domain::geometry::Geometry;
use gpuledger_nvml::{Absent, DeviceEvent, EventKind, Gpu, Reading, Versions};
use gpuledger_wire::geometry::geometry;
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so long without any device that answers, its access is taken for revoked: a device cgroup gives it back to a new process only.
const REVOKED_US: u64 = 60_000_000;

/// Why a cycle was none.
pub(super) enum Trouble {
    /// No library yet, or no longer.
    NotLoaded(String),
    /// Only a new process can go on.
    Restart(String),
}

impl From<BootError> for Trouble {
    fn from(error: BootError) -> Self {
        Self::NotLoaded(error.to_string())
    }
}

impl From<BookError> for Trouble {
    fn from(error: BookError) -> Self {
        Self::Restart(error.to_string())
    }
}

/// How long the leader waits for the lanes at a time. Who takes longer is heard in a later cycle.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// For the GPUs, for events, and for devices that are opened again.
    cycle: Duration,
    /// For the library to load.
    load: Duration,
}

impl Patience {
    /// A quarter of a period for each of the three things that a cycle waits for, so that one slow call, of whichever GPU, does not stretch the
    /// period of the others. The time of a simulated node goes on only with the leader: there it waits for everything.
    fn new(settings: &Settings) -> Self {
        let deadline = settings.call_deadline();
        if settings.clock_file.is_some() {
            return Self { cycle: deadline, load: LOAD_DEADLINE };
        }
        let quarter = Duration::from_micros(settings.period_us() / 4).min(deadline);
        Self { cycle: quarter, load: quarter }
    }

    fn until(wait: Duration) -> Instant {
        Instant::now() + wait
    }
}

/// All GPUs of the node.
pub(super) struct Fleet {
    clock: Arc<dyn Clock>,
    deadline: Duration,
    patience: Patience,
    /// The GPUs of a simulated node are looked at one after another: a call that takes long moves the time of all of them.
    takes_turns: bool,
    sampling: SamplerSettings,
    geometry: Arc<Geometry>,
    proc_root: PathBuf,
    boot_file: PathBuf,
    library: Lane<Order, Report>,
    /// What it was asked last passed its deadline.
    is_library_late: bool,
    is_loaded: bool,
    loading: Backoff,
    opening: Backoff,
    processes: Option<Arc<Procfs>>,
    lanes: BTreeMap<Name, DeviceLane>,
    /// Who stood where in the list, for those that can no longer be opened.
    indices: BTreeMap<u32, Name>,
    /// Some place in the list could not be opened.
    has_unopened: bool,
    /// Places of which not even the name is known.
    nameless: BTreeMap<u32, Absent>,
    revoked_since_us: Option<u64>,
}

impl Fleet {
    pub(super) fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, RunError> {
        let mut library = Library::new(settings.nvml_library.clone(), settings.call_deadline());
        let lane = Lane::start("nvml", move |order| library.carry_out(order));
        Ok(Self::of(lane.map_err(RunError::system("start a thread for the library"))?, settings, clock))
    }

    fn of(library: Lane<Order, Report>, settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            deadline: settings.call_deadline(),
            patience: Patience::new(settings),
            takes_turns: settings.clock_file.is_some(),
            sampling: settings.sampling(),
            geometry: Arc::new(geometry()),
            proc_root: settings.proc_root.clone(),
            boot_file: settings.beside_the_spool("boot.json"),
            library,
            is_library_late: false,
            is_loaded: false,
            loading: Backoff::default(),
            opening: Backoff::default(),
            processes: None,
            lanes: BTreeMap::new(),
            indices: BTreeMap::new(),
            has_unopened: false,
            nameless: BTreeMap::new(),
            revoked_since_us: None,
        }
    }

    /// Looks at every GPU once, and has the node say what is to be said.
    pub(super) fn cycle(&mut self, node: &mut Node) -> Result<(), Trouble> {
        self.listen(node, Instant::now())?;
        if !self.is_loaded {
            self.load(node)?;
        }
        self.take_events(node)?;
        self.look(node);
        self.open_again(node)?;
        node.beat(self.clock.now());
        self.judge()
    }

    /// Closes the windows of every GPU. What is still looking may end its cycle first, and is left behind if it hangs.
    pub(super) fn end(&mut self, node: &mut Node) {
        let until = Patience::until(self.deadline);
        self.hear(node, until);
        for (gpu, lane) in &mut self.lanes {
            if let Some(parts) = lane.flush(until) {
                node.flushed(gpu, parts);
            }
        }
    }

    /// Takes what the library says to its last order, whichever that was: a load, devices and events may all come late, and none is lost.
    fn listen(&mut self, node: &mut Node, until: Instant) -> Result<(), Trouble> {
        let deadline = if self.is_loaded { self.deadline } else { LOAD_DEADLINE };
        match self.library.answer(until) {
            Answer::Done(report) => {
                self.is_library_late = false;
                self.heard(node, report)
            }
            Answer::Late(age) if age >= deadline && !self.is_library_late => {
                self.is_library_late = true;
                tracing::warn!(?age, "NVML hangs: no events are read, and no device is opened");
                Ok(())
            }
            Answer::Idle | Answer::Late(_) => Ok(()),
            Answer::Ended => Err(Trouble::Restart("the thread of the library ended".to_owned())),
        }
    }

    fn heard(&mut self, node: &mut Node, report: Report) -> Result<(), Trouble> {
        match report {
            Report::Loaded(versions, opened) => self.loaded(node, versions, opened),
            Report::NotLoaded(why) => {
                tracing::warn!(%why, "NVML cannot be used; tried again");
                Err(Trouble::NotLoaded(why.to_string()))
            }
            Report::Opened(opened) => self.opened(node, opened),
            Report::Events(events, why) => {
                for event in events {
                    self.happened(node, &event);
                }
                if let Some(why) = why.filter(|why| *why != Absent::NotSupported) {
                    tracing::debug!(%why, "events cannot be read");
                }
                Ok(())
            }
        }
    }

    fn load(&mut self, node: &mut Node) -> Result<(), Trouble> {
        if !self.library.is_busy() {
            let now_us = self.clock.now().monotonic_us;
            if !self.loading.is_due(now_us) {
                return Err(Trouble::NotLoaded("the next attempt is not due yet".to_owned()));
            }
            // Failed until a cycle shows that it worked: a library that loads and is of no use is not loaded each second.
            self.loading.failed(now_us);
            self.library.order(Order::Load);
        }
        self.listen(node, Patience::until(self.patience.load))?;
        if self.is_loaded {
            Ok(())
        } else {
            Err(Trouble::NotLoaded("NVML has not initialised yet".to_owned()))
        }
    }

    fn loaded(
        &mut self,
        node: &mut Node,
        versions: Option<Versions>,
        opened: Reading<Vec<Opened>>,
    ) -> Result<(), Trouble> {
        // A simulated node has its procfs only from now on.
        let processes = match self.processes.take() {
            Some(processes) => processes,
            None => {
                let opened = Procfs::open(&self.proc_root, Some(&self.boot_file));
                Arc::new(opened.inspect_err(|error| tracing::warn!(%error, "nothing can be measured yet"))?)
            }
        };
        self.processes = Some(Arc::clone(&processes));
        node.loaded(processes.as_ref(), versions, self.clock.now())?;
        self.is_loaded = true;
        // Handles of the library before it answer nothing any more.
        self.lanes.values_mut().for_each(DeviceLane::suspend);
        self.opened(node, opened)
    }

    /// Gives each opened device to its lane.
    fn opened(&mut self, node: &mut Node, opened: Reading<Vec<Opened>>) -> Result<(), Trouble> {
        let now = self.clock.now();
        let opened = match opened {
            Ok(opened) => opened,
            Err(why) => {
                self.is_loaded &= !why.needs_new_library();
                self.has_unopened = true;
                tracing::warn!(%why, "the devices cannot be listed");
                return Ok(());
            }
        };
        self.has_unopened = false;
        self.nameless.clear();
        let mut failed = Vec::new();
        let mut seen = BTreeSet::new();
        for Opened { index, device } in opened {
            match device {
                Ok((identity, gpu)) => {
                    let Ok(name) = Name::new(&identity.uuid) else { continue };
                    self.indices.retain(|_, known| *known != name);
                    self.indices.insert(index, name.clone());
                    seen.insert(name.clone());
                    self.give(name, index, gpu)?;
                }
                Err(why) => failed.push((index, why)),
            }
        }
        // After the others: a new driver may count anew, and what stood at this place before may have been opened at another.
        for (index, why) in failed {
            self.has_unopened = true;
            match self.indices.get(&index) {
                Some(gpu) => node.failed(gpu, why, now),
                None => {
                    tracing::warn!(index, %why, "a device cannot be opened");
                    self.nameless.insert(index, why);
                }
            }
        }
        if !self.has_unopened {
            self.let_go(node, &seen);
        }
        node.has(self.lanes.keys(), now);
        Ok(())
    }

    /// Devices that a list without faults no longer has: taken out, or lost for good to this boot.
    fn let_go(&mut self, node: &mut Node, seen: &BTreeSet<Name>) {
        let gone: Vec<Name> = self.lanes.keys().filter(|gpu| !seen.contains(*gpu)).cloned().collect();
        for gpu in gone {
            tracing::warn!(%gpu, "the driver no longer lists the GPU; the inventory leaves it out");
            self.lanes.remove(&gpu);
            node.gone(&gpu);
        }
    }

    /// Places in the list whose device could never be opened, in words.
    pub(super) fn nameless(&self) -> Option<String> {
        let (index, why) = self.nameless.first_key_value()?;
        Some(format!("{} devices cannot be opened; the first is {index}: {why}", self.nameless.len()))
    }

    fn give(&mut self, name: Name, index: u32, gpu: Box<dyn Gpu>) -> Result<(), Trouble> {
        if let Some(lane) = self.lanes.get_mut(&name) {
            if lane.wants_handle() {
                lane.replace(gpu);
            }
            return Ok(());
        }
        let Some(processes) = self.processes.clone() else { return Ok(()) };
        let sampler = Sampler::new(self.sampling, Arc::clone(&self.geometry));
        let lane = DeviceLane::start(index, gpu, sampler, processes, Arc::clone(&self.clock));
        let lane = lane.map_err(|error| Trouble::Restart(format!("no thread for {name}: {error}")))?;
        self.lanes.insert(name, lane);
        Ok(())
    }

    fn take_events(&mut self, node: &mut Node) -> Result<(), Trouble> {
        if self.library.is_busy() {
            return Ok(());
        }
        self.library.order(Order::Events);
        self.listen(node, Patience::until(self.patience.cycle))
    }

    fn happened(&mut self, node: &mut Node, event: &DeviceEvent) {
        let Ok(gpu) = Name::new(&event.gpu) else { return };
        if let (EventKind::MigChange, Some(lane)) = (event.kind, self.lanes.get_mut(&gpu)) {
            lane.mig_changed(event.gpu_instance);
        }
        node.happened(&gpu, event, self.clock.now());
    }

    /// One cycle of every lane that is free, those too that have only come back since the last one.
    fn look(&mut self, node: &mut Node) {
        self.hear(node, Instant::now());
        if self.takes_turns {
            for gpu in self.lanes.keys().cloned().collect::<Vec<_>>() {
                self.lanes.get_mut(&gpu).into_iter().for_each(DeviceLane::order_cycle);
                self.hear(node, Patience::until(self.patience.cycle));
            }
            return;
        }
        self.lanes.values_mut().for_each(DeviceLane::order_cycle);
        self.hear(node, Patience::until(self.patience.cycle));
    }

    /// Takes what the lanes say until an instant.
    fn hear(&mut self, node: &mut Node, until: Instant) {
        let mut ended = Vec::new();
        for (gpu, lane) in &mut self.lanes {
            match lane.answer(until, self.deadline) {
                Looked::Cycle(report) => node.looked(gpu, *report),
                Looked::Late => node.late(gpu, self.clock.now()),
                Looked::Nothing => {}
                Looked::Ended => ended.push(gpu.clone()),
            }
        }
        for gpu in ended {
            tracing::error!(%gpu, "the thread of a GPU ended; it is started anew");
            self.lanes.remove(&gpu);
            self.has_unopened = true;
        }
    }

    /// Devices in trouble get a new handle as soon as there is one: soon, then less and less often. One that hangs gets none, and is not
    /// asked for: whatever asks it hangs as well.
    fn open_again(&mut self, node: &mut Node) -> Result<(), Trouble> {
        if !self.has_unopened && !self.lanes.values().any(DeviceLane::wants_handle) {
            self.opening.worked();
            return Ok(());
        }
        let now_us = self.clock.now().monotonic_us;
        if !self.opening.is_due(now_us) || self.library.is_busy() {
            return Ok(());
        }
        self.opening.failed(now_us);
        self.library.order(Order::Open);
        self.listen(node, Patience::until(self.patience.cycle))
    }

    /// Whether the library, or the process, has to begin anew.
    fn judge(&mut self) -> Result<(), Trouble> {
        let troubles: Vec<Option<Absent>> = self.lanes.values().map(DeviceLane::trouble).collect();
        if troubles.contains(&Some(Absent::DriverMismatch)) {
            let why = "the driver was replaced and no longer fits the library that is loaded";
            return Err(Trouble::Restart(why.to_owned()));
        }
        if troubles.iter().flatten().any(|why| why.needs_new_library()) {
            tracing::warn!("the driver was unloaded, or the library shut down; it is loaded anew");
            self.is_loaded = false;
        } else if self.lanes.values().any(DeviceLane::is_well) {
            self.loading.worked();
        }
        self.judge_access(!troubles.is_empty() && troubles.iter().all(|why| *why == Some(Absent::Unknown)))
    }

    /// Access that was taken away comes back to a new process only.
    fn judge_access(&mut self, is_revoked: bool) -> Result<(), Trouble> {
        let now_us = self.clock.now().monotonic_us;
        let since_us = *self.revoked_since_us.get_or_insert(now_us);
        if !is_revoked {
            self.revoked_since_us = None;
        } else if now_us.saturating_sub(since_us) >= REVOKED_US {
            let why = "no device has answered for a minute (code 999): access was revoked, as a reload of systemd does to containers";
            return Err(Trouble::Restart(why.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
