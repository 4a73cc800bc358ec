//! A GPU that computes its answers from a script of what really happens, as NVML's own counters and rings would.

use crate::clock::{Clock, Stamp};
use crate::process::{Belonging, Owner, ProcessId, Processes};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{
    Absent, AccountingCounters, AccountingStats, GpmMean, Gpu, Identity, Memory, MigInstance, MigMode,
    Placement, Ppm, ProcessKind, ProcessRow, Reading, Scope, UtilizationRow, UtilizationSample,
};
use gpuledger_wire::text::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) const S: u64 = 1_000_000;
/// Boot lies an hour before the beginning; the beginning is a whole hour of UTC.
pub(super) const BOOT_US: u64 = 3_600 * S;
pub(super) const UTC_US: i64 = 1_790_000_400_000_000 - 1_790_000_400_000_000 % 3_600_000_000;

/// A process with a context.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) pid: u32,
    /// Seconds of the script, in microseconds.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) ppm: u64,
    pub(super) memory: Option<u64>,
    pub(super) kind: ProcessKind,
    pub(super) instance: Option<(u32, u32)>,
    /// Gone from procfs though the driver lists it.
    pub(super) is_hidden: bool,
    /// After its end it stays listed until then.
    pub(super) reaped: u64,
}

pub(super) fn job(pid: u32, from: u64, to: u64, ppm: u64) -> Job {
    let (memory, kind) = (Some(1_000), ProcessKind::Compute);
    Job { pid, from: from * S, to: to * S, ppm, memory, kind, instance: None, is_hidden: false, reaped: 0 }
}

/// A MIG device with its life.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) device: MigInstance,
}

pub(crate) fn slot(gpu_instance: u32, compute_instance: u32, start: u32, from: u64, to: u64) -> Slot {
    let device = MigInstance {
        index: gpu_instance,
        uuid: format!("MIG-{gpu_instance}-{compute_instance}"),
        gpu_instance,
        compute_instance,
        profile: Ok("3g.40gb".to_owned()),
        compute_profile: None,
        placement: Ok(Placement { start, size: 4 }),
        compute_slices: Ok(3),
        multiprocessors: Ok(60),
        memory_bytes: Ok(40_000),
    };
    Slot { from: from * S, to: to * S, device }
}

/// The script.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) mig: MigMode,
    pub(super) gpm: Reading<bool>,
    pub(super) is_accounting: Reading<bool>,
    pub(super) jobs: Vec<Job>,
    pub(crate) slots: Vec<Slot>,
    /// Failing calls by name.
    pub(crate) errors: BTreeMap<&'static str, Absent>,
    /// Once: the call takes so long.
    pub(super) delays: BTreeMap<&'static str, u64>,
    /// Rows of zombies, beside the true ones.
    pub(super) garbage: Vec<UtilizationRow>,
    /// The driver stamps by time since boot.
    pub(super) since_boot: bool,
    /// Rings are empty while nothing runs.
    pub(super) idle_is_empty: bool,
    /// Energy counter at the beginning; milliwatts are constant.
    pub(super) energy_base: u64,
    pub(super) energy_from: u64,
    /// The next `instances` call but so many sees the layout of a microsecond-exact later time.
    pub(super) torn_to: Option<u64>,
    pub(super) calls: BTreeMap<&'static str, u64>,
    pub(super) reserved: Option<u64>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            mig: MigMode::Unsupported,
            gpm: Ok(false),
            is_accounting: Ok(false),
            jobs: Vec::new(),
            slots: Vec::new(),
            errors: BTreeMap::new(),
            delays: BTreeMap::new(),
            garbage: Vec::new(),
            since_boot: false,
            idle_is_empty: false,
            energy_base: 0,
            energy_from: 0,
            torn_to: None,
            calls: BTreeMap::new(),
            reserved: Some(10),
        }
    }
}

/// The world: the script and the time. Everybody holds the same one.
#[derive(Clone, Debug)]
pub(crate) struct World(Arc<Mutex<(Script, Stamp)>>);

impl World {
    pub(crate) fn new(script: Script) -> Self {
        Self(Arc::new(Mutex::new((script, stamp(0)))))
    }

    fn lock(&self) -> MutexGuard<'_, (Script, Stamp)> {
        self.0.lock().unwrap()
    }

    /// Until this is dropped every call hangs.
    pub(crate) fn hang(&self) -> impl Drop + '_ {
        self.lock()
    }

    pub(crate) fn edit(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.lock().0);
    }

    /// Script time.
    pub(super) fn t(&self) -> u64 {
        self.lock().1.monotonic_us - BOOT_US
    }

    pub(crate) fn go_to(&self, t: u64) {
        self.sleep_until(t + BOOT_US);
    }

    pub(crate) fn step_utc(&self, by_us: i64) {
        let mut world = self.lock();
        world.1.real = world.1.real.plus(by_us);
    }

    pub(crate) fn gpu(&self) -> FakeGpu {
        FakeGpu { world: self.clone(), samples: BTreeMap::new() }
    }

    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.lock().0.calls.get(name).copied().unwrap_or(0)
    }
}

pub(super) fn stamp(t: u64) -> Stamp {
    Stamp { monotonic_us: t + BOOT_US, real: utc(t) }
}

pub(super) fn utc(t: u64) -> Instant {
    Instant::from_micros(UTC_US).plus(i64::try_from(t).unwrap())
}

impl Clock for World {
    fn now(&self) -> Stamp {
        self.lock().1
    }

    fn sleep_until(&self, monotonic_us: u64) {
        let mut world = self.lock();
        let step = monotonic_us.saturating_sub(world.1.monotonic_us);
        world.1.monotonic_us += step;
        world.1.real = world.1.real.plus(i64::try_from(step).unwrap());
    }
}

impl Processes for World {
    fn boot_id(&self) -> &Name {
        unreachable!("the sampler does not ask for the boot")
    }

    fn identity(&self, pid: u32) -> Option<ProcessId> {
        let t = self.t();
        let world = self.lock();
        let lives = |job: &&Job| job.pid == pid && is_listed(job, t) && !job.is_hidden;
        world.0.jobs.iter().find(lives).map(|job| ProcessId { pid, started_at: utc(job.from) })
    }

    fn owner(&self, process: ProcessId) -> Owner {
        let container = Some(gpuledger_wire::text::Name::new(&format!("pod-{}", process.pid)).unwrap());
        Owner::Known(Belonging { pod_uid: container, ..Belonging::default() })
    }
}

pub(crate) struct FakeGpu {
    world: World,
    samples: BTreeMap<Scope, (u64, u64)>,
}

impl Script {
    fn on(&self, scope: Scope) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| match scope {
            Scope::Device => true,
            Scope::GpuInstance(id) => job.instance.is_some_and(|(gi, _)| gi == id),
        })
    }

    /// Busy time in parts per million of a microsecond.
    pub(super) fn busy(&self, scope: Scope, from: u64, to: u64) -> u64 {
        self.on(scope).map(|job| busy(job, from, to)).sum()
    }
}

fn is_listed(job: &Job, t: u64) -> bool {
    job.from <= t && t < job.to.max(job.reaped)
}

pub(super) fn busy(job: &Job, from: u64, to: u64) -> u64 {
    job.ppm * job.to.min(to).saturating_sub(job.from.max(from))
}

/// Sixths of a second.
fn ring(t: u64, since: u64) -> Vec<(u64, u64)> {
    let last = t * 6 / S;
    let end = |k: u64| k * S / 6;
    (last.saturating_sub(71).max(1)..=last)
        .map(|k| (end(k - 1), end(k)))
        .filter(|(_, to)| *to > since && *to <= t)
        .collect()
}

fn percent(amount: u64, length: u64) -> u32 {
    u32::try_from((amount / length.max(1) + 5_000) / 10_000).unwrap()
}

impl FakeGpu {
    /// Counts the call, lets it take its time, and says its error.
    fn call(&self, name: &'static str) -> Reading<()> {
        let delay = self.world.lock().0.delays.remove(name);
        if let Some(delay) = delay {
            let until = self.world.t() + delay;
            self.world.go_to(until);
        }
        let mut world = self.world.lock();
        *world.0.calls.entry(name).or_default() += 1;
        world.0.errors.get(name).map_or(Ok(()), |why| Err(*why))
    }

    fn script(&self) -> Script {
        self.world.lock().0.clone()
    }

    fn whole_only(&self) -> Reading<()> {
        if matches!(self.script().mig, MigMode::On { .. }) { Err(Absent::NotSupported) } else { Ok(()) }
    }

    fn driver_stamp(&self, t: u64) -> u64 {
        if self.script().since_boot { t + BOOT_US } else { t + u64::try_from(self.epoch()).unwrap() }
    }

    fn epoch(&self) -> i64 {
        let now = self.world.now();
        now.real.as_micros() - i64::try_from(now.monotonic_us - BOOT_US).unwrap()
    }

    fn since(&self, stamp: u64) -> u64 {
        stamp.saturating_sub(self.driver_stamp(0))
    }
}

impl Gpu for FakeGpu {
    fn identity(&self) -> Reading<Identity> {
        self.call("identity")?;
        Ok(Identity {
            uuid: "GPU-1".to_owned(),
            index: 0,
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            pci_bus_id: "00000000:3B:00.0".to_owned(),
            minor: Some(0),
            compute_capability: Some((9, 0)),
        })
    }

    fn mig_mode(&self) -> Reading<MigMode> {
        self.call("mig_mode")?;
        Ok(self.script().mig)
    }

    fn instances(&mut self) -> Reading<Vec<MigInstance>> {
        self.call("instances")?;
        let t = self.world.t();
        let script = self.script();
        let t = script.torn_to.filter(|_| self.world.calls("instances").is_multiple_of(2)).unwrap_or(t);
        Ok(script
            .slots
            .into_iter()
            .filter(|slot| slot.from <= t && t < slot.to)
            .map(|slot| slot.device)
            .collect())
    }

    fn memory(&self, scope: Scope) -> Reading<Memory> {
        self.call("memory")?;
        let (t, script) = (self.world.t(), self.script());
        if let Scope::GpuInstance(id) = scope {
            let there = |slot: &Slot| slot.device.gpu_instance == id && slot.from <= t && t < slot.to;
            script.slots.iter().find(|slot| there(slot)).ok_or(Absent::NotFound)?;
        }
        let used = script.on(scope).filter(|job| is_listed(job, t)).filter_map(|job| job.memory).sum();
        Ok(Memory { total: 80_000, reserved: script.reserved, used, free: 80_000_u64.saturating_sub(used) })
    }

    fn processes(&self) -> Reading<Vec<ProcessRow>> {
        self.call("processes")?;
        let t = self.world.t();
        let jobs = self.script().jobs.into_iter().filter(|job| is_listed(job, t));
        let row = |job: Job| ProcessRow {
            pid: job.pid,
            memory_bytes: job.memory,
            kind: job.kind,
            gpu_instance: job.instance.map(|(gi, _)| gi),
            compute_instance: job.instance.map(|(_, ci)| ci),
        };
        Ok(jobs.map(row).collect())
    }

    fn process_utilization(&self, since_us: u64) -> Reading<Vec<UtilizationRow>> {
        self.call("process_utilization")?;
        self.whole_only()?;
        let script = self.script();
        let ring = ring(self.world.t(), self.since(since_us));
        let (Some(first), Some(last)) = (ring.first(), ring.last()) else { return Ok(Vec::new()) };
        let mut rows = script.garbage.clone();
        let pids: BTreeSet<u32> = script.jobs.iter().map(|job| job.pid).collect();
        for pid in pids {
            let of = |from, to| {
                script.jobs.iter().filter(|job| job.pid == pid).map(|job| busy(job, from, to)).sum()
            };
            let whole: u64 = of(first.0, last.1);
            let Some(latest) = ring.iter().rev().find(|(from, to)| of(*from, *to) > 0) else { continue };
            rows.push(UtilizationRow {
                pid,
                timestamp_us: self.driver_stamp(latest.1),
                sm_percent: percent(whole, last.1 - first.0),
            });
        }
        Ok(rows)
    }

    fn utilization_samples(&self, since_us: u64) -> Reading<Vec<UtilizationSample>> {
        self.call("utilization_samples")?;
        self.whole_only()?;
        let script = self.script();
        let ring = ring(self.world.t(), self.since(since_us));
        let of = |(from, to): (u64, u64)| script.busy(Scope::Device, from, to);
        if script.idle_is_empty && ring.iter().all(|sample| of(*sample) == 0) {
            return Ok(Vec::new());
        }
        let sample = |(from, to)| UtilizationSample {
            timestamp_us: self.driver_stamp(to),
            percent: percent(of((from, to)), to - from).min(100),
        };
        Ok(ring.into_iter().map(sample).collect())
    }

    fn utilization_gauge(&self) -> Reading<Ppm> {
        self.call("utilization_gauge")?;
        self.whole_only()?;
        let t = self.world.t();
        let busy = self.script().busy(Scope::Device, t.saturating_sub(S / 6), t) / (S / 6);
        Ok(Ppm(u32::try_from(busy).unwrap()))
    }

    fn has_gpm(&self) -> Reading<bool> {
        self.call("has_gpm")?;
        self.script().gpm
    }

    fn gpm_mean(
        &mut self,
        scope: Scope,
        generation: u64,
        clock: &dyn gpuledger_nvml::Clock,
    ) -> Reading<Option<GpmMean>> {
        if let Err(why) = self.call("gpm_mean") {
            self.samples.remove(&scope);
            return Err(why);
        }
        let to_us = clock.monotonic_us();
        let before = self.samples.insert(scope, (generation, to_us));
        let Some((_, from_us)) = before.filter(|(of, _)| *of == generation) else { return Ok(None) };
        if from_us == to_us {
            return Ok(None);
        }
        let busy = self.script().busy(scope, from_us - BOOT_US, to_us - BOOT_US) / (to_us - from_us);
        Ok(Some(GpmMean { from_us, to_us, sm_active: Ppm(u32::try_from(busy).unwrap().min(1_000_000)) }))
    }

    fn is_accounting_on(&self) -> Reading<bool> {
        self.call("is_accounting_on")?;
        self.script().is_accounting
    }

    fn accounting_pids(&self) -> Reading<Vec<u32>> {
        self.call("accounting_pids")?;
        Ok(self.script().jobs.iter().filter(|job| job.from <= self.world.t()).map(|job| job.pid).collect())
    }

    fn accounting_stats(&self, pid: u32) -> Reading<AccountingStats> {
        self.call("accounting_stats")?;
        let (t, script) = (self.world.t(), self.script());
        let job =
            script.jobs.iter().rev().find(|job| job.pid == pid && job.from <= t).ok_or(Absent::NotFound)?;
        let is_running = t < job.to;
        Ok(AccountingStats {
            gpu_percent: None,
            memory_bytes_max: None,
            time_ms: if is_running { 0 } else { (job.to - job.from) / 1_000 },
            start_us: self.driver_stamp(job.from),
            is_running,
        })
    }

    fn accounting_counters(&self, pid: u32) -> Reading<AccountingCounters> {
        self.call("accounting_counters")?;
        let (t, script) = (self.world.t(), self.script());
        let job =
            script.jobs.iter().rev().find(|job| job.pid == pid && job.from <= t).ok_or(Absent::NotFound)?;
        let (first, last) = (job.from / S, job.to.min(t) / S);
        Ok(AccountingCounters {
            samples: last - first,
            gpu_percent_hundredths: busy(job, first * S, last * S) / S / 100,
            start_us: self.driver_stamp(job.from),
            is_running: t < job.to,
        })
    }

    /// A thousand milliwatts, so that a millijoule is a millisecond.
    fn energy_mj(&self) -> Reading<u64> {
        self.call("energy_mj")?;
        let script = self.script();
        Ok(script.energy_base + (self.world.t() - script.energy_from) / 1_000)
    }

    fn power_mw(&self) -> Reading<u32> {
        self.call("power_mw").map(|()| 1_000)
    }

    fn temperature_c(&self) -> Reading<u32> {
        self.call("temperature_c").map(|()| 40)
    }

    fn clocks_mhz(&self) -> Reading<(u32, u32)> {
        self.call("clocks_mhz").map(|()| (1_000, 2_000))
    }

    fn uncorrectable_errors(&self) -> Reading<u64> {
        self.call("uncorrectable_errors").map(|()| 0)
    }

    fn recovery_action(&self) -> Reading<u32> {
        self.call("recovery_action").map(|()| 0)
    }
}
