//! Random scripts against their truth.

use super::world::{BOOT_US, Job, S, Script, Slot, busy, job, slot};
use super::{Rig, SamplerSettings};
use gpuledger_nvml::{Absent, MigMode, Scope};
use proptest::prelude::*;

fn a_job() -> impl Strategy<Value = Job> {
    (1..6_u32, 0..90_000_000_u64, 1..60_000_000_u64, 0..=19_u64, 1..50_u64).prop_map(
        |(pid, from, length, percent, memory)| Job {
            from,
            to: from + length,
            memory: Some(memory * 1_000_000_000),
            ..job(pid, 0, 0, percent * 10_000)
        },
    )
}

/// One process a number at a time: the kernel gives no number twice at once.
fn jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec(a_job(), 0..6).prop_map(|mut jobs| {
        jobs.sort_by_key(|job| (job.pid, job.from));
        let mut kept: Vec<Job> = Vec::new();
        for job in jobs {
            if kept.last().is_none_or(|last| last.pid != job.pid || last.to + S <= job.from) {
                kept.push(job);
            }
        }
        kept
    })
}

fn failing() -> impl Strategy<Value = Vec<(u64, &'static str, Absent)>> {
    let call = prop::sample::select(vec![
        "gpm_mean",
        "memory",
        "processes",
        "process_utilization",
        "utilization_samples",
        "energy_mj",
        "mig_mode",
    ]);
    let why =
        prop::sample::select(vec![Absent::Unknown, Absent::Lost, Absent::NotSupported, Absent::Implausible]);
    prop::collection::vec((0..100_u64, call, why), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where the source is the mean of each interval, the sum of all windows is the truth of the time that is covered, whatever the phase
    /// and the period.
    #[test]
    fn totals_of_an_exact_source_do_not_depend_on_when_it_is_read(
        jobs in jobs(),
        phase in 0..S,
        period in 200_000..3_000_000_u64,
    ) {
        let settings = SamplerSettings { period_us: period, ..SamplerSettings::default() };
        let mut rig = Rig::with(Script { gpm: Ok(true), jobs, ..Script::default() }, settings);
        let mut t = phase;
        let mut cycles = 0;
        while t < 100 * S {
            rig.at(t);
            t += period;
            cycles += 1;
        }
        let end = t - period;
        rig.flush();
        let script = rig.script();
        let truth = script.busy(Scope::Device, phase, end) / 1_000_000;
        let figures = rig.sum().units.get(&None).copied().unwrap_or_default();
        prop_assert_eq!(figures.covered_us, i64::try_from(end - phase).unwrap());
        // The fake's means are whole parts per million.
        let lost = i64::try_from(truth).unwrap() - figures.sm_us;
        prop_assert!((-1..=cycles * 3 + 12).contains(&lost), "{lost} of {truth}");
        let energy_us = i64::try_from(end - phase).unwrap() / 1_000;
        let told = rig.sum().energy_mj;
        prop_assert!(told <= energy_us + 1, "{told} of {energy_us}");
    }

    /// Whatever fails, and when: no unit and no process is told more than happened, and none covers more than has passed.
    #[test]
    fn nothing_is_made_up(
        jobs in jobs(),
        failing in failing(),
        gpm in any::<bool>(),
        accounting in any::<bool>(),
        idle_is_empty in any::<bool>(),
        phase in 0..S,
    ) {
        let script = Script { gpm: Ok(gpm), is_accounting: Ok(accounting), jobs, idle_is_empty, ..Script::default() };
        let mut rig = Rig::new(script);
        for second in 0..100 {
            rig.world.edit(|script| {
                script.errors = failing.iter().filter(|(at, ..)| (*at..at + 4).contains(&second)).map(|(_, c, w)| (*c, *w)).collect();
            });
            rig.at(second * S + phase);
        }
        rig.flush();
        let script = rig.script();
        let sum = rig.sum();
        let device = sum.units.get(&None).copied().unwrap_or_default();
        prop_assert!(device.covered_us <= 100_000_000);
        let truth = script.busy(Scope::Device, 0, 100 * S) / 1_000_000;
        // Whole per cents of each sixth of a second, rounded; and no more than half of one each.
        let blur = 500_000;
        prop_assert!(device.sm_us <= i64::try_from(truth).unwrap() + blur, "{} of {truth}", device.sm_us);
        // With a call refused the device's time is divided by a rule, and only the sum is true.
        let is_divided = failing.iter().any(|(_, call, _)| *call == "process_utilization");
        let all: i64 = sum.processes.values().map(|figures| figures.sm_us).sum();
        prop_assert!(all <= i64::try_from(truth).unwrap() * 21 / 20 + 4 * blur, "{all} of {truth}");
        for ((pid, started), figures) in &sum.processes {
            let is = |job: &&Job| i64::from(job.pid) == *pid && started_us(job) == *started;
            let of = script.jobs.iter().find(is).unwrap();
            let truth = i64::try_from(busy(of, 0, 100 * S) / 1_000_000).unwrap();
            let fits = is_divided || figures.sm_us <= truth + blur + truth / 20;
            prop_assert!(fits, "{pid}: {} of {truth}", figures.sm_us);
            let life = of.to.min(100 * S) - of.from.min(100 * S);
            let most = i128::from(of.memory.unwrap()) * i128::from(life + 2 * S);
            prop_assert!(figures.byte_us <= most, "{pid}: {} of {most}", figures.byte_us);
        }
    }
}

/// Instances on two places, one after the other on each, under ids and UUIDs that come back; half of them with a process.
fn layouts() -> impl Strategy<Value = (Vec<Slot>, Vec<Job>)> {
    let life = (0..20_000_000_u64, 200_000..25_000_000_u64, any::<bool>(), 0..=100_u64);
    prop::collection::vec((0..2_u32, life), 0..12).prop_map(|lives| {
        let (mut slots, mut jobs, mut free) = (Vec::new(), Vec::new(), [0, 0]);
        for (pid, (place, (pause, length, is_used, percent))) in (1..).zip(lives) {
            let at = usize::try_from(place).unwrap();
            let from = free[at] + pause;
            free[at] = from + length;
            slots.push(Slot { from, to: from + length, ..slot(place, 0, place * 4, 0, 0) });
            let instance = is_used.then_some((place, 0));
            let one = Job { from, to: from + length, instance, ..job(pid, 0, 0, percent * 10_000) };
            jobs.extend(is_used.then_some(one));
        }
        (slots, jobs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Instances come and go under the same names: each place is told no more than what happened there, and covers no more than the
    /// instances' lives.
    #[test]
    fn no_instance_inherits_from_the_one_before((slots, jobs) in layouts(), phase in 0..S, torn in 0..80_u64) {
        let mig = MigMode::On { turns_off: false };
        let mut rig = Rig::new(Script { mig, gpm: Ok(true), slots, jobs, ..Script::default() });
        for second in 0..100 {
            let t = second * S + phase;
            rig.world.edit(|script| script.torn_to = (second == torn).then_some(t + S / 2));
            rig.at(t);
        }
        rig.flush();
        let script = rig.script();
        let sum = rig.sum();
        for place in [0, 1_u8] {
            let figures = sum.units.get(&Some(place * 4)).copied().unwrap_or_default();
            let truth = script.busy(Scope::GpuInstance(place.into()), 0, 100 * S) / 1_000_000;
            prop_assert!(figures.sm_us <= i64::try_from(truth).unwrap() + 1, "{figures:?} of {truth}");
            let on = |slot: &&Slot| slot.device.gpu_instance == u32::from(place);
            let lives: Vec<&Slot> = script.slots.iter().filter(on).collect();
            let lived: u64 = lives.iter().map(|slot| slot.to.min(100 * S).saturating_sub(slot.from)).sum();
            // An instance made anew under the same names within one cycle: the pause is told by the next cycle's MIG event only.
            let pauses = lives.iter().zip(lives.iter().skip(1)).map(|(one, next)| next.from - one.to);
            let lived = lived + pauses.filter(|pause| *pause < S).sum::<u64>();
            prop_assert!(figures.covered_us <= i64::try_from(lived).unwrap(), "{figures:?} of {lived}");
        }
        for ((pid, _), figures) in &sum.processes {
            let of = script.jobs.iter().find(|job| i64::from(job.pid) == *pid).unwrap();
            let truth = i64::try_from(busy(of, 0, 100 * S) / 1_000_000).unwrap();
            prop_assert!(figures.sm_us <= truth + 1, "{pid}: {figures:?} of {truth}");
        }
    }
}

fn started_us(job: &Job) -> i64 {
    super::world::utc(job.from).as_micros()
}

impl Rig {
    fn script(&self) -> Script {
        let mut copy = Script::default();
        self.world.edit(|script| copy = script.clone());
        copy
    }
}

#[test]
fn memory_time_is_within_one_period_of_each_change() {
    let jobs = vec![job(7, 3, 47, 0), job(8, 20, 61, 0)];
    for phase in [0, 100_000, 500_000, 999_999] {
        let mut rig = Rig::new(Script { gpm: Ok(true), jobs: jobs.clone(), ..Script::default() });
        rig.run_at(0, 80, phase);
        rig.flush();
        for (pid, life) in [(7, 44), (8, 41)] {
            let off = rig.of_pid(pid).byte_us - 1_000 * life * 1_000_000;
            assert!(off.abs() <= 1_000 * 1_000_000, "{pid} at {phase}: {off}");
        }
    }
}

#[test]
fn samples_of_processes_add_up_over_changes_at_any_phase() {
    let jobs = vec![job(7, 3, 47, 730_000), job(8, 20, 61, 210_000)];
    for phase in [0, 100_000, 500_000, 999_999] {
        let mut rig = Rig::new(Script { jobs: jobs.clone(), ..Script::default() });
        rig.run_at(0, 80, phase);
        rig.flush();
        for (pid, truth) in [(7, 44 * 730_000), (8, 41 * 210_000)] {
            let off = rig.of_pid(pid).sm_us - truth;
            assert!(off.abs() <= truth / 100, "{pid} at {phase}: {off} of {truth}");
        }
    }
}

#[test]
fn the_script_begins_at_a_whole_hour() {
    assert_eq!(super::world::UTC_US % 3_600_000_000, 0);
    assert_eq!(BOOT_US, 3_600 * S);
}
