//! Processes that come, go, and come again under the same number.

use super::measured;
use crate::node::{Node, scenarios};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_list_that_grows_between_its_size_and_its_rows_is_read_whole() {
    // The first call of a cycle takes 20 ms, and in the middle of it more processes come than any room that was made before it has.
    let text = fs::read_to_string(scenarios().join("vanishing.yaml")).unwrap();
    let steps: String = (0..60)
        .map(|n| {
            format!("- {{at: 30s12ms, start: {{pid: {}, on: [{{gpu: 0, memory: 64MiB}}]}}}}\n", 6000 + n)
        })
        .collect();
    let grown = text
        .replace("nth: 2, times: 1, by: 20ms", "times: 1, by: 20ms")
        .replace("- {at: 40s, stop: {pid: 3340}}", &format!("{steps}- {{at: 40s, stop: {{pid: 3340}}}}"));
    assert!(grown.len() > text.len() + 1000);
    let outing = measured(Node::new(&grown));
    for pid in (6000..6060).chain([3340, 3341]) {
        let covered_us = outing.process(35, pid).covered_us_of("memory_byte_us").get();
        assert_eq!(covered_us, 9_980_000, "PID {pid} was listed with the call in which it came");
    }
}

#[test]
fn a_process_that_ends_between_nvml_and_the_kernel_is_normal() {
    let outing = measured(Node::of("vanishing").shown());
    outing.assert_undisturbed();
    assert_eq!(outing.output.states().count(), 0, "no GPU is in fault for it");
    let shown = outing.shown.as_ref().unwrap();
    assert_eq!(shown.metric("gpuledger_gpu_readable", &[]), Some(1));
    assert!(shown.ready.starts_with("HTTP/1.1 200"), "{}", shown.ready);
}

#[test]
fn a_listed_process_without_an_entry_in_proc_is_counted_and_left_out() {
    let outing = measured(Node::of("vanishing").shown());
    assert!(outing.output.windows().all(|window| window.processes.iter().all(|row| row.pid.get() != 3302)));
    let vanished =
        outing.shown.as_ref().unwrap().metric("gpuledger_collector_discarded_rows_total", &["\"vanished\""]);
    assert!(vanished.unwrap() >= 45, "{vanished:?}");
    // Its memory is the GPU's all the same.
    assert_eq!(outing.unit(25, 0, None).memory_bytes_max.unwrap().get(), 5 << 30);
}

#[test]
fn nothing_is_shown_of_processes_that_ended() {
    let outing = measured(Node::of("vanishing").shown());
    let shown = outing.shown.as_ref().unwrap();
    assert_eq!(shown.metric("gpuledger_gpu_processes", &[]), Some(0), "{}", shown.metrics);
    assert_eq!(outing.window(85).processes.len(), 0);
}

#[test]
fn two_processes_under_one_number_are_two() {
    let outing = measured(Node::of("pid-reuse"));
    let jobs = |second: u64, pid: i64| {
        let rows = outing.processes(second, pid);
        let jobs: Vec<String> = rows.iter().map(|row| row.slurm_job.as_ref().unwrap().to_string()).collect();
        let started: BTreeSet<_> = rows.iter().map(|row| row.started_at.get()).collect();
        assert_eq!(started.len(), rows.len(), "each has its own start");
        jobs
    };
    assert_eq!(jobs(25, 4201), ["211", "213"]);
    assert_eq!(jobs(45, 4202), ["214"]);
    assert_eq!(jobs(55, 4201), ["213", "215"], "one on each GPU");
}
