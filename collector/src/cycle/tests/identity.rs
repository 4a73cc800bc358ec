//! Processes: which one a number means.

use super::world::{Job, S, Script, job};
use super::{Rig, label};
use crate::integrate::Discard;
use gpuledger_nvml::Absent;

#[test]
fn a_number_that_comes_back_is_another_process() {
    let jobs = vec![job(7, 0, 13, 500_000), job(7, 17, 100, 250_000)];
    let mut rig = Rig::new(Script { gpm: Ok(true), jobs, ..Script::default() });
    rig.run(0, 40);
    rig.flush();
    let sum = rig.sum();
    let of_seven: Vec<i64> = sum.processes.values().map(|figures| figures.sm_us).collect();
    assert_eq!(of_seven.len(), 2);
    assert!((6_400_000..=6_600_000).contains(&of_seven[0]), "{of_seven:?}");
    assert!((5_600_000..=5_900_000).contains(&of_seven[1]), "{of_seven:?}");
}

#[test]
fn a_number_reused_within_one_period_is_counted_to_nobody() {
    let jobs = vec![job(7, 0, 13, 500_000), job(7, 13, 100, 250_000)];
    let mut rig = Rig::new(Script { jobs, ..Script::default() });
    rig.run(0, 12);
    rig.at(12 * S + S / 2);
    let report = rig.at(13 * S + S / 2);
    assert_eq!(report.discarded, [Discard::ReusedPid]);
}

#[test]
fn the_last_part_of_a_life_goes_to_its_last_known_owner() {
    let mut rig = Rig::new(Script { jobs: vec![job(7, 0, 15, 1_000_000)], ..Script::default() });
    rig.run_at(0, 40, S / 2);
    rig.flush();
    let sm_us = rig.of_pid(7).sm_us;
    assert!(
        (14_350_000..=14_550_000).contains(&sm_us),
        "{sm_us}: from the first look at 0.5 to the end at 15"
    );
    let process = rig.process(10, 7);
    assert_eq!(process.pod_uid.as_ref().unwrap().as_str(), "pod-7");
    assert!(process.covered_us.get() <= 5_500_000, "{process:?}");
}

#[test]
fn a_row_whose_process_the_kernel_does_not_know_is_normal() {
    let mut rig = Rig::new(Script { jobs: vec![job(7, 0, 100, 0), job(8, 0, 100, 0)], ..Script::default() });
    rig.world.edit(|script| script.jobs[1].is_hidden = true);
    let report = rig.run(0, 1);
    assert_eq!(report.discarded, [Discard::Vanished]);
    assert_eq!(report.trouble, None);
    assert_eq!(report.view.unwrap().processes.unwrap().len(), 1);
}

#[test]
fn a_process_that_ends_between_both_looks_at_the_kernel_is_discarded() {
    let mut rig = Rig::new(Script { jobs: vec![job(7, 0, 5, 0)], ..Script::default() });
    rig.run(0, 3);
    rig.world.edit(|script| {
        script.delays.insert("memory", 2 * S);
    });
    let report = rig.at(4 * S);
    assert_eq!(report.discarded, [Discard::Vanished]);
}

#[test]
fn counters_of_accounting_outlive_the_process() {
    let is_accounting = Ok(true);
    let jobs = vec![job(7, 3, 14, 400_000)];
    let mut rig = Rig::new(Script { is_accounting, jobs, ..Script::default() });
    rig.run_at(0, 40, S / 4);
    rig.flush();
    let process = rig.process(10, 7);
    assert_eq!(label(&process.quality, "sm_active_us"), "driver_counter");
    let sm_us = rig.of_pid(7).sm_us;
    assert!((4_350_000..=4_450_000).contains(&sm_us), "{sm_us}: 40 % of eleven seconds");
}

#[test]
fn a_zombie_holds_memory_and_does_no_work() {
    let zombie = Job { reaped: 60 * S, ..job(7, 3, 22, 500_000) };
    for is_accounting in [Ok(true), Ok(false)] {
        let mut rig = Rig::new(Script { is_accounting, jobs: vec![zombie.clone()], ..Script::default() });
        rig.run_at(0, 80, S / 4);
        rig.flush();
        let figures = rig.of_pid(7);
        assert!((9_350_000..=9_550_000).contains(&figures.sm_us), "{figures:?}: half of nineteen seconds");
        assert_eq!(figures.byte_us, 1_000 * 57_000_000, "until it is reaped");
    }
}

#[test]
fn counters_of_processes_that_overlap_are_marked() {
    let jobs = vec![job(7, 0, 100, 400_000), job(8, 0, 100, 100_000)];
    let mut rig = Rig::new(Script { is_accounting: Ok(true), jobs, ..Script::default() });
    rig.run(0, 30);
    let process = rig.process(10, 7);
    assert_eq!(label(&process.quality, "sm_active_us"), "driver_counter(shared_unverified)");
    assert_eq!(process.sm_active_us.unwrap().get(), 4_000_000);
}

#[test]
fn a_list_that_cannot_be_read_leaves_processes_as_they_were_for_two_periods() {
    let mut rig = Rig::new(Script { gpm: Ok(true), jobs: vec![job(7, 0, 100, 0)], ..Script::default() });
    rig.run(0, 10);
    rig.world.edit(|script| {
        script.errors.insert("processes", Absent::Implausible);
    });
    rig.run(11, 40);
    assert_eq!(rig.process(10, 7).memory_byte_us.unwrap().get(), 2_000_000 * 1_000);
    assert!(rig.part(20).processes.iter().all(|process| process.memory_byte_us.is_none()));
}
