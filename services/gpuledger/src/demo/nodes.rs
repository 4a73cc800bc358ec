//! Two simulated nodes: the day's scenario for the NVML simulator, a clock file, and a real collector on each, as a process of its own.
//! However the demo ends, its collectors end with it: a shell beside each holds the other end of a pipe.

use super::address::Address;
use super::day::allocator::Plan;
use super::day::fleet::{NODES, Node};
use super::day::{OVER, scenario::scenario};
use super::day_clock::DayClock;
use super::folder::Folder;
use super::way::Way;
use crate::outcome::OutOfReach;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The node agent.
const COLLECTOR: &str = "gpuledger-collector";
/// The simulator it loads in place of the driver's library.
const SIMULATOR: &str = "libgpuledger_nvml_sim.so";
/// Seconds between two samples: as far apart as the driver's rings allow without a gap.
pub(crate) const SAMPLE_SECONDS: u64 = 10;
/// Milliseconds that a call to the simulator may take: a machine that is busy with other things is no GPU that hangs.
const DEADLINE_MS: u64 = 60_000;
/// Seconds of a window of telemetry.
pub(crate) const WINDOW_SECONDS: u64 = 60;
/// Runs the collector as long as standard input is open, and ends as it does. Where the input closes first there is nobody left to whom it could
/// send: it is killed.
const KEEP: &str = r#"exec 3<&0
"$@" </dev/null 3<&- & collector=$!
{ read -r word <&3; kill -9 "$collector"; } & lifeline=$!
wait "$collector"; ended=$?
kill "$lifeline"
exit "$ended""#;

/// The programs a simulated node is made of.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    collector: PathBuf,
    simulator: PathBuf,
}

/// A node and its collector.
struct Running {
    node: &'static Node,
    /// The shell that keeps it. Its input is the lifeline.
    keeper: Child,
    log: PathBuf,
    /// The simulator's procfs: of no use once it has ended.
    proc_root: PathBuf,
    is_over: bool,
}

/// All nodes. Dropping them ends their collectors.
pub(crate) struct Nodes {
    all: Vec<Running>,
}

impl Programs {
    /// Looks beside the running program, then in `target/debug` below the working folder.
    ///
    /// # Errors
    /// [`OutOfReach`] names what is missing and how to build it.
    pub(crate) fn find() -> Result<Self> {
        let own = std::env::current_exe().context("where this program lies")?;
        let beside = own.parent().unwrap_or(Path::new("."));
        let folders = [beside, Path::new("target/debug")];
        let program = |name: &str| {
            let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
                OutOfReach(format!(
                    "there is no {name} beside {} nor in target/debug: cargo build -p gpuledger-collector -p gpuledger-nvml-sim",
                    own.display()
                ))
            })
        };
        Ok(Self { collector: program(COLLECTOR)?, simulator: program(SIMULATOR)? })
    }
}

/// Where the clock of each node lies.
///
/// # Errors
/// A folder cannot be made.
pub(crate) fn clock(folder: &Folder) -> Result<DayClock> {
    let file = |node: &Node| -> Result<PathBuf> {
        let home = home(folder, node);
        std::fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
        Ok(home.join("clock"))
    };
    DayClock::start(NODES.iter().map(file).collect::<Result<_>>()?)
}

fn home(folder: &Folder, node: &Node) -> PathBuf {
    folder.path().join("nodes").join(node.name)
}

impl Nodes {
    /// Starts a collector on each node.
    ///
    /// # Errors
    /// A file cannot be written, or a process not be started.
    pub(crate) fn start(
        programs: &Programs,
        folder: &Folder,
        plan: &Plan,
        way: &Way,
        address: &Address,
    ) -> Result<Self> {
        let mut nodes = Self { all: Vec::new() };
        for node in &NODES {
            nodes.all.push(start(programs, folder, plan, way, address, node)?);
        }
        Ok(nodes)
    }

    /// Whether any collector still runs.
    ///
    /// # Errors
    /// One ended otherwise than well; the last thing it said.
    pub(crate) fn run_on(&mut self) -> Result<bool> {
        for running in self.all.iter_mut().filter(|running| !running.is_over) {
            let Some(status) = running.keeper.try_wait().context("waiting for a collector")? else {
                continue;
            };
            if !status.success() {
                let said = std::fs::read_to_string(&running.log).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing");
                let log = running.log.display();
                bail!("the collector of node {} ended with {status}: {last} ({log})", running.node.name);
            }
            running.is_over = true;
        }
        Ok(self.all.iter().any(|running| !running.is_over))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let ended = self.keeper.wait();
        let removed = std::fs::remove_dir_all(&self.proc_root);
        tracing::debug!(?ended, ?removed, node = self.node.name, "the collector has ended");
    }
}

fn start(
    programs: &Programs,
    folder: &Folder,
    plan: &Plan,
    way: &Way,
    address: &Address,
    node: &'static Node,
) -> Result<Running> {
    let home = home(folder, node);
    let file = |name: &str, text: &str| -> Result<PathBuf> {
        folder.write(&format!("nodes/{}/{name}", node.name), text)
    };
    let scenario = file("scenario.yaml", &scenario(plan, node))?;
    let sink = match way {
        Way::Kafka(kafka) => format!(
            "[sink.kafka]\nbootstrap = {:?}\ntopic_prefix = {:?}\n",
            kafka.bootstrap, kafka.topic_prefix
        ),
        Way::Http => {
            let token = file("token", &address.node_token(node.name)?)?;
            format!("[sink.http]\nurl = \"{}\"\ntoken_file = {token:?}\n", address.url())
        }
    };
    let settings = file("collector.toml", &settings(programs, &home, node, &sink))?;
    let log = home.join("collector.log");
    let said = File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = Command::new("sh");
    command.args(["-c", KEEP, "keeper"]).arg(&programs.collector);
    command.args(["run", "--config"]).arg(settings).args(["--until", &OVER.to_string()]);
    // Nothing of the user's own settings reaches it.
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.env("NVML_SIM_SCENARIO", scenario).env("NVML_SIM_CLOCK", home.join("clock"));
    command.env("NVML_SIM_PROC", home.join("proc"));
    // A group of its own: Ctrl-C reaches the demo only.
    command.process_group(0).stdin(Stdio::piped()).stdout(said.try_clone()?).stderr(said);
    let keeper = command.spawn().context("starting a collector")?;
    Ok(Running { node, keeper, log, proc_root: home.join("proc"), is_over: false })
}

fn settings(programs: &Programs, home: &Path, node: &Node, sink: &str) -> String {
    let Programs { simulator, .. } = programs;
    let (clock, proc_root, spool) = (home.join("clock"), home.join("proc"), home.join("spool"));
    format!(
        r#"node = "{}"
nvml_library = {simulator:?}
proc_root = {proc_root:?}
clock_file = {clock:?}
sample_period_ms = {}
window_seconds = {WINDOW_SECONDS}
call_deadline_ms = {DEADLINE_MS}
metrics_bind = "127.0.0.1:0"
pod_resources_socket = {:?}

[spool]
folder = {spool:?}
sync = "never"

[publish]
batch_records = 500
backfill_per_second = 0
drain_ms = 120000

{sink}"#,
        node.name,
        SAMPLE_SECONDS * 1000,
        home.join("no-kubelet.sock"),
    )
}
