//! Steps that change instances.

use super::{Builder, Outcome, Wrong, wrong};
use crate::model::{Geometry, Profile};
use crate::scenario::{ChangeMig, ComputeSpec, CreateCompute, CreateInstance, DestroyCompute};
use crate::world::lives::{ComputeInstance, DeviceEvent, EventKind, GpuInstance};
use crate::world::track::{Amount, Track};

impl Builder {
    pub(super) fn create_instance(&mut self, it: &CreateInstance) -> Outcome {
        self.mig_gpu(it.gpu, "create_instance")?;
        let Some(geometry) = self.world.gpus[it.gpu].model.mig else { return Ok(()) };
        let Some(profile) = geometry.profile(&it.profile) else {
            let names: Vec<&str> = geometry.profiles.iter().map(|profile| profile.name).collect();
            let problem =
                format!("`{}` is no profile of this model, expected one of {}", it.profile, names.join(", "));
            return wrong("create_instance.profile", problem);
        };
        let start = self.placed(it, profile, geometry)?;
        let id = self.instance_id(it, profile, geometry)?;
        let index = self.world.gpu_instances.len();
        let live = &mut self.gpus[it.gpu];
        self.world.gpu_instances.push(GpuInstance {
            gpu: it.gpu,
            id,
            profile,
            start,
            generation: live.generation,
            from_us: self.now_us,
            until_us: u64::MAX,
            busy: Track::new(self.world.scenario.load_cell.0),
            memory: Amount::default(),
        });
        live.generation += 1;
        live.instances.insert(id, index);
        self.changed(it.gpu, id);
        let whole = [ComputeSpec::default()];
        for spec in it.compute.as_deref().unwrap_or(&whole) {
            self.add_compute(index, spec)?;
        }
        Ok(())
    }

    pub(super) fn create_compute(&mut self, it: &CreateCompute) -> Outcome {
        self.mig_gpu(it.gpu, "create_compute")?;
        let index = self.instance(it.gpu, it.gi, "create_compute.gi")?;
        let spec = ComputeSpec { ci: it.ci, slices: it.slices, uuid: it.uuid.clone(), index: it.index };
        self.changed(it.gpu, it.gi);
        self.add_compute(index, &spec)
    }

    fn add_compute(&mut self, gpu_instance: usize, spec: &ComputeSpec) -> Outcome {
        let parent = &self.world.gpu_instances[gpu_instance];
        let (gpu, profile) = (parent.gpu, parent.profile);
        let alive: Vec<&ComputeInstance> = self.compute_of(gpu_instance).collect();
        let slices = spec.slices.unwrap_or(profile.compute_slices);
        let taken: u32 = alive.iter().map(|compute| compute.slices).sum();
        if slices == 0 || taken + slices > profile.compute_slices {
            let free = profile.compute_slices - taken;
            return wrong("compute.slices", format!("{slices} do not fit, expected 1 to {free}"));
        }
        let id = spec.ci.unwrap_or_else(|| (0..).find(|id| alive.iter().all(|c| c.id != *id)).unwrap_or(0));
        if alive.iter().any(|compute| compute.id == id) {
            return wrong("compute.ci", format!("{id} is alive, expected a free id"));
        }
        let free_start =
            |start: &u32| alive.iter().all(|c| c.start + c.slices <= *start || start + slices <= c.start);
        let start = (0..profile.compute_slices).find(free_start).unwrap_or(0);
        let devices = &self.gpus[gpu].devices;
        let index = spec.index.unwrap_or_else(|| (0..).find(|i| !devices.contains_key(i)).unwrap_or(0));
        if devices.contains_key(&index) {
            return wrong("compute.index", format!("{index} is taken, expected a free place"));
        }
        let uuid = spec.uuid.clone().unwrap_or_else(|| self.mig_uuid(gpu_instance, id));
        let made = self.world.compute_instances.len();
        self.world.compute_instances.push(ComputeInstance {
            gpu_instance,
            id,
            slices,
            start,
            multiprocessors: profile.multiprocessors_of(slices),
            uuid,
            index,
            from_us: self.now_us,
            until_us: u64::MAX,
        });
        self.gpus[gpu].devices.insert(index, made);
        Ok(())
    }

    pub(super) fn destroy_compute(&mut self, it: &DestroyCompute) -> Outcome {
        self.mig_gpu(it.gpu, "destroy_compute")?;
        let parent = self.instance(it.gpu, it.gi, "destroy_compute.gi")?;
        let Some(index) = self.gpus[it.gpu].devices.values().copied().find(|index| {
            let compute = &self.world.compute_instances[*index];
            compute.gpu_instance == parent && compute.id == it.ci
        }) else {
            return wrong("destroy_compute.ci", format!("{} is not alive", it.ci));
        };
        if self.holder(it.gpu, |context| context.compute_instance == Some(index)) {
            return wrong("destroy_compute.ci", "a context is in it, expected it closed before");
        }
        self.end_compute(it.gpu, index);
        self.changed(it.gpu, it.gi);
        Ok(())
    }

    pub(super) fn destroy_instance(&mut self, gpu: usize, gi: u32) -> Outcome {
        self.mig_gpu(gpu, "destroy_instance")?;
        let index = self.instance(gpu, gi, "destroy_instance.gi")?;
        if self.holder(gpu, |context| context.gpu_instance == Some(index)) {
            return wrong("destroy_instance.gi", "a context is in it, expected it closed before");
        }
        self.end_instance(gpu, gi, index);
        Ok(())
    }

    pub(super) fn change_mig(&mut self, it: &ChangeMig) -> Outcome {
        let live = self.gpu(it.gpu)?;
        let Some(mig) = live.mig.as_mut() else {
            return wrong("change_mig.gpu", "this model cannot do MIG");
        };
        mig.is_on_pending = it.on;
        if it.pending {
            return Ok(());
        }
        mig.is_on = it.on;
        if !live.contexts.is_empty() {
            return wrong("change_mig.gpu", "contexts are open, expected them closed before");
        }
        live.accounting_since_us = None;
        self.end_instances(it.gpu);
        Ok(())
    }

    /// All instances of a GPU end.
    pub(super) fn end_instances(&mut self, gpu: usize) {
        for (id, index) in self.gpus[gpu].instances.clone() {
            self.end_instance(gpu, id, index);
        }
    }

    fn end_instance(&mut self, gpu: usize, id: u32, index: usize) {
        let computes: Vec<usize> = self.gpus[gpu]
            .devices
            .values()
            .copied()
            .filter(|compute| self.world.compute_instances[*compute].gpu_instance == index)
            .collect();
        for compute in computes {
            self.end_compute(gpu, compute);
        }
        let instance = &mut self.world.gpu_instances[index];
        instance.until_us = self.now_us;
        instance.busy.set(self.now_us, crate::world::track::Share::ZERO);
        instance.memory.set(self.now_us, 0);
        self.gpus[gpu].instances.remove(&id);
        self.changed(gpu, id);
    }

    fn end_compute(&mut self, gpu: usize, index: usize) {
        let compute = &mut self.world.compute_instances[index];
        compute.until_us = self.now_us;
        self.gpus[gpu].devices.remove(&compute.index);
    }

    fn changed(&mut self, gpu: usize, id: u32) {
        self.world.events.push(DeviceEvent {
            t_us: self.now_us,
            gpu,
            kind: EventKind::MigChange,
            gpu_instance: Some(id),
            compute_instance: None,
        });
    }

    fn mig_gpu(&mut self, gpu: usize, step: &str) -> Outcome {
        let live = self.gpu(gpu)?;
        if live.is_mig_on() { Ok(()) } else { wrong(&format!("{step}.gpu"), "MIG is not on there") }
    }

    pub(super) fn instance(&self, gpu: usize, gi: u32, member: &str) -> Result<usize, Wrong> {
        let live = &self.gpus[gpu].instances;
        live.get(&gi).copied().map_or_else(
            || {
                let ids: Vec<String> = live.keys().map(u32::to_string).collect();
                let alive = if ids.is_empty() { "none is alive".to_owned() } else { ids.join(", ") };
                wrong(member, format!("{gi} is not alive, expected one of those alive: {alive}"))
            },
            Ok,
        )
    }

    pub(super) fn compute_of(&self, gpu_instance: usize) -> impl Iterator<Item = &ComputeInstance> {
        self.world
            .compute_instances
            .iter()
            .filter(move |compute| compute.gpu_instance == gpu_instance && compute.until_us == u64::MAX)
    }

    fn holder(&self, gpu: usize, is_there: impl Fn(&crate::world::Context) -> bool) -> bool {
        self.gpus[gpu].contexts.iter().any(|entry| is_there(&self.world.contexts[entry.index]))
    }

    fn placed(&self, it: &CreateInstance, profile: &Profile, geometry: &Geometry) -> Result<u32, Wrong> {
        let alive: Vec<&GpuInstance> =
            self.gpus[it.gpu].instances.values().map(|index| &self.world.gpu_instances[*index]).collect();
        let compute: u32 = alive.iter().map(|instance| instance.profile.compute_slices).sum();
        if compute + profile.compute_slices > geometry.compute_slices {
            return wrong("create_instance.profile", "too few compute slices are free");
        }
        let is_free = |start: &u32| {
            alive.iter().all(|other| {
                other.start + other.profile.memory_slices <= *start
                    || start + profile.memory_slices <= other.start
            })
        };
        match it.start {
            None => profile
                .starts
                .iter()
                .copied()
                .find(is_free)
                .map_or_else(|| wrong("create_instance.profile", "no legal placement is free"), Ok),
            Some(start) if !profile.starts.contains(&start) => wrong(
                "create_instance.start",
                format!("{start} is not legal, expected one of {:?}", profile.starts),
            ),
            Some(start) if !is_free(&start) => {
                wrong("create_instance.start", format!("{start} overlaps a live instance"))
            }
            Some(start) => Ok(start),
        }
    }

    fn instance_id(&self, it: &CreateInstance, profile: &Profile, geometry: &Geometry) -> Result<u32, Wrong> {
        let alive = &self.gpus[it.gpu].instances;
        let id = match it.gi {
            Some(id) => Some(id),
            None => geometry.instance_ids(profile.memory_slices).find(|id| !alive.contains_key(id)),
        };
        match id {
            Some(id) if !alive.contains_key(&id) => Ok(id),
            Some(id) => wrong("create_instance.gi", format!("{id} is alive, expected a free id")),
            None => wrong("create_instance.gi", "no id of this size is free, expected one to be given"),
        }
    }

    /// The same ids on the same place of the same GPU give the same UUID, as captures suggest. Before release 470 it names the parent.
    fn mig_uuid(&self, gpu_instance: usize, ci: u32) -> String {
        let instance = &self.world.gpu_instances[gpu_instance];
        let gpu = &self.world.scenario.gpus[instance.gpu].uuid;
        let release = self.world.drivers.last().map(|life| life.driver.release()).unwrap_or_default();
        if release.first().is_some_and(|major| *major < 470) {
            return format!("MIG-{gpu}/{}/{ci}", instance.id);
        }
        let name = format!("{gpu}/{}/{}/{}/{ci}", instance.profile.id, instance.start, instance.id);
        format!("MIG-{}", crate::world::build::device::named_uuid(&name))
    }
}
