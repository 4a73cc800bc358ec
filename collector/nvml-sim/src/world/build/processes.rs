//! Steps that change processes and contexts.

use super::{Builder, LiveContext, Outcome, Wrong, wrong};
use crate::random::Draw;
use crate::scenario::{Change, Close, ContextSpec, Leaves, Load, Percent, Start, Stop};
use crate::world::lives::{Context, Process, TICK_US};
use crate::world::track::{Amount, CELLS, Share, Track};

impl Builder {
    pub(super) fn start(&mut self, it: &Start) -> Outcome {
        if self.running.contains_key(&it.pid) || self.left.contains_key(&it.pid) {
            return wrong("start.pid", format!("{} is taken, expected it stopped and reaped before", it.pid));
        }
        let since_boot = self.world.since_boot_us(self.now_us);
        let Some(started) = since_boot.checked_sub(it.started_before.0) else {
            return wrong("start.started_before", format!("{} is before boot", it.started_before));
        };
        let start_ticks = started / TICK_US;
        if self.last_tick.get(&it.pid).is_some_and(|last| *last >= start_ticks) {
            return wrong(
                "start.pid",
                "its last owner began or ended in this tick of 10ms or later, expected a later one",
            );
        }
        self.last_tick.insert(it.pid, start_ticks);
        let index = self.world.processes.len();
        self.world.processes.push(Process {
            pid: it.pid,
            ns_pid: it.ns_pid,
            uid: it.uid,
            comm: it.comm.clone(),
            cgroup: it.cgroup.clone(),
            environ: it.environ.clone(),
            has_no_proc: it.no_proc,
            start_ticks,
            from_us: self.now_us,
            until_us: u64::MAX,
            leaves: Leaves::Nothing,
            reaped_us: u64::MAX,
        });
        self.running.insert(it.pid, index);
        it.on
            .iter()
            .enumerate()
            .try_for_each(|(i, spec)| self.add_context(index, spec, &format!("start.on[{i}]")))
    }

    pub(super) fn open(&mut self, pid: u32, on: &[ContextSpec]) -> Outcome {
        let process = self.live_process(pid, "open.pid")?;
        on.iter()
            .enumerate()
            .try_for_each(|(i, spec)| self.add_context(process, spec, &format!("open.on[{i}]")))
    }

    fn add_context(&mut self, process: usize, spec: &ContextSpec, member: &str) -> Outcome {
        let live = self.gpu(spec.gpu)?;
        if live.presence != crate::world::Presence::Present {
            return wrong(
                &format!("{member}.gpu"),
                "the GPU does not answer, expected it to be recovered before",
            );
        }
        let (gpu_instance, compute_instance) = match (live.is_mig_on(), spec.gi) {
            (false, None) => (None, None),
            (false, Some(_)) => return wrong(&format!("{member}.gi"), "MIG is not on there, expected none"),
            (true, None) => {
                return wrong(&format!("{member}.gi"), "MIG is on there, expected the instance's id");
            }
            (true, Some(gi)) => {
                let parent = self.instance(spec.gpu, gi, &format!("{member}.gi"))?;
                (Some(parent), Some(self.compute(parent, spec.ci, member)?))
            }
        };
        let is_same = |entry: &LiveContext| {
            let other = &self.world.contexts[entry.index];
            other.process == process && other.compute_instance == compute_instance
        };
        if self.gpus[spec.gpu].contexts.iter().any(is_same) {
            return wrong(member, "this process has a context there already, expected one");
        }
        let index = self.world.contexts.len();
        let demand = self.share(&spec.sm, index);
        self.world.contexts.push(Context {
            process,
            gpu: spec.gpu,
            gpu_instance,
            compute_instance,
            kind: spec.kind,
            is_hidden: spec.hidden,
            from_us: self.now_us,
            until_us: u64::MAX,
            gone_us: u64::MAX,
            busy: Track::new(self.world.scenario.load_cell.0),
            memory: Amount::default(),
        });
        self.gpus[spec.gpu].contexts.push(LiveContext {
            index,
            demand,
            memory_bytes: spec.memory.0,
            is_memory_unknown: spec.memory_unknown,
            is_open: true,
        });
        self.check_memory(spec.gpu, gpu_instance, &format!("{member}.memory"))
    }

    fn compute(&self, parent: usize, ci: Option<u32>, member: &str) -> Result<usize, Wrong> {
        let alive: Vec<usize> = (0..self.world.compute_instances.len())
            .filter(|index| {
                let compute = &self.world.compute_instances[*index];
                compute.gpu_instance == parent && compute.until_us == u64::MAX
            })
            .collect();
        let found = match (ci, alive.as_slice()) {
            (None, [only]) => Some(*only),
            (None, _) => None,
            (Some(id), _) => {
                alive.iter().copied().find(|index| self.world.compute_instances[*index].id == id)
            }
        };
        found.map_or_else(
            || {
                let ids: Vec<u32> =
                    alive.iter().map(|index| self.world.compute_instances[*index].id).collect();
                wrong(&format!("{member}.ci"), format!("expected one of the compute instances {ids:?}"))
            },
            Ok,
        )
    }

    fn check_memory(&self, gpu: usize, gpu_instance: Option<usize>, member: &str) -> Outcome {
        let is_in = |entry: &&LiveContext| self.world.contexts[entry.index].gpu_instance == gpu_instance;
        let held = self.gpus[gpu].contexts.iter().filter(is_in).map(|entry| entry.memory_bytes);
        let used = held.fold(0, u64::saturating_add);
        let figures = match gpu_instance {
            Some(index) => self.world.instance_memory(index, self.now_us),
            None => self.world.memory(gpu, self.now_us),
        };
        let room = figures.total.saturating_sub(figures.reserved);
        if used > room {
            let problem = format!("{used} bytes are used there in all, expected at most {room}");
            return wrong(member, problem);
        }
        Ok(())
    }

    pub(super) fn change(&mut self, it: &Change) -> Outcome {
        let process = self.live_process(it.pid, "change.pid")?;
        let place = self.place(process, it.gpu, it.gi, "change")?;
        let index = self.gpus[it.gpu].contexts[place].index;
        let demand = it.sm.as_ref().map(|load| self.share(load, index));
        let entry = &mut self.gpus[it.gpu].contexts[place];
        if let Some(demand) = demand {
            entry.demand = demand;
        }
        if let Some(memory) = it.memory {
            entry.memory_bytes = memory.0;
        }
        if let Some(is_unknown) = it.memory_unknown {
            entry.is_memory_unknown = is_unknown;
        }
        let instance = self.world.contexts[index].gpu_instance;
        self.check_memory(it.gpu, instance, "change.memory")
    }

    pub(super) fn close(&mut self, it: &Close) -> Outcome {
        let process = self.live_process(it.pid, "close.pid")?;
        let place = self.place(process, it.gpu, it.gi, "close")?;
        self.end_context(it.gpu, place);
        Ok(())
    }

    pub(super) fn stop(&mut self, it: &Stop) -> Outcome {
        let index = self.live_process(it.pid, "stop.pid")?;
        self.running.remove(&it.pid);
        // A successor begins after the last tick in which this one surely ran.
        let ended = (self.world.since_boot_us(self.now_us) / TICK_US).saturating_sub(1);
        let last = self.last_tick.entry(it.pid).or_default();
        *last = ended.max(*last);
        let process = &mut self.world.processes[index];
        process.until_us = self.now_us;
        process.leaves = it.leaves;
        if it.leaves == Leaves::Nothing {
            process.reaped_us = self.now_us;
            self.end_contexts_of(index);
        } else {
            self.left.insert(it.pid, index);
            self.leave_contexts_of(index);
        }
        Ok(())
    }

    pub(super) fn reap(&mut self, pid: u32) -> Outcome {
        let Some(index) = self.left.remove(&pid) else {
            return wrong("reap.pid", format!("{pid} left nothing behind"));
        };
        self.world.processes[index].reaped_us = self.now_us;
        self.end_contexts_of(index);
        Ok(())
    }

    fn end_contexts_of(&mut self, process: usize) {
        for gpu in 0..self.gpus.len() {
            while let Some(place) =
                self.gpus[gpu].contexts.iter().position(|e| self.world.contexts[e.index].process == process)
            {
                self.end_context(gpu, place);
            }
        }
    }

    fn leave_contexts_of(&mut self, process: usize) {
        for gpu in 0..self.gpus.len() {
            for entry in &mut self.gpus[gpu].contexts {
                let context = &mut self.world.contexts[entry.index];
                if context.process == process {
                    self.touched.insert(gpu);
                    entry.is_open = false;
                    entry.demand = Share::ZERO;
                    context.until_us = self.now_us;
                    context.busy.set(self.now_us, Share::ZERO);
                }
            }
        }
    }

    /// All contexts of a GPU end; their processes go on.
    pub(super) fn end_contexts_on(&mut self, gpu: usize) {
        while !self.gpus[gpu].contexts.is_empty() {
            self.end_context(gpu, 0);
        }
    }

    fn end_context(&mut self, gpu: usize, place: usize) {
        self.touched.insert(gpu);
        let entry = self.gpus[gpu].contexts.remove(place);
        let context = &mut self.world.contexts[entry.index];
        context.until_us = context.until_us.min(self.now_us);
        context.gone_us = self.now_us;
        context.busy.set(self.now_us, Share::ZERO);
        context.memory.set(self.now_us, 0);
    }

    fn live_process(&self, pid: u32, member: &str) -> Result<usize, Wrong> {
        self.running.get(&pid).copied().map_or_else(|| wrong(member, format!("{pid} does not run")), Ok)
    }

    fn place(&mut self, process: usize, gpu: usize, gi: Option<u32>, step: &str) -> Result<usize, Wrong> {
        self.gpu(gpu)?;
        let found = self.gpus[gpu].contexts.iter().position(|entry| {
            let context = &self.world.contexts[entry.index];
            let id = context.gpu_instance.map(|index| self.world.gpu_instances[index].id);
            context.process == process && (gi.is_none() || id == gi)
        });
        found.map_or_else(|| wrong(&format!("{step}.gpu"), "this process has no context there"), Ok)
    }

    fn share(&self, load: &Load, context: usize) -> Share {
        match load {
            Load::Constant(Percent(ppm)) => Share::Constant(*ppm),
            Load::Cells(cells) => {
                Share::cells(std::array::from_fn::<u32, CELLS, _>(|i| cells[i % cells.len()].0))
            }
            Load::Drawn { from, to } => {
                let stream = u64::try_from(context).unwrap_or(0) ^ self.now_us.rotate_left(32);
                let mut draw =
                    Draw::new(self.world.scenario.seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                let (from, to) = (u64::from(from.0 / 10_000), u64::from(to.0 / 10_000));
                Share::cells(std::array::from_fn::<u32, CELLS, _>(|_| {
                    u32::try_from(draw.between(from, to) * 10_000).unwrap_or(0)
                }))
            }
        }
    }
}
