//! Accounting.

use crate::sim::{GPU, on};
use gpuledger_nvml::Absent;

fn node(driver: &str) -> String {
    format!(
        "name: test\ndriver: {{version: {driver}}}\ngpus: [{{uuid: {GPU}, model: a100-80, accounting: true}}]\ntimeline:\n\
         - {{at: 0s, start: {{pid: 10, on: [{{gpu: 0, sm: 40%, memory: 1GiB}}]}}}}\n\
         - {{at: 0s, start: {{pid: 11, on: [{{gpu: 0, sm: 20%, memory: 2GiB}}]}}}}\n\
         - {{at: 10s, stop: {{pid: 11}}}}\n"
    )
}

#[test]
fn processes_are_known_beyond_their_end() {
    on("accounting::processes_are_known_beyond_their_end", &node("550.54.15"), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(20_000);
        assert_eq!(gpu.is_accounting_on(), Ok(true));
        let mut pids = gpu.accounting_pids().expect("pids");
        pids.sort_unstable();
        assert_eq!(pids, [10, 11]);
        let (running, ended) =
            (gpu.accounting_stats(10).expect("stats"), gpu.accounting_stats(11).expect("stats"));
        assert_eq!((running.is_running, running.gpu_percent, running.time_ms), (true, Some(40), 0));
        assert_eq!((ended.is_running, ended.gpu_percent, ended.time_ms), (false, Some(20), 10_000));
        assert_eq!(ended.memory_bytes_max, Some(2 << 30));
        assert_eq!(gpu.accounting_stats(12), Err(Absent::NotFound));
    });
}

#[test]
fn counters_grow_with_the_samples() {
    on("accounting::counters_grow_with_the_samples", &node("610.11"), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        let before = gpu.accounting_counters(10).expect("counters");
        sim.at_ms(15_000);
        let after = gpu.accounting_counters(10).expect("counters");
        assert_eq!(after.samples - before.samples, 10);
        assert_eq!(after.gpu_percent_hundredths - before.gpu_percent_hundredths, 10 * 4_000);
        assert_eq!(after.start_us, before.start_us);
        assert!(!gpu.accounting_counters(11).expect("counters").is_running);
    });
}

#[test]
fn counters_of_older_drivers_are_no_function() {
    on("accounting::counters_of_older_drivers_are_no_function", &node("590.44"), |sim| {
        assert_eq!(sim.gpu().accounting_counters(10), Err(Absent::NoFunction));
    });
}
