//! A simulated node: one scenario, one folder, and the collector that measures it in the scenario's own time.

use crate::output::Output;
use gpuledger_domain::time::Instant;
use gpuledger_nvml_sim::scenario::{Action, read};
use gpuledger_nvml_sim::world::World;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant as Wall};
use tempfile::TempDir;

/// Timelines are followed so long after their last step: two windows and what the last reading lags behind.
const AFTER_US: u64 = 25_000_000;
/// Ends fall on this grid, so that the last window is a whole one.
const WINDOW_US: u64 = 10_000_000;
/// A clock is set with the first call after the instant at which it is.
const SET_US: i64 = 15_000_000;
/// A run takes seconds; one that takes so long hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often a run that wants to be started anew is.
const STARTS: usize = 5;

/// A node with its timeline.
pub(crate) struct Node {
    world: Arc<World>,
    text: String,
    folder: TempDir,
    /// Further settings of the collector, TOML of the top level.
    settings: String,
    /// The ports are asked at the end.
    is_shown: bool,
    until_us: u64,
}

/// How one process of the collector ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code.
    pub(crate) code: i32,
    /// When, on the timeline.
    pub(crate) at_us: u64,
}

/// What the ports said at the end of the measuring.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// `/metrics`.
    pub(crate) metrics: String,
    /// `/readyz`: status line and body.
    pub(crate) ready: String,
}

/// A node that was measured.
pub(crate) struct Outing {
    pub(crate) world: Arc<World>,
    pub(crate) output: Output,
    pub(crate) ended: Vec<Ended>,
    pub(crate) shown: Option<Shown>,
    pub(crate) log: String,
    pub(crate) until_us: u64,
}

impl Node {
    /// The node of one of the simulator's scenarios, by name.
    pub(crate) fn of(name: &str) -> Self {
        let text = fs::read_to_string(scenarios().join(format!("{name}.yaml"))).unwrap();
        Self::new(&text)
    }

    /// The node of a scenario's text.
    pub(crate) fn new(text: &str) -> Self {
        let scenario = read(text, "scenario.yaml").unwrap_or_else(|fault| panic!("{fault}"));
        let world = World::new(scenario).unwrap_or_else(|fault| panic!("{fault}"));
        let until_us = end_of(&world);
        Self {
            world: Arc::new(world),
            text: text.to_owned(),
            folder: folder(),
            settings: String::new(),
            is_shown: false,
            until_us,
        }
    }

    /// Ends earlier or later than by itself.
    pub(crate) fn until(mut self, seconds: u64) -> Self {
        self.until_us = seconds * 1_000_000;
        self
    }

    /// Asks the metrics port at the end.
    pub(crate) fn shown(mut self) -> Self {
        self.is_shown = true;
        self
    }

    /// Adds settings.
    pub(crate) fn with(mut self, settings: &str) -> Self {
        self.settings.push_str(settings);
        self.settings.push('\n');
        self
    }

    /// A path in the folder of the node.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Measures to the end. A collector that asks for a new process gets one, as its supervisor would give it.
    pub(crate) fn measure(&self) -> Outing {
        self.prepare();
        let mut ended: Vec<Ended> = Vec::new();
        let mut shown = None;
        for _ in 0..STARTS {
            let mut child = self.start();
            if self.is_shown {
                shown = self.ask_ports(&mut child).or(shown);
            }
            let code = self.wait(&mut child);
            ended.push(Ended { code, at_us: self.now_us() });
            if code != 3 || self.now_us() >= self.until_us {
                break;
            }
        }
        let world = Arc::clone(&self.world);
        let log = self.log();
        let output = Output::read(&self.path("out/events.ndjson"), &log);
        Outing { world, output, ended, shown, log, until_us: self.until_us }
    }

    /// Measures for so many seconds of the machine's own time. A call that is delayed then really takes that long.
    pub(crate) fn really(&self, seconds: i64, settings: &str) -> Outing {
        self.prepare();
        let file = self.path("collector.toml");
        let lines = fs::read_to_string(&file).unwrap();
        let own = |line: &&str| !line.starts_with("clock_file") && !line.starts_with("call_deadline_ms");
        let kept: Vec<&str> = lines.lines().filter(own).collect();
        fs::write(&file, format!("{settings}\n{}\n", kept.join("\n"))).unwrap();
        #[expect(clippy::disallowed_methods, reason = "this node lives in real time")]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = Instant::from_micros(i64::try_from(since.as_micros()).unwrap());
        let log = File::create(self.path("log")).unwrap();
        let mut command = self.command();
        command.env_remove("NVML_SIM_CLOCK").env("NVML_SIM_START", now.as_micros().to_string());
        let until = now.plus(seconds * 1_000_000).to_string();
        let mut child = command.args(["run", "--until", &until]).stderr(log).spawn().unwrap();
        let code = self.wait(&mut child);
        let log = self.log();
        let output = Output::read(&self.path("out/events.ndjson"), &log);
        let world = Arc::clone(&self.world);
        Outing {
            world,
            output,
            ended: vec![Ended { code, at_us: 0 }],
            shown: None,
            log,
            until_us: self.until_us,
        }
    }

    fn prepare(&self) {
        fs::write(self.path("scenario.yaml"), &self.text).unwrap();
        fs::create_dir(self.path("proc")).unwrap();
        let mut clock = self.world.since_boot_us(0).to_le_bytes().to_vec();
        clock.extend_from_slice(&self.world.realtime_us(0).to_le_bytes());
        fs::write(self.path("clock"), clock).unwrap();
        let at = |name: &str| self.path(name).display().to_string();
        // A process whose ports are asked must not end before: nothing can be sent until there is a folder for it.
        if !self.is_shown {
            fs::create_dir(self.path("out")).unwrap();
        }
        let settings = format!(
            "node = \"{}\"\nnvml_library = \"{}\"\nproc_root = \"{}\"\nclock_file = \"{}\"\nmetrics_bind = \"127.0.0.1:0\"\n\
             pod_resources_socket = \"{}\"\ncall_deadline_ms = 60000\n{}\n[spool]\nfolder = \"{}\"\n\
             [publish]\nbackfill_per_second = 0\nfirst_pause_ms = 20\nlongest_pause_ms = 50\ndrain_ms = 60000\n[sink.file]\npath = \"{}\"\n",
            self.world.scenario().node,
            library().display(),
            at("proc"),
            at("clock"),
            at("kubelet.sock"),
            self.settings,
            at("spool"),
            at("out/events.ndjson"),
        );
        fs::write(self.path("collector.toml"), settings).unwrap();
    }

    /// The command line of the collector on this node.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger-collector"));
        command.arg("--config").arg(self.path("collector.toml"));
        command.env("NVML_SIM_SCENARIO", self.path("scenario.yaml"));
        command.env("NVML_SIM_CLOCK", self.path("clock"));
        command.env("NVML_SIM_PROC", self.path("proc"));
        command.env_remove("FAILPOINTS").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn start(&self) -> Child {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let until = Instant::from_micros(self.world.realtime_us(self.until_us)).to_string();
        self.command().args(["run", "--until", &until]).stderr(log).spawn().unwrap()
    }

    fn wait(&self, child: &mut Child) -> i32 {
        let begun = Wall::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            if begun.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("the collector hangs at {} us\n{}", self.now_us(), self.log());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Where the timeline stands.
    fn now_us(&self) -> u64 {
        let clock = fs::read(self.path("clock")).unwrap();
        let monotonic_us = u64::from_le_bytes(clock[..8].try_into().unwrap());
        monotonic_us - self.world.since_boot_us(0)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Once the time is over nothing is measured any more, and the board stands still.
    fn ask_ports(&self, child: &mut Child) -> Option<Shown> {
        let begun = Wall::now();
        while self.now_us() < self.until_us {
            if child.try_wait().unwrap().is_some() || begun.elapsed() > PATIENCE {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let log = self.log();
        let address = log.rsplit("metrics at http://").next()?.split('/').next()?.to_owned();
        let (metrics, ready) = (get(&address, "/metrics"), get(&address, "/readyz"));
        fs::create_dir(self.path("out")).unwrap();
        Some(Shown { metrics: metrics.split_once("\r\n\r\n")?.1.to_owned(), ready })
    }
}

impl Outing {
    /// The place of a GPU in the scenario.
    pub(crate) fn gpu(&self, uuid: &str) -> usize {
        let place = self.world.scenario().gpus.iter().position(|spec| spec.uuid == uuid);
        place.unwrap_or_else(|| panic!("no GPU is called {uuid}"))
    }

    /// The UUID of a GPU.
    pub(crate) fn uuid(&self, gpu: usize) -> &str {
        &self.world.scenario().gpus[gpu].uuid
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A whole window some time after the last step; by a clock that was set back, so late that no instant comes again after it.
fn end_of(world: &World) -> u64 {
    let effect_us = |action: &Action| match action {
        Action::Fail(fail) => fail.lasts.map_or(0, |span| span.0),
        Action::Delay(delay) => delay.lasts.map_or(0, |span| span.0),
        Action::WrongEcho(echo) => echo.lasts.map_or(0, |span| span.0),
        Action::GarbageRows(rows) => rows.lasts.map_or(0, |span| span.0),
        Action::ReloadDriver(reload) => reload.down.0,
        _ => 0,
    };
    let steps = world.scenario().timeline.iter().map(|step| step.at.0 + effect_us(&step.action));
    let mut end_us = (steps.max().unwrap_or(0) + AFTER_US).next_multiple_of(WINDOW_US);
    let edges: Vec<u64> = world.scenario().timeline.iter().map(|step| step.at.0).collect();
    let highest = |end_us: u64| {
        edges.iter().filter(|at| **at < end_us).map(|at| world.realtime_us(at.saturating_sub(1))).max()
    };
    while highest(end_us).is_some_and(|real_us| real_us + SET_US >= world.realtime_us(end_us)) {
        end_us += WINDOW_US;
    }
    end_us
}

fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libgpuledger_nvml_sim.so")
}

/// The simulator's scenarios.
pub(crate) fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("nvml-sim/scenarios")
}

/// A folder that is removed with the test; in memory where there is such a place.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
