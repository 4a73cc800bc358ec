//! The commands `probe`, `sample` and `run` as processes: what they print and how they end. On the simulator, in the time of a clock file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// An H100 with two instances, of which one works at half, and an A100 that is lost after a minute.
const SCENARIO: &str = r#"
name: commands
seed: 1
node: n1
start: "2026-10-01T00:00:00Z"
uptime: 1h
gpus:
- {uuid: GPU-aaaaaaaa-0000-4000-8000-000000000001, model: h100-80, mig: "on"}
- {uuid: GPU-aaaaaaaa-0000-4000-8000-000000000002, model: a100-40, mig: "off"}
timeline:
- at: 0s
  create_instance: {gpu: 0, profile: 3g.40gb, start: 4}
- at: 0s
  create_instance: {gpu: 0, profile: 1g.10gb, start: 0}
- at: 1s
  start:
    pid: 500
    cgroup: "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"
    "on": [{gpu: 0, gi: 1, memory: 5120MiB, sm: 50%}]
- at: 60s
  lose: {gpu: 1}
"#;

/// 2026-10-01T00:00:00Z.
const START_US: i64 = 1_790_812_800_000_000;

/// A simulated node in a folder of its own.
struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    /// At this second of its timeline.
    fn at(second: i64) -> Self {
        Self::of(SCENARIO, second)
    }

    /// Of another timeline.
    fn of(scenario: &str, second: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.yaml"), scenario).unwrap();
        fs::create_dir(folder.path().join("proc")).unwrap();
        let monotonic_us = u64::try_from((3_600 + second) * 1_000_000).unwrap();
        let real_us = START_US + second * 1_000_000;
        let clock = [monotonic_us.to_le_bytes(), real_us.to_le_bytes()].concat();
        fs::write(folder.path().join("clock"), clock).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn collector(&self, arguments: &[&str]) -> Output {
        let mut command = bare();
        command
            .env("NVML_SIM_SCENARIO", self.path("scenario.yaml"))
            .env("NVML_SIM_CLOCK", self.path("clock"))
            .env("NVML_SIM_PROC", self.path("proc"))
            .env("GPULEDGER_COLLECTOR_NODE", "n1")
            .env("GPULEDGER_COLLECTOR_NVML_LIBRARY", library())
            .env("GPULEDGER_COLLECTOR_CLOCK_FILE", self.path("clock"))
            .env("GPULEDGER_COLLECTOR_PROC_ROOT", self.path("proc"));
        command.args(arguments).output().unwrap()
    }
}

/// A node on the machine's clock, where a delay is a call that hangs.
struct Hanging {
    folder: tempfile::TempDir,
}

impl Hanging {
    /// From its beginning on this call hangs for a minute, which is for ever; on this GPU, or of the library.
    fn at(call: &str, gpu: Option<usize>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gpu = gpu.map_or_else(String::new, |gpu| format!("gpu: {gpu}, "));
        let delay = format!("- {{at: 0s, delay: {{call: {call}, {gpu}by: 60s}}}}\n");
        let scenario = SCENARIO.replace("timeline:\n", &format!("timeline:\n{delay}"));
        fs::write(folder.path().join("scenario.yaml"), scenario).unwrap();
        fs::create_dir(folder.path().join("proc")).unwrap();
        Self { folder }
    }

    fn collector(&self, arguments: &[&str]) -> Output {
        let path = |name: &str| self.folder.path().join(name);
        let began = Instant::now();
        let output = bare()
            .env("NVML_SIM_SCENARIO", path("scenario.yaml"))
            .env("NVML_SIM_PROC", path("proc"))
            .env("GPULEDGER_COLLECTOR_NODE", "n1")
            .env("GPULEDGER_COLLECTOR_NVML_LIBRARY", library())
            .env("GPULEDGER_COLLECTOR_PROC_ROOT", path("proc"))
            .env("GPULEDGER_COLLECTOR_CALL_DEADLINE_MS", "1000")
            .args(arguments)
            .output()
            .unwrap();
        assert!(began.elapsed() < Duration::from_secs(50), "it waited for what hangs");
        output
    }
}

/// The binary without settings from outside.
fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger-collector"));
    command.env_clear();
    command
}

/// The simulator, which is built into the folder of this test.
fn library() -> PathBuf {
    let file = std::env::current_exe().unwrap().with_file_name("libgpuledger_nvml_sim.so");
    assert!(file.is_file(), "{} is built with the tests of this package", file.display());
    file
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}{}", out(output), err(output)))
}

#[test]
fn probe_names_the_rung_of_each_reading() {
    let output = Node::at(10).collector(&["probe", "--format", "json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let rungs = |gpu: usize| -> Vec<String> {
        let readings = report["gpus"][gpu]["readings"].as_array().unwrap();
        readings
            .iter()
            .filter_map(|reading| {
                Some(format!("{}:{}", reading["reading"].as_str()?, reading["rung"].as_str()?))
            })
            .collect()
    };
    assert_eq!(rungs(0), ["gpu_sm:A", "instance_sm:A", "process_sm:G"]);
    assert_eq!(rungs(1), ["gpu_sm:D", "process_sm:C"]);
    assert_eq!(report["gpus"][0]["instances"][0]["placement"], "4:4");
}

#[test]
fn a_lost_gpu_is_named_and_the_answer_is_no() {
    let node = Node::at(90);
    for arguments in [&["probe"][..], &["sample", "--once"]] {
        let output = node.collector(arguments);
        assert!(out(&output).contains("GPU 1  cannot be read: lost\n"), "{}", out(&output));
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn gpus_that_cannot_be_read_are_in_the_json_too() {
    let output = Node::at(90).collector(&["sample", "--once", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["unreadable"], serde_json::json!([{"index": 1, "why": "lost"}]));
    let sound = Node::at(10).collector(&["sample", "--once", "--format", "json"]);
    assert_eq!(json(&sound)["unreadable"], serde_json::json!([]));
}

#[test]
fn one_instance_that_fails_makes_no_gpu_that_cannot_be_read() {
    let fail = "- {at: 5s, fail: {call: CALL, gpu: 0, gi: 1, returns: UNKNOWN}}\n- at: 60s";
    for (call, reading) in
        [("nvmlDeviceGetMemoryInfo_v2", "memory_byte_us"), ("nvmlGpmMigSampleGet", "sm_active_us")]
    {
        let node = Node::of(&SCENARIO.replace("- at: 60s", &fail.replace("CALL", call)), 10);
        let output = node.collector(&["sample", "--once", "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let sample = json(&output);
        assert_eq!(sample["unreadable"], serde_json::json!([]));
        let units = sample["units"].as_array().unwrap();
        let label = |unit: &Value| unit["quality"][reading].as_str().unwrap_or_default().to_owned();
        let failed: Vec<&Value> = units.iter().filter(|unit| label(unit) == "unavailable(unknown)").collect();
        assert_eq!(failed.len(), 1, "{sample}");
        assert_eq!(failed[0]["placement"]["start"], 4, "{sample}");
    }
}

/// A GPU without samples or memory for a second, and one that shares the memory of its host.
const OLD: &str = r#"
name: old
driver: {version: 550.54.15}
gpus:
- {uuid: GPU-aaaaaaaa-0000-4000-8000-000000000001, model: l40s}
- {uuid: GPU-aaaaaaaa-0000-4000-8000-000000000002, model: gb10, unreadable: {nvmlDeviceGetMemoryInfo: NOT_SUPPORTED, nvmlDeviceGetMemoryInfo_v2: NOT_SUPPORTED, nvmlGpmQueryDeviceSupport: NOT_SUPPORTED}}
timeline:
- {at: 0s, start: {pid: 500, "on": [{gpu: 0, memory: 256MiB, sm: 50%}]}}
- {at: 0s, start: {pid: 501, "on": [{gpu: 1, memory: 1GiB, memory_unknown: true, sm: 40%}]}}
- {at: 5s, stop: {pid: 500}}
"#;

#[test]
fn probe_advises_what_helps_on_this_driver_and_this_gpu() {
    let report = json(&Node::of(OLD, 2).collector(&["probe", "--format", "json"]));
    let reading = |gpu: usize, word: &str| {
        let readings = report["gpus"][gpu]["readings"].as_array().unwrap();
        readings.iter().find(|reading| reading["reading"] == word).unwrap().clone()
    };
    let of_process = reading(0, "process_sm");
    assert_eq!(of_process["refused"][0]["why"], "no_function", "{of_process}");
    assert_eq!(reading(0, "process_memory")["quality"], "point_gauge");
    let memory = reading(1, "process_memory");
    assert_eq!(memory["quality"], "unavailable(not_reported)", "{memory}");
    let gpm = reading(1, "gpu_sm")["refused"][0].clone();
    assert_eq!(gpm["why"], "not_supported");
    assert!(!gpm["advice"].as_str().unwrap().contains("newer"), "it is newer than Hopper: {gpm}");
}

#[test]
fn no_memory_is_shown_above_the_most_that_was_seen() {
    // When its process ends, the ring of an idle GPU has no samples: time is known for less than memory is.
    let node = Node::of(OLD, 4);
    let sample = json(&node.collector(&["sample", "--once", "--format", "json"]));
    let unit = &sample["units"][0];
    let number = |member: &str| unit[member].as_u64().unwrap();
    let covered = unit["coverage"]["memory_byte_us"].as_u64().unwrap_or(number("covered_us"));
    assert!(number("memory_byte_us") / covered <= number("memory_bytes_max"), "{unit}");
    assert!(number("covered_us") < covered, "this case is about readings that cover different times: {unit}");
    let text = out(&Node::of(OLD, 2).collector(&["sample", "--once"]));
    assert!(text.contains("256.0 MiB"), "{text}");
}

#[test]
fn a_gpu_that_hangs_is_named_and_the_others_are_probed() {
    let node = Hanging::at("nvmlDeviceGetMigMode", Some(1));
    let output = node.collector(&["probe", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let report = json(&output);
    assert_eq!(report["gpus"][1]["unreadable"], "timed_out");
    assert_eq!(report["gpus"][0]["unreadable"], Value::Null);
    assert_eq!(report["gpus"][0]["readings"][1]["rung"], "A");
    let table = node.collector(&["probe"]);
    assert!(out(&table).contains("GPU 1  cannot be read: timed_out\n"), "{}", out(&table));
}

#[test]
fn a_gpu_that_hangs_ends_sampling_and_the_others_are_in_the_sample() {
    let node = Hanging::at("nvmlDeviceGetMigMode", Some(1));
    // Without --once: a further sample would leave another thread behind.
    let output = node.collector(&["sample", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("GPU 1 cannot be read: timed_out"), "{}", err(&output));
    let sample = json(&output);
    assert_eq!(sample["unreadable"], serde_json::json!([{"index": 1, "why": "timed_out"}]));
    let units = sample["units"].as_array().unwrap();
    let of =
        |uuid_end: char| units.iter().filter(move |unit| unit["gpu"].as_str().unwrap().ends_with(uuid_end));
    assert!(
        of('1').all(|unit| unit["covered_us"].as_u64() > Some(1_900_000)),
        "two periods are whole: {sample}"
    );
    let active = |unit: &Value| unit["sm_active_us"].as_u64().is_some();
    assert!(of('1').all(active), "they are measured as if the other were not there: {sample}");
    assert!(of('2').all(|unit| unit["quality"]["sm_active_us"] == "unavailable(timed_out)"), "{sample}");
    assert_eq!(of('2').count(), 1);
    let gap = "timed_out(GPU-aaaaaaaa-0000-4000-8000-000000000002)";
    assert!(sample["gaps"].as_array().unwrap().iter().any(|told| told["reason"] == gap), "{sample}");
}

#[test]
fn a_library_that_hangs_is_out_of_reach() {
    let node = Hanging::at("nvmlDeviceGetCount_v2", None);
    for arguments in [&["probe"][..], &["sample", "--once"]] {
        let output = node.collector(arguments);
        assert_eq!(output.status.code(), Some(3), "{}", err(&output));
        assert!(err(&output).contains("it has not counted its GPUs after 1s"), "{}", err(&output));
    }
}

#[test]
fn sample_measures_what_the_timeline_says() {
    let output = Node::at(10).collector(&["sample", "--once", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let sample = json(&output);
    let units = sample["units"].as_array().unwrap();
    let of = |start: u64| units.iter().find(|unit| unit["placement"]["start"] == start).unwrap();
    assert_eq!(
        (of(4)["sm_active_us"].as_u64(), of(4)["covered_us"].as_u64()),
        (Some(1_000_000), Some(2_000_000))
    );
    assert_eq!(of(0)["sm_active_us"].as_u64(), Some(0), "measured, and idle");
    let process = &sample["processes"][0];
    assert_eq!((process["pid"].as_u64(), process["slurm_job"].as_str()), (Some(500), Some("4711")));
    let idle = units.iter().find(|unit| unit["gpu"].as_str().is_some_and(|gpu| gpu.ends_with('2'))).unwrap();
    assert_eq!(idle["sm_active_us"].as_u64(), Some(0), "{idle}");
}

#[test]
fn a_sample_does_not_cross_a_minute() {
    let output = Node::at(58).collector(&["sample", "--once", "--format", "json"]);
    let sample = json(&output);
    assert_eq!(sample["start"], "2026-10-01T00:01:00Z", "it waits for the next one");
}

#[test]
fn without_a_library_a_dependency_is_out_of_reach() {
    let output =
        bare().env("GPULEDGER_COLLECTOR_NVML_LIBRARY", "/nonexistent/nvml.so").arg("probe").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(err(&output).contains("/nonexistent/nvml.so"), "{}", err(&output));
}

#[test]
fn wrong_settings_are_wrong_usage_and_all_are_named() {
    let output = bare()
        .env("GPULEDGER_COLLECTOR_SAMPLE_PERIOD_MS", "soon")
        .env("GPULEDGER_COLLECTOR_SPOOL__FOLDR", "/x")
        .arg("probe")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    for key in ["GPULEDGER_COLLECTOR_SAMPLE_PERIOD_MS: ", "GPULEDGER_COLLECTOR_SPOOL__FOLDR: "] {
        assert!(err(&output).contains(key), "{key} is not in {}", err(&output));
    }
}

#[test]
fn a_run_without_a_sink_is_wrong_usage() {
    let output = Node::at(0).collector(&["run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("[sink.kafka]"), "{}", err(&output));
}

#[test]
fn wrong_arguments_are_wrong_usage_and_help_is_none() {
    assert_eq!(bare().arg("sampel").output().unwrap().status.code(), Some(2));
    assert_eq!(bare().arg("--help").output().unwrap().status.code(), Some(0));
}
