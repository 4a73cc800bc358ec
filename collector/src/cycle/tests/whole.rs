//! Whole GPUs: counters, samples, the gauge, memory, energy.

use super::world::{Job, S, Script, job};
use super::{Rig, label};
use gpuledger_nvml::{Absent, ProcessKind, UtilizationRow};

fn hopper() -> Script {
    Script { gpm: Ok(true), jobs: vec![job(7, 0, 1_000, 250_000)], ..Script::default() }
}

#[test]
fn a_steady_share_is_exact_from_the_second_look_on() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 24);
    let first = rig.device(0);
    assert_eq!(first.covered_us.get(), 10_000_000);
    assert_eq!(first.sm_active_us.unwrap().get(), 2_500_000);
    assert_eq!(label(&first.quality, "sm_active_us"), "interval_mean");
    assert_eq!(first.memory_byte_us.unwrap().get(), 1_000 * 10_000_000);
    assert_eq!(first.memory_bytes_max.unwrap().get(), 1_000);
    assert_eq!(label(&first.quality, "memory_byte_us"), "point_gauge");
    assert_eq!(first.energy_mj.unwrap().get(), 10_000);
    assert_eq!(label(&first.quality, "energy_mj"), "driver_counter");
}

#[test]
fn a_window_is_closed_once_nothing_late_can_come_for_it() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 12);
    assert_eq!(rig.parts, []);
    rig.run(13, 13);
    assert_eq!(rig.parts.len(), 1);
}

#[test]
fn samples_of_processes_and_of_the_device_stand_beside_each_other() {
    let jobs = vec![job(7, 0, 1_000, 400_000), job(8, 0, 1_000, 100_000)];
    let mut rig = Rig::new(Script { jobs, ..Script::default() });
    rig.run(0, 30);
    assert_eq!(rig.device(10).sm_active_us.unwrap().get(), 5_000_000);
    assert_eq!(label(&rig.device(10).quality, "sm_active_us"), "driver_sampled_device");
    let process = rig.process(10, 7);
    assert_eq!((process.sm_active_us.unwrap().get(), process.covered_us.get()), (4_000_000, 10_000_000));
    assert_eq!(label(&process.quality, "sm_active_us"), "driver_sampled");
    assert_eq!(process.pod_uid.as_ref().unwrap().as_str(), "pod-7");
    assert_eq!(label(&process.quality, "owner"), "cgroup");
}

#[test]
fn busy_time_before_the_first_look_is_not_told() {
    let mut rig = Rig::new(Script { jobs: vec![job(7, 0, 1_000, 400_000)], ..Script::default() });
    // Between two samples of the driver: the time of the first rows begins before the look.
    rig.run_at(10, 12, 400_000);
    rig.flush();
    let process = rig.process(10, 7);
    let (busy_us, covered_us) = (process.sm_active_us.unwrap().get(), process.covered_us.get());
    assert!(covered_us < 2_000_000, "{covered_us}");
    assert!((busy_us - covered_us * 2 / 5).abs() <= 1, "{busy_us} of {covered_us}");
}

#[test]
fn the_clock_of_the_samples_may_be_that_of_the_boot() {
    for idle_is_empty in [false, true] {
        let jobs = vec![job(7, 5, 100, 500_000)];
        let mut rig = Rig::new(Script { jobs, since_boot: true, idle_is_empty, ..Script::default() });
        rig.run(0, 40);
        assert_eq!(rig.process(20, 7).sm_active_us.unwrap().get(), 5_000_000, "{idle_is_empty}");
        assert_eq!(rig.device(20).sm_active_us.unwrap().get(), 5_000_000, "{idle_is_empty}");
    }
}

#[test]
fn an_idle_device_is_zero_and_not_absent() {
    for idle_is_empty in [false, true] {
        let jobs = vec![job(7, 0, 1_000, 0)];
        let mut rig = Rig::new(Script { jobs, idle_is_empty, ..Script::default() });
        rig.run(0, 30);
        let device = rig.device(10);
        assert_eq!((device.sm_active_us.unwrap().get(), device.covered_us.get()), (0, 10_000_000));
        assert_eq!(rig.process(10, 7).sm_active_us.unwrap().get(), 0, "a live process without a row is idle");
    }
}

#[test]
fn work_after_a_long_rest_is_not_blurred_over_the_rest() {
    for idle_is_empty in [false, true] {
        let jobs = vec![Job { from: 0, ..job(7, 0, 1_000, 0) }, job(8, 100, 105, 1_000_000)];
        let mut rig = Rig::new(Script { jobs, idle_is_empty, ..Script::default() });
        rig.run(0, 130);
        rig.flush();
        let busy_us = rig.of_pid(8).sm_us;
        assert!((4_900_000..=5_050_000).contains(&busy_us), "{busy_us} {idle_is_empty}");
        assert_eq!(rig.of_pid(7).sm_us, 0);
    }
}

#[test]
fn the_gauge_is_held_for_a_second_at_most() {
    let errors = [("utilization_samples", Absent::NotSupported)].into();
    let jobs = vec![job(7, 0, 1_000, 500_000)];
    let mut rig = Rig::new(Script { errors, jobs, ..Script::default() });
    for second in [10, 12, 14, 16, 18, 20, 22, 24] {
        rig.at(second * S);
    }
    let device = rig.device(10);
    assert_eq!(label(&device.quality, "sm_active_us"), "point_gauge");
    assert_eq!((device.sm_active_us.unwrap().get(), device.covered_us.get()), (2_500_000, 5_000_000));
}

#[test]
fn rows_of_zombies_are_discarded_and_counted() {
    let garbage = vec![
        UtilizationRow { pid: 99, timestamp_us: 17, sm_percent: 40 },
        UtilizationRow { pid: 98, timestamp_us: 17, sm_percent: 37_100 },
    ];
    let mut rig = Rig::new(Script { garbage, ..hopper() });
    let report = rig.run(0, 30);
    assert_eq!(report.discarded.len(), 2);
    rig.flush();
    assert_eq!(rig.process(10, 7).sm_active_us.unwrap().get(), 2_500_000);
    assert_eq!(rig.part(10).processes.len(), 1);
}

#[test]
fn a_process_without_a_memory_figure_has_none_rather_than_zero() {
    let mut rig = Rig::new(hopper());
    rig.world.edit(|script| script.jobs[0].memory = None);
    rig.run(0, 30);
    let process = rig.process(10, 7);
    assert_eq!(process.memory_byte_us, None);
    assert_eq!(label(&process.quality, "memory_byte_us"), "unavailable(not_reported)");
}

#[test]
fn memory_is_held_for_two_periods_and_no_longer() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 10);
    rig.world.edit(|script| {
        script.errors.insert("memory", Absent::Unknown);
    });
    let report = rig.run(11, 16);
    assert_eq!(report.trouble, None, "one reading that fails says nothing of the others");
    rig.world.edit(|script| {
        script.errors.remove("memory");
    });
    rig.run(17, 33);
    // Seen at 10 and held to 12; seen again at 17.
    let device = rig.device(10);
    assert_eq!(device.memory_byte_us.unwrap().get(), 1_000 * (2_000_000 + 3_000_000));
    assert_eq!(device.sm_active_us.unwrap().get(), 2_500_000, "the other readings go on");
    assert_eq!(device.covered_us.get(), 5_000_000, "what all readings cover at least");
    assert_eq!(device.covered_us_of("sm_active_us").get(), 10_000_000);
    assert_eq!(device.memory_bytes_max.unwrap().get(), 1_000, "and so is the mean over its own time");
}

#[test]
fn a_driver_that_keeps_its_reserve_within_used_is_told_apart() {
    let mut rig = Rig::new(Script { reserved: None, ..hopper() });
    rig.run(0, 14);
    assert_eq!(label(&rig.device(0).quality, "memory_byte_us"), "point_gauge(with_reserve)");
}

#[test]
fn a_lost_device_is_absent_with_its_reason_and_never_zero() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 14);
    rig.world.edit(|script| {
        script.errors.insert("mig_mode", Absent::Lost);
    });
    let report = rig.run(15, 44);
    assert_eq!(report.trouble, Some(Absent::Lost));
    let device = rig.device(20);
    assert_eq!((device.sm_active_us, device.memory_byte_us, device.energy_mj), (None, None, None));
    assert_eq!(device.covered_us.get(), 0);
    for reading in ["sm_active_us", "memory_byte_us", "energy_mj"] {
        assert_eq!(label(&device.quality, reading), "unavailable(lost)");
    }
    let gap = &rig.part(20).gaps[0];
    assert_eq!(gap.reason.as_str(), "lost(GPU-1)");
    let before = rig.device(10);
    assert_eq!(before.sm_active_us.unwrap().get(), 1_000_000, "up to the last good look, at 14");
}

#[test]
fn a_device_that_returns_is_measured_again() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 14);
    rig.world.edit(|script| {
        script.errors.insert("mig_mode", Absent::Lost);
    });
    rig.run(15, 44);
    rig.world.edit(|script| script.errors.clear());
    rig.run(45, 74);
    assert_eq!(rig.device(60).sm_active_us.unwrap().get(), 2_500_000);
    assert_eq!(rig.device(30).sm_active_us, None, "the long mean over the loss is not believed");
}

#[test]
fn energy_that_goes_back_is_a_gap_and_never_negative() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 15);
    rig.world.edit(|script| script.energy_from = 15 * S);
    rig.run(16, 45);
    let device = rig.device(10);
    assert_eq!(device.energy_mj, None);
    assert_eq!(label(&device.quality, "energy_mj"), "unavailable(counter_reset)");
    assert!(rig.part(10).gaps.iter().any(|gap| gap.reason.as_str() == "counter_reset(GPU-1)"));
    assert_eq!(rig.device(20).energy_mj.unwrap().get(), 10_000);
}

#[test]
fn after_a_driver_reload_energy_counts_from_zero() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 15);
    rig.world.edit(|script| script.energy_from = 15 * S);
    rig.sampler.reloaded();
    rig.gpu = rig.world.gpu();
    rig.run(16, 45);
    // Five seconds since the load, all of it after the last reading at 10.
    assert_eq!(rig.device(10).energy_mj.unwrap().get(), 5_000);
    assert!(rig.part(10).gaps.iter().any(|gap| gap.reason.as_str() == "driver_reload(GPU-1)"));
}

#[test]
fn clients_of_mps_have_a_label_that_says_how_little_is_proven() {
    let mut client = job(7, 0, 1_000, 300_000);
    client.kind = ProcessKind::MpsClient;
    let mut rig = Rig::new(Script { jobs: vec![client, job(6, 0, 1_000, 0)], ..Script::default() });
    let report = rig.run(0, 30);
    assert!(report.view.unwrap().has_mps());
    assert_eq!(label(&rig.process(10, 7).quality, "sm_active_us"), "derived_share(sampled)");
    assert_eq!(rig.process(10, 7).sm_active_us.unwrap().get(), 3_000_000);
}

#[test]
fn slow_readings_are_not_taken_in_each_cycle() {
    let mut rig = Rig::new(hopper());
    rig.run(0, 30);
    assert_eq!(rig.world.calls("power_mw"), 4);
    assert_eq!(rig.world.calls("processes"), 32, "each cycle, and one for the probe");
}
