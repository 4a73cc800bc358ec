//! The ground truth of a span of the timeline: what a collector should have seen, had it seen everything. Written from the timeline alone.
//!
//! Instants are Unix microseconds by a clock that never jumps. In JSON quantities are text, as in events; ids are numbers.

use crate::scenario::{ContextKind, Leaves, Utc};
use crate::world::{Context, GpuInstance, Presence, World};
use serde::{Serialize, Serializer};

/// The truth of `[from, to)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// Name of the node.
    pub node: String,
    /// Its boot id.
    pub boot_id: String,
    /// Begin.
    #[serde(serialize_with = "instant")]
    pub from: i64,
    /// End.
    #[serde(serialize_with = "instant")]
    pub to: i64,
    /// GPUs, in NVML's order.
    pub gpus: Vec<GpuTruth>,
    /// GPU instances that lived within, in order of creation.
    pub instances: Vec<InstanceTruth>,
    /// Contexts that lived within, in order of opening.
    pub processes: Vec<ProcessTruth>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuTruth {
    /// Its UUID.
    pub gpu: String,
    /// Time in which its multiprocessors were busy; with MIG on, of its instances weighted by multiprocessors.
    #[serde(serialize_with = "text")]
    pub busy_us: u64,
    /// Memory in use over time, in bytes times microseconds.
    #[serde(serialize_with = "text")]
    pub memory_byte_us: u128,
    /// The most in use at once.
    #[serde(serialize_with = "text")]
    pub memory_bytes_max: u64,
    /// Energy used, in millijoules, whatever its counter says.
    #[serde(serialize_with = "text")]
    pub energy_mj: u64,
    /// When it could not be read.
    pub absent: Vec<Absence>,
    /// When MIG was on.
    pub mig: Vec<Interval>,
}

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Begin.
    #[serde(serialize_with = "instant")]
    pub from: i64,
    /// End.
    #[serde(serialize_with = "instant")]
    pub to: i64,
}

/// Why a GPU could not be read for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Absence {
    /// Begin.
    #[serde(serialize_with = "instant")]
    pub from: i64,
    /// End.
    #[serde(serialize_with = "instant")]
    pub to: i64,
    /// Why.
    pub reason: Reason,
}

/// Why a GPU cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It fell off the bus.
    Lost,
    /// It wants a reset.
    ResetRequired,
    /// Access is revoked.
    Revoked,
    /// No driver is loaded.
    NoDriver,
}

/// A GPU instance in one of its lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceTruth {
    /// UUID of its GPU.
    pub gpu: String,
    /// Its id.
    pub gpu_instance: u32,
    /// How many lived on this GPU before it.
    pub generation: u32,
    /// Its profile.
    pub profile: &'static str,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// UUIDs of its MIG devices.
    pub uuids: Vec<String>,
    /// Created, or begin of the span.
    #[serde(serialize_with = "instant")]
    pub from: i64,
    /// Destroyed, or end of the span.
    #[serde(serialize_with = "instant")]
    pub to: i64,
    /// Time in which its multiprocessors were busy.
    #[serde(serialize_with = "text")]
    pub busy_us: u64,
    /// Memory in use over time, in bytes times microseconds.
    #[serde(serialize_with = "text")]
    pub memory_byte_us: u128,
    /// The most in use at once.
    #[serde(serialize_with = "text")]
    pub memory_bytes_max: u64,
}

/// A process on a GPU or in an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessTruth {
    /// UUID of its GPU.
    pub gpu: String,
    /// Its GPU instance, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_instance: Option<u32>,
    /// Which life of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// First memory slice of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// Its compute instance, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_instance: Option<u32>,
    /// Number in the init namespace.
    pub pid: u32,
    /// When it began, as exactly as `/proc` tells it.
    #[serde(serialize_with = "instant")]
    pub started_at: i64,
    /// What sort of context.
    pub kind: ContextKind,
    /// No list names it.
    pub is_hidden: bool,
    /// Opened, or begin of the span.
    #[serde(serialize_with = "instant")]
    pub from: i64,
    /// Its memory is free again, or end of the span.
    #[serde(serialize_with = "instant")]
    pub to: i64,
    /// When the process ended, where it left its memory behind.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "instant_or_none")]
    pub ended_at: Option<i64>,
    /// What it left behind.
    pub leaves: Leaves,
    /// Time in which it kept multiprocessors busy.
    #[serde(serialize_with = "text")]
    pub busy_us: u64,
    /// Its memory over time, in bytes times microseconds.
    #[serde(serialize_with = "text")]
    pub memory_byte_us: u128,
    /// The most in use at once.
    #[serde(serialize_with = "text")]
    pub memory_bytes_max: u64,
    /// Of it, while NVML could not tell how much.
    #[serde(serialize_with = "text")]
    pub memory_unknown_us: u64,
}

fn text<T: std::fmt::Display, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn instant<S: Serializer>(at: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Utc(*at))
}

#[expect(clippy::ref_option, reason = "the form serde asks for")]
fn instant_or_none<S: Serializer>(at: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Utc).serialize(serializer)
}

/// The truth of `[from, to)` of the timeline, both in microseconds since its start.
pub fn truth(world: &World, from_us: u64, to_us: u64) -> Truth {
    let span = Span { world, from_us, to_us: to_us.max(from_us) };
    Truth {
        node: world.scenario().node.clone(),
        boot_id: world.scenario().boot_id.clone(),
        from: world.steady_us(from_us),
        to: world.steady_us(span.to_us),
        gpus: (0..world.gpu_count()).map(|gpu| span.gpu(gpu)).collect(),
        instances: world
            .gpu_instances()
            .iter()
            .enumerate()
            .filter_map(|(i, it)| span.instance(i, it))
            .collect(),
        processes: world.contexts().iter().enumerate().filter_map(|(i, it)| span.process(i, it)).collect(),
    }
}

struct Span<'a> {
    world: &'a World,
    from_us: u64,
    to_us: u64,
}

impl Span<'_> {
    /// The part of `[from, until)` that lies within.
    fn part(&self, from_us: u64, until_us: u64) -> Option<(u64, u64)> {
        let (from, to) = (from_us.max(self.from_us), until_us.min(self.to_us));
        (from < to).then_some((from, to))
    }

    fn uuid(&self, gpu: usize) -> String {
        self.world.spec(gpu).uuid.clone()
    }

    fn gpu(&self, gpu: usize) -> GpuTruth {
        let (from, to) = (self.from_us, self.to_us);
        GpuTruth {
            gpu: self.uuid(gpu),
            busy_us: self.world.device_busy(gpu).busy_us(from, to),
            memory_byte_us: self.world.device_memory(gpu).byte_us(from, to),
            memory_bytes_max: self.world.device_memory(gpu).most(from, to),
            energy_mj: self.world.used_mj(gpu, from, to),
            absent: self.absences(gpu),
            mig: self.mig(gpu),
        }
    }

    /// States of a GPU with the parts of them that lie within.
    fn states(&self, gpu: usize) -> impl Iterator<Item = (&crate::world::GpuState, u64, u64)> {
        let states = self.world.states(gpu);
        states.iter().enumerate().filter_map(move |(i, state)| {
            let until = states.get(i + 1).map_or(u64::MAX, |next| next.from_us);
            self.part(state.from_us, until).map(|(from, to)| (state, from, to))
        })
    }

    fn absences(&self, gpu: usize) -> Vec<Absence> {
        let mut found: Vec<(u64, u64, Reason)> = Vec::new();
        for (state, from, to) in self.states(gpu) {
            let reason = match state.presence {
                Presence::Lost => Reason::Lost,
                Presence::ResetRequired => Reason::ResetRequired,
                Presence::Present if state.is_revoked => Reason::Revoked,
                Presence::Present => continue,
            };
            match found.last_mut() {
                Some(last) if last.1 == from && last.2 == reason => last.1 = to,
                _ => found.push((from, to, reason)),
            }
        }
        found.extend(self.world.driver_gaps().filter_map(|(from, until)| {
            self.part(from, until).map(|(from, to)| (from, to, Reason::NoDriver))
        }));
        found.sort_by_key(|(from, _, _)| *from);
        found
            .into_iter()
            .map(|(from, to, reason)| Absence {
                from: self.world.steady_us(from),
                to: self.world.steady_us(to),
                reason,
            })
            .collect()
    }

    fn mig(&self, gpu: usize) -> Vec<Interval> {
        let mut found: Vec<Interval> = Vec::new();
        for (_, from, to) in self.states(gpu).filter(|(state, _, _)| state.is_mig_on()) {
            let (from, to) = (self.world.steady_us(from), self.world.steady_us(to));
            match found.last_mut() {
                Some(last) if last.to == from => last.to = to,
                _ => found.push(Interval { from, to }),
            }
        }
        found
    }

    fn instance(&self, index: usize, it: &GpuInstance) -> Option<InstanceTruth> {
        let (from, to) = self.part(it.from_us, it.until_us)?;
        let computes = self.world.compute_instances().iter().filter(|compute| compute.gpu_instance == index);
        Some(InstanceTruth {
            gpu: self.uuid(it.gpu),
            gpu_instance: it.id,
            generation: it.generation,
            profile: it.profile.name,
            start: it.start,
            size: it.profile.memory_slices,
            uuids: computes.map(|compute| compute.uuid.clone()).collect(),
            from: self.world.steady_us(from),
            to: self.world.steady_us(to),
            busy_us: it.busy.busy_us(from, to),
            memory_byte_us: it.memory.byte_us(from, to),
            memory_bytes_max: it.memory.most(from, to),
        })
    }

    fn process(&self, index: usize, it: &Context) -> Option<ProcessTruth> {
        let (from, to) = self.part(it.from_us, it.gone_us)?;
        let process = self.world.process(it.process);
        let instance = it.gpu_instance.map(|i| self.world.gpu_instance(i));
        let unknown = self.states(it.gpu).filter_map(|(state, from, to)| {
            let entry = state.contexts.iter().find(|entry| entry.context == index)?;
            entry.is_memory_unknown.then_some(to - from)
        });
        Some(ProcessTruth {
            gpu: self.uuid(it.gpu),
            gpu_instance: instance.map(|instance| instance.id),
            generation: instance.map(|instance| instance.generation),
            start: instance.map(|instance| instance.start),
            compute_instance: it.compute_instance.map(|i| self.world.compute_instance(i).id),
            pid: process.pid,
            started_at: process.started_us(self.world.boot_us()),
            kind: it.kind,
            is_hidden: it.is_hidden,
            from: self.world.steady_us(from),
            to: self.world.steady_us(to),
            ended_at: (it.until_us < it.gone_us).then(|| self.world.steady_us(it.until_us)),
            leaves: process.leaves,
            busy_us: it.busy.busy_us(from, to),
            memory_byte_us: it.memory.byte_us(from, to),
            memory_bytes_max: it.memory.most(from, to),
            memory_unknown_us: unknown.sum(),
        })
    }
}

#[cfg(test)]
mod tests;
