//! Process lists.

use crate::sim::{GPU, NOTHING, Sim, h100, mig, node, on};
use gpuledger_nvml::{Absent, ProcessKind, ProcessRow};

fn pids(rows: &[ProcessRow]) -> Vec<u32> {
    rows.iter().map(|row| row.pid).collect()
}

#[test]
fn lists_are_one_list_with_each_process_once() {
    let timeline = "
- {at: 0s, start: {pid: 10, comm: nvidia-cuda-mps, on: [{gpu: 0, kind: mps_server, memory: 60MiB}]}}
- {at: 0s, start: {pid: 11, on: [{gpu: 0, kind: mps_client, memory: 1GiB}]}}
- {at: 0s, start: {pid: 12, on: [{gpu: 0, kind: graphics, memory: 5MiB}]}}
- {at: 0s, start: {pid: 13, on: [{gpu: 0, memory_unknown: true}]}}";
    on("processes::lists_are_one_list_with_each_process_once", &h100(timeline), |sim| {
        let rows = sim.gpu().processes().expect("processes");
        let row = |pid, kind, memory_bytes| ProcessRow {
            pid,
            kind,
            memory_bytes,
            gpu_instance: None,
            compute_instance: None,
        };
        assert_eq!(
            rows,
            [
                row(10, ProcessKind::Compute, Some(60 << 20)),
                row(11, ProcessKind::MpsClient, Some(1 << 30)),
                row(12, ProcessKind::Graphics, Some(5 << 20)),
                row(13, ProcessKind::Compute, None),
            ]
        );
    });
}

#[test]
fn an_idle_device_has_no_processes() {
    on("processes::an_idle_device_has_no_processes", &h100(NOTHING), |sim| {
        assert_eq!(sim.gpu().processes(), Ok(vec![]));
    });
}

#[test]
fn a_list_longer_than_expected_is_read_whole() {
    let timeline: String =
        (1..=100).map(|pid| format!("- {{at: 0s, start: {{pid: {pid}, on: [{{gpu: 0}}]}}}}\n")).collect();
    on("processes::a_list_longer_than_expected_is_read_whole", &h100(&timeline), |sim| {
        assert_eq!(pids(&sim.gpu().processes().expect("processes")), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn a_list_that_grows_while_it_is_read_is_read_whole() {
    let started = |pids: std::ops::RangeInclusive<u32>, second: u32| -> String {
        pids.map(|pid| format!("- {{at: {second}s, start: {{pid: {pid}, on: [{{gpu: 0}}]}}}}\n")).collect()
    };
    let delay =
        "- {at: 0s, delay: {call: nvmlDeviceGetComputeRunningProcesses_v3, nth: 2, times: 1, by: 2s}}\n";
    let timeline = started(1..=40, 0) + delay + &started(41..=300, 1);
    on("processes::a_list_that_grows_while_it_is_read_is_read_whole", &h100(&timeline), |sim| {
        assert_eq!(pids(&sim.gpu().processes().expect("processes")), (1..=300).collect::<Vec<_>>());
        let calls = Sim::calls();
        assert_eq!(
            calls.lines().filter(|line| line.contains("nvmlDeviceGetComputeRunningProcesses_v3")).count(),
            3
        );
    });
}

fn forty(driver: &str) -> String {
    let timeline: String = (1..=40)
        .map(|pid| format!("- {{at: 0s, start: {{pid: {pid}, on: [{{gpu: 0, memory: 1GiB}}]}}}}\n"))
        .collect();
    node(driver, "h100-80", &timeline)
}

#[test]
fn drivers_that_write_long_records_are_asked_for_the_second_version() {
    let test = "processes::drivers_that_write_long_records_are_asked_for_the_second_version";
    on(test, &forty("535.86.10"), |sim| {
        let rows = sim.gpu().processes().expect("processes");
        assert_eq!(pids(&rows), (1..=40).collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row.memory_bytes == Some(1 << 30)));
        assert!(!Sim::calls().contains("RunningProcesses_v3"), "{}", Sim::calls());
    });
}

#[test]
fn drivers_before_510_have_the_second_version_only() {
    on("processes::drivers_before_510_have_the_second_version_only", &forty("470.42.01"), |sim| {
        assert_eq!(sim.gpu().processes().expect("processes").len(), 40);
    });
}

#[test]
fn drivers_before_460_have_the_first_version_only() {
    on("processes::drivers_before_460_have_the_first_version_only", &forty("450.80.02"), |sim| {
        let rows = sim.gpu().processes().expect("processes");
        assert_eq!(pids(&rows), (1..=40).collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row.memory_bytes == Some(1 << 30)));
    });
}

#[test]
fn records_of_another_length_are_not_believed() {
    let short = format!(
        "name: test\ndriver: {{version: 580.105.08, process_record_bytes: 16}}\ngpus: [{{uuid: {GPU}, model: h100-80}}]\ntimeline:\n\
         - {{at: 0s, start: {{pid: 4711, on: [{{gpu: 0, memory: 1GiB}}]}}}}\n- {{at: 0s, start: {{pid: 4712, on: [{{gpu: 0, memory: 1GiB}}]}}}}\n"
    );
    on("processes::records_of_another_length_are_not_believed", &short, |sim| {
        assert_eq!(sim.gpu().processes(), Err(Absent::Implausible));
    });
}

const SPLIT: &str = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1, compute: [{slices: 1}, {slices: 2}]}}
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}
- {at: 0s, start: {pid: 10, on: [{gpu: 0, gi: 1, ci: 0, memory: 1GiB}]}}
- {at: 0s, start: {pid: 11, on: [{gpu: 0, gi: 1, ci: 1, memory: 2GiB}, {gpu: 0, gi: 2, memory: 3GiB}]}}";

#[test]
fn under_mig_each_process_has_its_instance() {
    on("processes::under_mig_each_process_has_its_instance", &mig("580.105.08", "h100-80", SPLIT), |sim| {
        check_split(&sim.gpu().processes().expect("processes"));
    });
}

#[test]
fn without_privilege_the_instances_are_asked_one_by_one() {
    let scenario = mig("580.105.08", "h100-80", SPLIT) + "privilege: user\n";
    on("processes::without_privilege_the_instances_are_asked_one_by_one", &scenario, |sim| {
        check_split(&sim.gpu().processes().expect("processes"));
    });
}

fn check_split(rows: &[ProcessRow]) {
    let seen: Vec<_> =
        rows.iter().map(|row| (row.pid, row.gpu_instance, row.compute_instance, row.memory_bytes)).collect();
    assert_eq!(
        seen,
        [
            (10, Some(1), Some(0), Some(1 << 30)),
            (11, Some(1), Some(1), Some(2 << 30)),
            (11, Some(2), Some(0), Some(3 << 30)),
        ]
    );
}
