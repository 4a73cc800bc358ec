//! Everything about one GPU that lives from one cycle to the next.

use super::observation::{Observation, Timed};
use super::observe::{Cycle, Sight};
use super::report::{CycleReport, Gauges, LiveProcess, View};
use super::sampler::SamplerSettings;
use crate::clock::{Clock, Stamp};
use crate::integrate::{HELD_PERIODS, Integrator, Periods};
use crate::ladder::{Known, Ladder, Refused, Rung, Want, Why, probe};
use crate::process::Processes;
use crate::topology::{Tracker, inventory_gpu, slicing};
use crate::window::{Part, UnitKey};
use gpuledger_domain::geometry::Geometry;
use gpuledger_nvml::{Absent, Gpu, Identity, MigMode, Reading};
use gpuledger_wire::bodies::InventoryGpu;
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A device whose name is known.
#[derive(Debug)]
pub(super) struct Device {
    settings: SamplerSettings,
    geometry: Arc<Geometry>,
    identity: Identity,
    name: Name,
    mig: Reading<MigMode>,
    tracker: Tracker,
    ladder: Option<Arc<Ladder>>,
    /// By the monotonic clock.
    probed_us: u64,
    must_probe: bool,
    /// Errors of what it stands on, as they were last.
    errors: BTreeMap<Want, Absent>,
    known: Known,
    integrator: Integrator,
    last: Option<Last>,
    gauges: Gauges,
    memory_bytes: Option<u64>,
    inventory: Option<InventoryGpu>,
    is_reloaded: bool,
}

/// So often a ladder is probed though nothing failed: what an operator turned on shall be used without a restart.
const PROBE_AGAIN_US: u64 = 300_000_000;

/// The cycle before.
#[derive(Clone, Copy, Debug)]
struct Last {
    began: Stamp,
    ended: Stamp,
}

impl Device {
    /// None: its UUID is no name.
    pub(super) fn new(
        identity: Identity,
        settings: SamplerSettings,
        geometry: Arc<Geometry>,
        began: Stamp,
    ) -> Option<Self> {
        let name = Name::new(&identity.uuid).ok()?;
        let periods = Periods { sample_us: settings.period_us, slow_us: settings.slow_period_us };
        Some(Self {
            integrator: Integrator::new(name.clone(), settings.frame(), periods, began),
            settings,
            geometry,
            identity,
            name,
            mig: Err(Absent::NotYet),
            tracker: Tracker::default(),
            ladder: None,
            probed_us: 0,
            must_probe: false,
            errors: BTreeMap::new(),
            known: Known::default(),
            last: None,
            gauges: Gauges::absent(Absent::NotYet),
            memory_bytes: None,
            inventory: None,
            is_reloaded: false,
        })
    }

    pub(super) fn mig_changed(&mut self, gpu_instance: Option<u32>) {
        self.tracker.doubt(gpu_instance);
    }

    pub(super) fn reloaded(&mut self) {
        self.is_reloaded = true;
    }

    pub(super) fn flush(&mut self) -> Vec<Part> {
        self.integrator.flush()
    }

    pub(super) fn cycle(
        &mut self,
        gpu: &mut dyn Gpu,
        processes: &dyn Processes,
        clock: &dyn Clock,
        began: Stamp,
    ) -> CycleReport {
        let mut parts = self.resume(began);
        let sight = match self.ask_mode(gpu, began) {
            Ok(()) => self.look(gpu, processes, clock, began),
            Err(why) => {
                if why.is_device_gone() {
                    self.tracker.doubt(None);
                }
                Sight::failed(began, clock.now(), why)
            }
        };
        let last = self.last.map(|last| last.ended);
        let ladder = self.ladder.clone().unwrap_or_default();
        let discarded = self.integrator.take(&sight.observation, &ladder, last);
        let (told_to, closed) = self.integrator.close(sight.observation.ended);
        parts.extend(closed);
        let trouble = sight.observation.failed.or_else(|| self.note_errors(&sight.observation, &ladder));
        let ended = sight.observation.ended;
        self.last = Some(Last { began, ended });
        let inventory_changed = self.take_inventory(&sight.observation);
        CycleReport {
            at: ended,
            gpu: Some(self.name.clone()),
            told_to,
            parts,
            trouble,
            torn: sight.observation.torn,
            inventory: self.inventory.clone(),
            inventory_changed,
            discarded,
            view: Some(self.view(sight)),
        }
    }

    fn resume(&mut self, began: Stamp) -> Vec<Part> {
        let Some(last) = self.last else { return Vec::new() };
        let took_us = last.ended.monotonic_us.saturating_sub(last.began.monotonic_us);
        let is_slow_call = took_us > HELD_PERIODS * self.settings.period_us;
        let why = if is_slow_call { Why::Nvml(Absent::TimedOut) } else { Why::Paused };
        self.integrator.resume(last.began, began, why)
    }

    /// The first call of each cycle: what fails here fails everything.
    fn ask_mode(&mut self, gpu: &dyn Gpu, began: Stamp) -> Reading<()> {
        if self.is_reloaded {
            self.begin_anew(gpu.identity()?, began)?;
        }
        let mode = gpu.mig_mode()?;
        // Whether it can be cut at all is a property of the model: one that could does not lose it.
        if mode == MigMode::Unsupported && self.mig.is_ok_and(|known| known != mode) {
            return Err(Absent::Implausible);
        }
        self.mig = Ok(mode);
        Ok(())
    }

    fn begin_anew(&mut self, identity: Identity, began: Stamp) -> Reading<()> {
        if identity.uuid != self.identity.uuid {
            return Err(Absent::Implausible);
        }
        self.identity = identity;
        self.is_reloaded = false;
        self.tracker.doubt(None);
        self.ladder = None;
        self.known = Known::default();
        self.errors.clear();
        self.integrator.reload(self.last.map(|last| last.ended), began);
        Ok(())
    }

    fn look(
        &mut self,
        gpu: &mut dyn Gpu,
        processes: &dyn Processes,
        clock: &dyn Clock,
        began: Stamp,
    ) -> Sight {
        let is_on = matches!(self.mig, Ok(MigMode::On { .. }));
        let layout = is_on.then(|| gpu.instances());
        match &layout {
            Some(Ok(instances)) => drop(self.tracker.update(instances)),
            Some(Err(_)) => {}
            None => drop(self.tracker.update(&[])),
        }
        let is_slow = self.is_slow(began);
        let ladder = self.climb(gpu, is_on, is_slow, began.monotonic_us);
        let cycle = Cycle {
            gpu,
            processes,
            clock,
            ladder: &ladder,
            tracker: &mut self.tracker,
            integrator: &mut self.integrator,
            is_slow,
        };
        cycle.observe(began, layout)
    }

    /// Energy and accounting are read with the first cycle of each window, so that what they say of it is there when it is closed.
    fn is_slow(&self, began: Stamp) -> bool {
        let Some(last) = self.last else { return true };
        let (before, now) = (last.began.real, began.real);
        let step_us = i64::try_from(self.settings.slow_period_us).unwrap_or(i64::MAX).max(1);
        let frame = self.settings.frame();
        before.floor(step_us) != now.floor(step_us) || frame.window_of(before) != frame.window_of(now)
    }

    fn climb(&mut self, gpu: &dyn Gpu, is_on: bool, is_slow: bool, now_us: u64) -> Arc<Ladder> {
        let is_old = now_us.saturating_sub(self.probed_us) >= PROBE_AGAIN_US;
        let stands = self.ladder.as_ref().filter(|ladder| {
            let is_due = is_slow && (ladder.is_doubtful() || is_old);
            ladder.mig == is_on && !self.must_probe && !is_due
        });
        if let Some(ladder) = stands {
            return Arc::clone(ladder);
        }
        self.probed_us = now_us;
        let gpu_instance = self.tracker.instances().next().map(|instance| instance.id);
        let ladder = Arc::new(probe(gpu, is_on, Known { gpu_instance, ..self.known }));
        self.must_probe = false;
        self.ladder = Some(Arc::clone(&ladder));
        ladder
    }

    /// Compares the errors of this cycle with those of the last: where one came or went, the ladder is probed again. Gives one that no sound
    /// device has.
    fn note_errors(&mut self, seen: &Observation, ladder: &Ladder) -> Option<Absent> {
        let errors = seen.errors(ladder, &self.errors);
        if errors != self.errors {
            self.must_probe = true;
            let lasting = |want| {
                errors
                    .get(&want)
                    .copied()
                    .filter(|why| ladder.rung(want) == Rung::Gpm && Refused::Nvml(*why).lasts())
            };
            self.known.device_gpm = self.known.device_gpm.or(lasting(Want::DeviceSm));
            self.known.instance_gpm = self.known.instance_gpm.or(lasting(Want::InstanceSm));
        }
        self.errors = errors;
        // One reading that fails says nothing of the others: a sensor, or one instance of many.
        let is_silent =
            [Want::DeviceMemory, Want::ProcessMemory].iter().all(|want| self.errors.contains_key(want));
        let is_unsound = |why: &&Absent| {
            why.is_device_gone()
                || why.needs_new_library()
                || is_silent && matches!(why, Absent::Unknown | Absent::TimedOut)
        };
        self.errors.values().find(is_unsound).copied()
    }

    fn take_inventory(&mut self, seen: &Observation) -> bool {
        let device = seen.memory.iter().find(|(unit, _)| *unit == UnitKey::Device);
        if let Some((_, Timed { value: Ok(memory), .. })) = device {
            self.memory_bytes = Some(memory.total);
        }
        let slicing = slicing(&self.identity.name, self.mig, &self.geometry);
        let is_on = matches!(self.mig, Ok(MigMode::On { .. }));
        let now = slicing.and_then(|slicing| {
            inventory_gpu(&self.identity, slicing, self.memory_bytes, is_on, &self.tracker)
        });
        let changed = now != self.inventory;
        self.inventory = now;
        changed
    }

    fn view(&mut self, sight: Sight) -> View {
        if let Some(gauges) = sight.gauges {
            self.gauges = gauges;
        }
        let seen = sight.observation;
        let processes: Option<Vec<LiveProcess>> = seen.processes.value.is_ok().then_some(sight.live);
        let means = seen.gpm.iter().filter_map(|(unit, mean)| Some((*unit, (*mean).ok()??.sm_active)));
        View {
            identity: self.identity.clone(),
            mig: self.mig,
            instances: self.tracker.instances().cloned().collect(),
            memory: seen.memory.iter().map(|(unit, read)| (*unit, read.value)).collect(),
            sm_active: means.collect(),
            processes,
            gauges: self.gauges,
            ladder: self.ladder.clone(),
        }
    }
}
