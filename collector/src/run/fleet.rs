//! The library and the lanes of all GPUs: one cycle of the node.

use super::RunError;
use super::device::{DeviceLane, Looked};
use super::library::{Library, Opened, Order, Report};
use super::node::Node;
use crate::clock::Clock;
use crate::cycle::{Sampler, SamplerSettings};
use crate::health::{Backoff, BookError};
use crate::lanes::{Answer, Lane};
use crate::process::{BootError, Procfs};
use crate::settings::Settings;
use gpuledger_domain::geometry::Geometry;
use gpuledger_nvml::{Absent, DeviceEvent, EventKind, Reading, Versions};
use gpuledger_wire::geometry::geometry;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the library may take to load: a driver without persistence initialises every device first.
const LOAD_DEADLINE: Duration = Duration::from_secs(60);
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

/// All GPUs of the node.
pub(super) struct Fleet {
    clock: Arc<dyn Clock>,
    deadline: Duration,
    sampling: SamplerSettings,
    geometry: Arc<Geometry>,
    proc_root: PathBuf,
    boot_file: PathBuf,
    library: Lane<Order, Report>,
    is_loaded: bool,
    loading: Backoff,
    opening: Backoff,
    processes: Option<Arc<Procfs>>,
    lanes: BTreeMap<Name, DeviceLane>,
    /// Who stood where in the list, for those that can no longer be opened.
    indices: BTreeMap<u32, Name>,
    /// Some place in the list could not be opened.
    has_unopened: bool,
    revoked_since_us: Option<u64>,
}

impl Fleet {
    pub(super) fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, RunError> {
        let mut library = Library::new(settings.nvml_library.clone());
        let lane = Lane::start("nvml", move |order| library.carry_out(order));
        Ok(Self {
            clock,
            deadline: Duration::from_millis(settings.call_deadline_ms),
            sampling: settings.sampling(),
            geometry: Arc::new(geometry()),
            proc_root: settings.proc_root.clone(),
            boot_file: settings.beside_the_spool("boot.json"),
            library: lane.map_err(RunError::system("start a thread for the library"))?,
            is_loaded: false,
            loading: Backoff::default(),
            opening: Backoff::default(),
            processes: None,
            lanes: BTreeMap::new(),
            indices: BTreeMap::new(),
            has_unopened: false,
            revoked_since_us: None,
        })
    }

    /// Looks at every GPU once, and has the node say what is to be said.
    pub(super) fn cycle(&mut self, node: &mut Node) -> Result<(), Trouble> {
        if !self.is_loaded {
            self.load(node)?;
        }
        self.take_events(node);
        let troubles = self.look(node);
        self.open_again(node, &troubles)?;
        node.beat(self.clock.now());
        self.judge(&troubles)
    }

    /// Closes the windows of every GPU.
    pub(super) fn end(&mut self, node: &mut Node) {
        let until = Instant::now() + self.deadline;
        for (gpu, lane) in &mut self.lanes {
            if let Some(parts) = lane.flush(until) {
                node.flushed(gpu, parts);
            }
        }
    }

    fn load(&mut self, node: &mut Node) -> Result<(), Trouble> {
        let now = self.clock.now();
        if !self.library.is_busy() {
            if !self.loading.is_due(now.monotonic_us) {
                return Err(Trouble::NotLoaded("the next attempt is not due yet".to_owned()));
            }
            self.library.order(Order::Load);
        }
        let why = match self.library.answer(Instant::now() + LOAD_DEADLINE) {
            Answer::Done(Report::Loaded(versions, opened)) => return self.loaded(node, versions, opened),
            Answer::Done(Report::NotLoaded(why)) => why.to_string(),
            Answer::Done(_) | Answer::Idle => "it was busy with something else".to_owned(),
            Answer::Late(waited) => format!("NVML has not initialised after {waited:?}"),
            Answer::Ended => return Err(Trouble::Restart("the thread of the library ended".to_owned())),
        };
        self.loading.failed(now.monotonic_us);
        tracing::warn!(why, "NVML cannot be used; tried again");
        Err(Trouble::NotLoaded(why))
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
            None => Arc::new(Procfs::open(&self.proc_root, Some(&self.boot_file))?),
        };
        self.processes = Some(Arc::clone(&processes));
        node.loaded(processes.as_ref(), versions, self.clock.now())?;
        self.is_loaded = true;
        self.loading.worked();
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
        for Opened { index, device } in opened {
            match device {
                Ok((identity, gpu)) => {
                    let Ok(name) = Name::new(&identity.uuid) else { continue };
                    self.indices.insert(index, name.clone());
                    self.give(name, index, gpu)?;
                }
                Err(why) => {
                    self.has_unopened = true;
                    match self.indices.get(&index) {
                        Some(gpu) => node.failed(gpu, why, now),
                        None => tracing::warn!(index, %why, "a device cannot be opened"),
                    }
                }
            }
        }
        node.has(self.lanes.keys(), now);
        Ok(())
    }

    fn give(&mut self, name: Name, index: u32, gpu: Box<dyn gpuledger_nvml::Gpu>) -> Result<(), Trouble> {
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

    fn take_events(&mut self, node: &mut Node) {
        self.library.order(Order::Events);
        match self.library.answer(Instant::now() + self.deadline) {
            Answer::Done(Report::Events(events, why)) => {
                for event in events {
                    self.happened(node, &event);
                }
                if let Some(why) = why.filter(|why| *why != Absent::NotSupported) {
                    tracing::debug!(%why, "events cannot be read");
                }
            }
            Answer::Late(waited) => {
                tracing::warn!(?waited, "the driver does not answer when asked for events")
            }
            Answer::Done(_) | Answer::Idle | Answer::Ended => {}
        }
    }

    fn happened(&mut self, node: &mut Node, event: &DeviceEvent) {
        let Some((gpu, lane)) = Name::new(&event.gpu).ok().and_then(|gpu| {
            let lane = self.lanes.get_mut(&gpu)?;
            Some((gpu, lane))
        }) else {
            return;
        };
        if event.kind == EventKind::MigChange {
            lane.mig_changed(event.gpu_instance);
        }
        node.happened(&gpu, event, self.clock.now());
    }

    /// One cycle of every lane, and what kept some from being read.
    fn look(&mut self, node: &mut Node) -> Vec<Absent> {
        self.lanes.values_mut().for_each(DeviceLane::order_cycle);
        let until = Instant::now() + self.deadline;
        let mut troubles = Vec::new();
        let mut ended = Vec::new();
        for (gpu, lane) in &mut self.lanes {
            match lane.answer(until) {
                Looked::Cycle(report) => {
                    if let Some(why) = report.trouble {
                        lane.is_in_trouble(why);
                        troubles.push(why);
                    }
                    node.looked(gpu, *report);
                }
                Looked::Late => {
                    troubles.push(Absent::TimedOut);
                    node.late(gpu, self.clock.now());
                }
                Looked::Suspended => troubles.push(Absent::NotFound),
                Looked::Idle => {}
                Looked::Ended => ended.push(gpu.clone()),
            }
        }
        for gpu in ended {
            tracing::error!(%gpu, "the thread of a GPU ended; it is started anew");
            self.lanes.remove(&gpu);
            self.has_unopened = true;
        }
        troubles
    }

    /// Devices in trouble get a new handle as soon as there is one: soon, then less and less often.
    fn open_again(&mut self, node: &mut Node, troubles: &[Absent]) -> Result<(), Trouble> {
        let now_us = self.clock.now().monotonic_us;
        if troubles.is_empty() && !self.has_unopened {
            self.opening.worked();
            return Ok(());
        }
        if !self.opening.is_due(now_us) || self.library.is_busy() {
            return Ok(());
        }
        self.opening.failed(now_us);
        self.library.order(Order::Open);
        match self.library.answer(Instant::now() + self.deadline) {
            Answer::Done(Report::Opened(opened)) => self.opened(node, opened),
            _ => Ok(()),
        }
    }

    /// Whether the library, or the process, has to begin anew.
    fn judge(&mut self, troubles: &[Absent]) -> Result<(), Trouble> {
        if troubles.contains(&Absent::DriverMismatch) {
            let why = "the driver was replaced and no longer fits the library that is loaded";
            return Err(Trouble::Restart(why.to_owned()));
        }
        if troubles.iter().any(|why| why.needs_new_library()) {
            tracing::warn!("the driver was unloaded, or the library shut down; it is loaded anew");
            self.is_loaded = false;
        }
        let now_us = self.clock.now().monotonic_us;
        let is_revoked = !self.lanes.is_empty()
            && troubles.iter().filter(|why| **why == Absent::Unknown).count() == self.lanes.len();
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
