//! A node as the drawing knows it: just enough that every step it draws is one that can happen.

use super::draw::Draw;
use crate::model::{Model, Profile};
use crate::scenario::Bytes;
use crate::scenario::{
    Action, AtGpu, ContextKind, ContextSpec, CreateInstance, DestroyInstance, GpuSpec, Leaves, Load, MigSpec,
    Percent, Pid, Span, Start, Step, Stop,
};
use std::collections::{BTreeMap, BTreeSet};

const MIB: u64 = 1 << 20;

pub(super) struct Node {
    pub(super) draw: Draw,
    pub(super) now_us: u64,
    pub(super) gpus: Vec<Gpu>,
    /// Live processes with the places of their contexts.
    pub(super) processes: BTreeMap<u32, Vec<Place>>,
    /// Ended processes that left something behind.
    pub(super) left: BTreeMap<u32, Vec<Place>>,
    /// Numbers of ended processes.
    pub(super) ended: Vec<u32>,
    steps: Vec<Step>,
    cases: BTreeMap<&'static str, u32>,
    next_pid: u32,
}

pub(super) struct Gpu {
    pub(super) model: &'static Model,
    pub(super) is_mig_on: bool,
    pub(super) is_gone: bool,
    pub(super) instances: Vec<Instance>,
    used: BTreeMap<Option<u32>, u64>,
}

#[derive(Clone, Copy)]
pub(super) struct Instance {
    pub(super) gi: u32,
    pub(super) profile: &'static Profile,
    pub(super) start: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) gpu: usize,
    pub(super) gi: Option<u32>,
    pub(super) bytes: u64,
}

impl Node {
    pub(super) fn new(draw: Draw, gpus: &[GpuSpec]) -> Self {
        let gpus = gpus.iter().filter_map(|spec| {
            Some(Gpu {
                model: Model::find(&spec.model)?,
                is_mig_on: spec.mig == MigSpec::On,
                is_gone: false,
                instances: Vec::new(),
                used: BTreeMap::new(),
            })
        });
        Self {
            draw,
            now_us: 0,
            gpus: gpus.collect(),
            processes: BTreeMap::new(),
            left: BTreeMap::new(),
            ended: Vec::new(),
            steps: Vec::new(),
            cases: BTreeMap::new(),
            next_pid: 1000,
        }
    }

    pub(super) fn finish(self) -> (Vec<Step>, BTreeMap<&'static str, u32>) {
        (self.steps, self.cases)
    }

    /// Writes down a step at this instant.
    pub(super) fn step(&mut self, action: Action) {
        self.steps.push(Step { at: Span(self.now_us), action, line: 0 });
    }

    pub(super) fn case(&mut self, name: &'static str) {
        *self.cases.entry(name).or_default() += 1;
    }

    pub(super) fn wait(&mut self, from_us: u64, to_us: u64) {
        self.now_us += self.draw.between(from_us, to_us);
    }

    /// A GPU that answers.
    pub(super) fn any_gpu(&mut self) -> Option<usize> {
        let there: Vec<usize> = (0..self.gpus.len()).filter(|gpu| !self.gpus[*gpu].is_gone).collect();
        self.draw.pick(&there).copied()
    }

    pub(super) fn any_process(&mut self) -> Option<u32> {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        self.draw.pick(&pids).copied()
    }

    /// A unit for a context: a GPU without MIG, or an instance.
    fn any_unit(&mut self) -> Option<(usize, Option<u32>)> {
        let mut units = Vec::new();
        for (index, gpu) in self.gpus.iter().enumerate().filter(|(_, gpu)| !gpu.is_gone) {
            if gpu.is_mig_on {
                units.extend(gpu.instances.iter().map(|instance| (index, Some(instance.gi))));
            } else {
                units.push((index, None));
            }
        }
        self.draw.pick(&units).copied()
    }

    /// Bytes that are free on a unit.
    fn room(&self, gpu: usize, gi: Option<u32>) -> u64 {
        let it = &self.gpus[gpu];
        let used = it.used.get(&gi).copied().unwrap_or(0);
        let total = match gi {
            None => it.model.memory_mib - it.model.reserved_mib,
            Some(gi) => it.instances.iter().find(|i| i.gi == gi).map_or(0, |i| i.profile.memory_mib),
        };
        (total * MIB).saturating_sub(used)
    }

    fn take(&mut self, place: Place) {
        *self.gpus[place.gpu].used.entry(place.gi).or_default() += place.bytes;
    }

    fn give(&mut self, place: Place) {
        if let Some(used) = self.gpus[place.gpu].used.get_mut(&place.gi) {
            *used -= place.bytes;
        }
    }

    /// A new amount for a context, and its place in the books.
    pub(super) fn resize(&mut self, pid: u32, which: usize) -> Option<(Place, u64)> {
        let old = *self.processes.get(&pid)?.get(which)?;
        let room = self.room(old.gpu, old.gi) + old.bytes;
        let bytes = self.draw.between(0, room / 2 / MIB) * MIB;
        let new = Place { bytes, ..old };
        self.give(old);
        self.take(new);
        self.processes.get_mut(&pid)?[which] = new;
        Some((new, bytes))
    }

    pub(super) fn load(&mut self) -> Load {
        match self.draw.between(0, 9) {
            0..=1 => Load::Constant(Percent(0)),
            2..=4 => Load::Constant(Percent::whole(self.whole_percent(1, 100))),
            5..=7 => {
                let low = self.whole_percent(0, 60);
                Load::Drawn {
                    from: Percent::whole(low),
                    to: Percent::whole(self.whole_percent(low.into(), 100)),
                }
            }
            _ => Load::Cells(vec![Percent::ALL, Percent(0)]),
        }
    }

    fn whole_percent(&mut self, from: u64, to: u64) -> u32 {
        u32::try_from(self.draw.between(from, to)).unwrap_or(0)
    }

    fn context(&mut self, (gpu, gi): (usize, Option<u32>)) -> ContextSpec {
        let bytes = self.draw.between(0, self.room(gpu, gi) / 3 / MIB) * MIB;
        self.take(Place { gpu, gi, bytes });
        let kind = if self.draw.chance(5) { ContextKind::Graphics } else { ContextKind::Compute };
        ContextSpec {
            gpu,
            gi,
            ci: None,
            kind,
            memory: Bytes(bytes),
            memory_unknown: self.draw.chance(4),
            sm: self.load(),
            hidden: false,
        }
    }

    pub(super) fn start(&mut self, pid: Option<u32>) {
        let Some(unit) = self.any_unit() else { return };
        let mut units = BTreeSet::from([unit]);
        if self.draw.chance(15) {
            units.extend(self.any_unit());
        }
        if units.len() > 1 {
            self.case("a process on two units");
        }
        let on: Vec<ContextSpec> = units.into_iter().map(|unit| self.context(unit)).collect();
        let is_new = pid.is_none();
        let pid = pid.unwrap_or(self.next_pid);
        self.next_pid += u32::from(is_new);
        let places = on.iter().map(|spec| Place { gpu: spec.gpu, gi: spec.gi, bytes: spec.memory.0 });
        self.processes.insert(pid, places.collect());
        let job = self.draw.between(1, 99);
        let started_before = Span(if is_new { self.draw.between(0, 300) * 10_000 } else { 0 });
        self.step(Action::Start(Start {
            pid,
            started_before,
            comm: "python3".to_owned(),
            cgroup: format!("0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0"),
            environ: BTreeMap::new(),
            ns_pid: None,
            uid: 1000,
            no_proc: false,
            on,
        }));
    }

    pub(super) fn stop(&mut self, pid: u32, leaves: Leaves) {
        let Some(places) = self.processes.remove(&pid) else { return };
        self.step(Action::Stop(Stop { pid, leaves }));
        if leaves == Leaves::Nothing {
            self.free(pid, &places);
        } else {
            self.left.insert(pid, places);
        }
    }

    pub(super) fn reap(&mut self, pid: u32) {
        let Some(places) = self.left.remove(&pid) else { return };
        self.step(Action::Reap(Pid { pid }));
        self.free(pid, &places);
    }

    fn free(&mut self, pid: u32, places: &[Place]) {
        for place in places {
            self.give(*place);
        }
        self.ended.push(pid);
    }

    /// Everybody leaves the units of a GPU for which this holds.
    pub(super) fn clear(&mut self, gpu: usize, is_meant: impl Fn(Option<u32>) -> bool) {
        let is_there = |places: &[Place]| places.iter().any(|place| place.gpu == gpu && is_meant(place.gi));
        let live: Vec<u32> =
            self.processes.iter().filter(|(_, places)| is_there(places)).map(|(pid, _)| *pid).collect();
        let left: Vec<u32> =
            self.left.iter().filter(|(_, places)| is_there(places)).map(|(pid, _)| *pid).collect();
        for pid in live {
            self.stop(pid, Leaves::Nothing);
        }
        for pid in left {
            self.reap(pid);
        }
    }

    /// The contexts of a GPU are gone by themselves; processes go on without them.
    pub(super) fn forget(&mut self, gpu: usize) {
        for places in self.processes.values_mut().chain(self.left.values_mut()) {
            places.retain(|place| place.gpu != gpu);
        }
        self.gpus[gpu].used.clear();
        self.gpus[gpu].instances.clear();
    }

    pub(super) fn create(&mut self, gpu: usize) -> Option<Instance> {
        let geometry = self.gpus[gpu].model.mig?;
        let taken: u32 = self.gpus[gpu].instances.iter().map(|it| it.profile.compute_slices).sum();
        let mut legal = Vec::new();
        for profile in geometry.profiles.iter().filter(|profile| !profile.has_media_extensions()) {
            let is_free = |start: &&u32| {
                self.gpus[gpu].instances.iter().all(|it| {
                    it.start + it.profile.memory_slices <= **start
                        || *start + profile.memory_slices <= it.start
                })
            };
            if taken + profile.compute_slices <= geometry.compute_slices && profile.compute_slices < 7 {
                legal.extend(profile.starts.iter().filter(is_free).map(|start| (profile, *start)));
            }
        }
        let (profile, start) = self.draw.pick(&legal).copied()?;
        let gi = geometry
            .instance_ids(profile.memory_slices)
            .find(|id| self.gpus[gpu].instances.iter().all(|it| it.gi != *id))?;
        let instance = Instance { gi, profile, start };
        self.make(gpu, instance);
        Some(instance)
    }

    /// Creates an instance just so.
    pub(super) fn make(&mut self, gpu: usize, instance: Instance) {
        self.gpus[gpu].instances.push(instance);
        self.step(Action::CreateInstance(CreateInstance {
            gpu,
            profile: instance.profile.name.to_owned(),
            start: Some(instance.start),
            gi: Some(instance.gi),
            compute: None,
        }));
    }

    pub(super) fn destroy(&mut self, gpu: usize, instance: Instance) {
        self.clear(gpu, |gi| gi == Some(instance.gi));
        self.gpus[gpu].instances.retain(|it| it.gi != instance.gi);
        self.gpus[gpu].used.remove(&Some(instance.gi));
        self.step(Action::DestroyInstance(DestroyInstance { gpu, gi: instance.gi }));
    }

    pub(super) fn recover(&mut self, gpu: usize) {
        self.gpus[gpu].is_gone = false;
        self.step(Action::Recover(AtGpu { gpu }));
    }
}
