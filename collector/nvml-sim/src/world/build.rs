//! From steps to states: one pass over the timeline, settled at each instant at which something happens.

mod device;
mod injected;
mod mig;
mod processes;
mod settle;

use super::lives::DriverLife;
use super::state::{GpuState, MigState, Presence};
use super::track::{Share, Track};
use super::{Amount, Gpu, World};
use crate::model::{MODELS, Model};
use crate::scenario::{Action, ComputeMode, Fault, GpuSpec, MigSpec, Scenario, Step};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a member of a step, or of the head.
struct Wrong {
    member: String,
    problem: String,
}

type Outcome = Result<(), Wrong>;

fn wrong<T>(member: &str, problem: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { member: member.to_owned(), problem: problem.into() })
}

/// A world in the making, and what lives now.
struct Builder {
    world: World,
    now_us: u64,
    gpus: Vec<LiveGpu>,
    running: BTreeMap<u32, usize>,
    left: BTreeMap<u32, usize>,
    last_tick: BTreeMap<u32, u64>,
    touched: BTreeSet<usize>,
}

struct LiveGpu {
    presence: Presence,
    is_revoked: bool,
    mig: Option<MigState>,
    instances: BTreeMap<u32, usize>,
    devices: BTreeMap<u32, usize>,
    contexts: Vec<LiveContext>,
    accounting_since_us: Option<u64>,
    has_persistence: bool,
    compute_mode: ComputeMode,
    recovery_action: u32,
    errors: u64,
    errors_ever: u64,
    generation: u32,
}

struct LiveContext {
    index: usize,
    demand: Share,
    memory_bytes: u64,
    is_memory_unknown: bool,
    is_open: bool,
}

pub(super) fn build(scenario: Scenario) -> Result<World, Fault> {
    let fault = |line, field: String, problem| Fault { file: String::new(), line, field, problem };
    let mut builder = Builder::new(scenario).map_err(|wrong| fault(0, wrong.member, wrong.problem))?;
    let timeline = std::mem::take(&mut builder.world.scenario.timeline);
    for (i, step) in timeline.iter().enumerate() {
        builder.step(step).map_err(|wrong| {
            let member = if wrong.member.is_empty() { String::new() } else { format!(".{}", wrong.member) };
            fault(step.line, format!("timeline[{i}]{member}"), wrong.problem)
        })?;
    }
    builder.settle();
    builder.world.scenario.timeline = timeline;
    Ok(builder.finish())
}

impl Builder {
    fn new(scenario: Scenario) -> Result<Self, Wrong> {
        check_head(&scenario)?;
        let models = scenario.gpus.iter().enumerate().map(model_of).collect::<Result<Vec<_>, _>>()?;
        let driver = DriverLife { epoch: 0, driver: scenario.driver.clone(), from_us: 0, until_us: u64::MAX };
        let gpus: Vec<LiveGpu> =
            scenario.gpus.iter().zip(&models).map(|(spec, model)| LiveGpu::new(spec, model)).collect();
        let touched = (0..gpus.len()).collect();
        let cell_us = scenario.load_cell.0;
        let made = models.into_iter().zip(&scenario.gpus).map(|(model, spec)| Gpu {
            model,
            states: Vec::new(),
            busy: Track::new(cell_us),
            memory: Amount::default(),
            energy: vec![(0, spec.energy_mj)],
        });
        let world = World {
            gpus: made.collect(),
            gpu_instances: Vec::new(),
            compute_instances: Vec::new(),
            processes: Vec::new(),
            contexts: Vec::new(),
            drivers: vec![driver],
            events: Vec::new(),
            jumps: Vec::new(),
            injections: Vec::new(),
            echoes: Vec::new(),
            garbage: Vec::new(),
            process_changes: Vec::new(),
            scenario,
        };
        Ok(Self {
            world,
            now_us: 0,
            gpus,
            running: BTreeMap::new(),
            left: BTreeMap::new(),
            last_tick: BTreeMap::new(),
            touched,
        })
    }

    fn step(&mut self, step: &Step) -> Outcome {
        if step.at.0 < self.now_us {
            return wrong(
                "at",
                format!("{} is before the step above, expected steps in order of time", step.at),
            );
        }
        if step.at.0 > self.now_us {
            self.settle();
            self.now_us = step.at.0;
        }
        self.act(&step.action)
    }

    fn act(&mut self, action: &Action) -> Outcome {
        match action {
            Action::CreateInstance(it) => self.create_instance(it),
            Action::CreateCompute(it) => self.create_compute(it),
            Action::DestroyCompute(it) => self.destroy_compute(it),
            Action::DestroyInstance(it) => self.destroy_instance(it.gpu, it.gi),
            Action::ChangeMig(it) => self.change_mig(it),
            Action::Start(it) => self.start(it),
            Action::Open(it) => self.open(it.pid, &it.on),
            Action::Change(it) => self.change(it),
            Action::Close(it) => self.close(it),
            Action::Stop(it) => self.stop(it),
            Action::Reap(it) => self.reap(it.pid),
            Action::Lose(it) => self.lose(it.gpu, Presence::Lost),
            Action::RequireReset(it) => self.lose(it.gpu, Presence::ResetRequired),
            Action::Recover(it) => self.recover(it.gpu),
            Action::SetEnergy(it) => self.set_energy(it.gpu, it.to_mj),
            Action::ClearAccounting(it) => self.clear_accounting(it.gpu),
            Action::SetAccounting(it) => self.set_accounting(it.gpu, it.on),
            Action::SetGpu(it) => self.set_gpu(it),
            Action::ReloadDriver(it) => self.reload_driver(it),
            Action::Xid(it) => self.xid(it),
            Action::MigEvent(it) => self.mig_event(it.gpu),
            Action::DoubleBit(it) => self.double_bit(it),
            Action::Revoke(it) => self.revoke(it.gpu, true),
            Action::Restore(it) => self.revoke(it.gpu, false),
            Action::JumpClock(it) => self.jump_clock(it.by.0),
            Action::Fail(it) => self.fail(it),
            Action::Delay(it) => self.delay(it),
            Action::WrongEcho(it) => self.wrong_echo(it),
            Action::GarbageRows(it) => self.garbage_rows(it),
        }
    }

    /// The GPU of a step, which will be settled anew.
    fn gpu(&mut self, gpu: usize) -> Result<&mut LiveGpu, Wrong> {
        let count = self.gpus.len();
        if gpu >= count {
            return wrong("gpu", format!("{gpu} is not there, expected 0 to {}", count.saturating_sub(1)));
        }
        self.touched.insert(gpu);
        Ok(&mut self.gpus[gpu])
    }

    fn finish(mut self) -> World {
        let world = &mut self.world;
        world.events.sort_by_key(|event| event.t_us);
        let changes: BTreeSet<u64> = world
            .processes
            .iter()
            .flat_map(|process| [process.from_us, process.until_us, process.reaped_us])
            .filter(|at| *at != u64::MAX)
            .collect();
        world.process_changes = changes.into_iter().collect();
        self.world
    }
}

impl LiveGpu {
    fn new(spec: &GpuSpec, model: &Model) -> Self {
        let is_on = matches!(spec.mig, MigSpec::On | MigSpec::PendingOff);
        let is_on_pending = matches!(spec.mig, MigSpec::On | MigSpec::PendingOn);
        Self {
            presence: Presence::Present,
            is_revoked: false,
            mig: model.mig.map(|_| MigState { is_on, is_on_pending }),
            instances: BTreeMap::new(),
            devices: BTreeMap::new(),
            contexts: Vec::new(),
            accounting_since_us: (spec.accounting && !is_on).then_some(0),
            has_persistence: spec.persistence,
            compute_mode: spec.compute_mode,
            recovery_action: 0,
            errors: 0,
            errors_ever: 0,
            generation: 0,
        }
    }

    fn is_mig_on(&self) -> bool {
        self.mig.is_some_and(|mig| mig.is_on)
    }

    fn state(&self, from_us: u64, world: &World) -> GpuState {
        let ids = self.instances.values().copied();
        GpuState {
            from_us,
            presence: self.presence,
            is_revoked: self.is_revoked,
            mig: self.mig,
            gpu_instances: ids.filter(|index| world.gpu_instances[*index].until_us > from_us).collect(),
            mig_devices: self
                .devices
                .iter()
                .map(|(index, ci)| super::MigDevice { index: *index, compute_instance: *ci })
                .collect(),
            contexts: self
                .contexts
                .iter()
                .map(|context| super::ContextState {
                    context: context.index,
                    memory_bytes: context.memory_bytes,
                    is_memory_unknown: context.is_memory_unknown,
                })
                .collect(),
            accounting_since_us: self.accounting_since_us,
            has_persistence: self.has_persistence,
            compute_mode: self.compute_mode,
            recovery_action: self.recovery_action,
            uncorrectable_errors: self.errors,
            uncorrectable_errors_ever: self.errors_ever,
        }
    }
}

const SECOND_US: u64 = 1_000_000;

fn check_head(scenario: &Scenario) -> Outcome {
    if scenario.start.0.rem_euclid(1_000_000) != 0 {
        return wrong("start", "expected a whole second");
    }
    if !scenario.uptime.0.is_multiple_of(SECOND_US) {
        return wrong("uptime", "expected whole seconds");
    }
    if scenario.load_cell.0 == 0 {
        return wrong("load_cell", "0s, expected a length of time");
    }
    if scenario.driver.release().len() < 2 {
        let version = &scenario.driver.version;
        return wrong("driver.version", format!("`{version}` is no release, expected such as 550.54.15"));
    }
    let mut uuids = BTreeSet::new();
    for (i, gpu) in scenario.gpus.iter().enumerate() {
        if !gpu.uuid.starts_with("GPU-") || !uuids.insert(&gpu.uuid) {
            let uuid = &gpu.uuid;
            return wrong(&format!("gpus[{i}].uuid"), format!("`{uuid}`: expected GPU-… and each one once"));
        }
    }
    Ok(())
}

fn model_of((i, spec): (usize, &GpuSpec)) -> Result<&'static Model, Wrong> {
    let Some(model) = Model::find(&spec.model) else {
        let keys: Vec<&str> = MODELS.iter().map(|model| model.key).collect();
        let problem =
            format!("`{}` is not in the catalogue, expected one of {}", spec.model, keys.join(", "));
        return wrong(&format!("gpus[{i}].model"), problem);
    };
    if model.mig.is_none() && spec.mig != MigSpec::Off {
        return wrong(&format!("gpus[{i}].mig"), format!("{} cannot do MIG, expected off", model.name));
    }
    Ok(model)
}
