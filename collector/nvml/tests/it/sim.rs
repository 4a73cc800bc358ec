//! A simulated node for one test.
//!
//! The library takes its scenario from the environment and has one state a process. So a test runs itself again, alone in a process of its own
//! with that environment, and the case runs there.

use gpuledger_nvml::{Clock, Driver, Gpu, Nvml};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "NVML_TEST_FOLDER";
/// The simulator's defaults: up for an hour at 2026-10-01T00:00:00Z.
const UPTIME_US: u64 = 3_600_000_000;
const START_US: i64 = 1_790_812_800_000_000;

pub(crate) const GPU: &str = "GPU-11111111-0000-0000-0000-000000000001";
pub(crate) const OTHER: &str = "GPU-22222222-0000-0000-0000-000000000002";

/// A timeline on which nothing happens.
pub(crate) const NOTHING: &str = "  []";

/// Runs the case on the node of a scenario. `test` is the path of the test that calls this.
pub(crate) fn on(test: &str, scenario: &str, case: impl FnOnce(&Sim)) {
    match std::env::var_os(FOLDER) {
        Some(folder) => case(&Sim { clock: open(Path::new(&folder)) }),
        None => again(test, scenario),
    }
}

fn again(test: &str, scenario: &str) {
    gpuledger_nvml_sim::scenario::read(scenario, test).expect("a scenario without a fault");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("scenario.yaml"), scenario).expect("a scenario");
    std::fs::write(path("clock"), instant(0)).expect("a clock");
    let done = Command::new(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder.path())
        .env("NVML_SIM_SCENARIO", path("scenario.yaml"))
        .env("NVML_SIM_CLOCK", path("clock"))
        .env("NVML_SIM_RECORD", path("record"))
        .output()
        .expect("the test again");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "no test has the path {test}\n{out}");
}

fn open(folder: &Path) -> File {
    File::options().read(true).write(true).open(folder.join("clock")).expect("the clock")
}

fn instant(us: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let real = START_US + i64::try_from(us).expect("in range");
    bytes[..8].copy_from_slice(&(UPTIME_US + us).to_le_bytes());
    bytes[8..].copy_from_slice(&real.to_le_bytes());
    bytes
}

/// The node, with its clock.
pub(crate) struct Sim {
    clock: File,
}

impl Sim {
    /// The simulator, as a driver's library.
    pub(crate) fn library() -> PathBuf {
        let tests = std::env::current_exe().expect("the test's own path");
        tests.with_file_name("libgpuledger_nvml_sim.so")
    }

    pub(crate) fn nvml(&self) -> Nvml {
        Nvml::load(Some(&Self::library())).expect("the simulator")
    }

    /// The first GPU.
    pub(crate) fn gpu(&self) -> Box<dyn Gpu> {
        self.nvml().gpu(0).expect("a GPU")
    }

    /// Sets the clock to so long after the scenario's start.
    pub(crate) fn at_ms(&self, ms: u64) {
        self.clock.write_all_at(&instant(ms * 1_000), 0).expect("the clock");
    }

    /// The instant so long after the start, by the driver's clock, which counts Unix time.
    pub(crate) fn driver_us(ms: u64) -> u64 {
        u64::try_from(START_US).expect("in range") + ms * 1_000
    }

    /// What was called so far, a line a call.
    pub(crate) fn calls() -> String {
        std::fs::read_to_string(std::env::var("NVML_SIM_RECORD").expect("set by the test")).expect("a record")
    }
}

impl Clock for Sim {
    fn monotonic_us(&self) -> u64 {
        let mut bytes = [0; 16];
        self.clock.read_exact_at(&mut bytes, 0).expect("the clock");
        u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
    }
}

/// One H100 with MIG off, and what happens.
pub(crate) fn h100(timeline: &str) -> String {
    node("580.105.08", "h100-80", timeline)
}

/// One GPU under a driver.
pub(crate) fn node(driver: &str, model: &str, timeline: &str) -> String {
    format!(
        "name: test\ndriver: {{version: {driver}}}\ngpus: [{{uuid: {GPU}, model: {model}}}]\ntimeline:\n{timeline}\n"
    )
}

/// One GPU with MIG on.
pub(crate) fn mig(driver: &str, model: &str, timeline: &str) -> String {
    format!(
        "name: test\ndriver: {{version: {driver}}}\ngpus: [{{uuid: {GPU}, model: {model}, mig: on}}]\ntimeline:\n{timeline}\n"
    )
}
