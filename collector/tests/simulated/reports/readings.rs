//! What is read of devices and processes.

use super::measured;
use crate::node::Node;
use crate::view::label;

#[test]
fn values_of_a_gpu_stand_once_and_never_at_its_instances() {
    let outing = measured(Node::of("capture-dcgm-a100").with("dcgm_names = true").shown());
    let shown = outing.shown.as_ref().unwrap();
    for name in [
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_GPU_TEMP",
        "gpuledger_gpu_power_watts",
    ] {
        assert_eq!(shown.samples(name).count(), 1, "{name}\n{}", shown.metrics);
    }
    assert!(outing.unit(35, 0, None).energy_mj.is_some());
    assert_eq!(outing.unit(35, 0, Some((6, 1))).energy_mj, None);
}

#[test]
fn sharers_of_a_gpu_all_appear_with_their_own_part() {
    let outing = measured(Node::of("time-slicing"));
    let pids = [1001, 1002, 1003, 1004];
    let rows = pids.map(|pid| outing.process(35, pid));
    for row in rows {
        assert_eq!(label(&row.quality, "sm_active_us"), "driver_sampled");
        assert!(row.pod_uid.is_some());
    }
    let parts = rows.map(|row| row.sm_active_us.unwrap().get());
    assert_eq!(parts[3], 0, "one that does nothing is zero, and there");
    let device = outing.unit(35, 0, None).sm_active_us.unwrap().get();
    assert!(
        parts.iter().all(|part| *part < device * 3 / 4),
        "nobody has the device's value: {parts:?} of {device}"
    );
    assert!(parts.iter().sum::<i64>() <= device + 100_000, "{parts:?} of {device}");
}

#[test]
fn shares_are_not_made_up_by_the_node() {
    let outing = measured(Node::of("time-slicing"));
    // `placed` asserts that no share is said.
    let gpu = outing.uuid(0);
    assert!(
        outing.placed().contains(&format!("bb7966e3-dc1a-4c28-8a6f-5b6f3cbe2b5a {gpu}")),
        "{:?}",
        outing.placed()
    );
}

#[test]
fn an_idle_gpu_is_zero_and_no_error() {
    let outing = measured(Node::of("whole-gpus"));
    outing.assert_undisturbed();
    for second in [25, 65, 115] {
        let idle = outing.unit(second, 3, None);
        assert_eq!(idle.sm_active_us.map(|us| us.get()), Some(0));
        assert_eq!(label(&idle.quality, "sm_active_us"), "interval_mean");
        assert_eq!(idle.covered_us.get(), 10_000_000);
    }
    // A process that does nothing is listed, and its zero was read.
    assert_eq!(outing.process(75, 4300).sm_active_us.map(|us| us.get()), Some(0));
}

#[test]
fn use_and_presence_are_different_numbers_from_different_sources() {
    let outing = measured(Node::of("whole-gpus"));
    let row = outing.unit(35, 0, None);
    assert_eq!(row.covered_us.get(), 10_000_000);
    assert_eq!(row.sm_active_us.unwrap().get(), 3_550_000);
    assert_eq!(row.memory_byte_us.unwrap().get(), (70 << 30) * 10_000_000);
    let labels = ["sm_active_us", "memory_byte_us", "energy_mj"].map(|reading| label(&row.quality, reading));
    assert_eq!(labels, ["interval_mean", "point_gauge", "driver_counter"]);
}

#[test]
fn every_gpu_has_a_row_in_every_window_so_that_used_and_idle_make_the_capacity() {
    let outing = measured(Node::of("whole-gpus"));
    for window in outing.output.windows() {
        let gpus: Vec<&str> = window.units.iter().map(|row| row.gpu.as_str()).collect();
        let all: Vec<&str> = (0..4).map(|gpu| outing.uuid(gpu)).collect();
        assert_eq!(gpus, all, "{}", window.start);
    }
}

#[test]
fn rows_that_cannot_be_true_are_dropped_and_counted() {
    let outing = measured(Node::of("zombies").shown());
    let shown = outing.shown.as_ref().unwrap();
    let dropped =
        |reason: &str| shown.metric("gpuledger_collector_discarded_rows_total", &[&format!("\"{reason}\"")]);
    assert!(dropped("utilization").unwrap() >= 30, "{}", shown.metrics);
    assert!(dropped("unknown_pid").unwrap() >= 30, "a number that nobody has");
    let pids: Vec<i64> =
        outing.output.windows().flat_map(|window| window.processes.iter().map(|row| row.pid.get())).collect();
    assert!(!pids.contains(&0) && !pids.contains(&4_026_531_840), "{pids:?}");
    assert!(outing.unit(35, 0, None).sm_active_us.unwrap().get() <= 10_000_000);
}

#[test]
fn memory_of_a_dead_process_stays_with_its_job_until_it_is_free() {
    let outing = measured(Node::of("zombies"));
    for (second, pid, job, bytes) in [(45, 3101, "121", 10 << 30), (45, 3103, "123", 8 << 30)] {
        let row = outing.process(second, pid);
        assert_eq!(row.slurm_job.as_ref().unwrap().as_str(), job);
        assert_eq!(row.memory_byte_us.unwrap().get(), bytes * 10_000_000);
    }
    // Without an entry in /proc nobody knows whose it is; the GPU's memory still tells of it.
    assert_eq!(outing.processes(55, 3102).len(), 0);
    assert_eq!(outing.unit(65, 0, None).memory_bytes_max.unwrap().get(), (10 + 5 + 4) << 30);
}

#[test]
fn what_an_ended_process_held_is_no_longer_summed() {
    let outing = measured(Node::of("zombies"));
    assert_eq!(outing.processes(85, 3101).len(), 0);
    assert_eq!(outing.unit(85, 0, None).memory_bytes_max.unwrap().get(), 4 << 30);
    assert_eq!(outing.unit(95, 1, None).memory_byte_us.map(|sum| sum.get()), Some(0));
}

#[test]
fn long_records_of_a_driver_are_read_as_they_are() {
    let outing = measured(Node::of("driver-535"));
    outing.assert_undisturbed();
    let window = outing.window(35);
    assert_eq!(window.processes.len(), 20);
    for row in &window.processes {
        assert_eq!(row.memory_byte_us.unwrap().get(), (1 << 30) * 10_000_000);
    }
}

#[test]
fn a_metric_under_another_number_is_not_believed() {
    let outing = measured(Node::of("gpm-wrong-echo"));
    assert_eq!(label(&outing.unit(15, 0, None).quality, "sm_active_us"), "interval_mean");
    let doubted = outing.unit(25, 0, None);
    assert!(label(&doubted.quality, "sm_active_us") != "interval_mean", "{:?}", doubted.quality);
    let right_again = outing.unit(35, 0, None);
    assert!(right_again.covered_us_of("sm_active_us").get() <= 1_000_000, "but for the last reading of it");
    let believed = outing.unit(65, 0, None);
    assert_eq!(
        (label(&believed.quality, "sm_active_us"), believed.covered_us.get()),
        ("interval_mean", 10_000_000)
    );
}
