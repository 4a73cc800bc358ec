//! The process that is killed: it offers windows to its spool as fast as it takes them, and sends them to a sink.

use crate::truth;
use gpuledger_collector::publish::{PublishSettings, Publisher};
use gpuledger_collector::sink::{AnySink, FileSettings, HttpSettings, SinkSettings};
use gpuledger_collector::spool::{Spool, SpoolSettings, Sync};
use gpuledger_domain::time::Instant;
use gpuledger_messaging::KafkaSettings;
use gpuledger_wire::EventData;
use gpuledger_wire::bodies::NodeDecommissioned;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tokio_util::sync::CancellationToken;

/// What a child does.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) folder: PathBuf,
    /// `http URL`, `file PATH` or `kafka BOOTSTRAP PREFIX`.
    pub(crate) sink: String,
    /// First window, and how many.
    pub(crate) from: i64,
    pub(crate) count: i64,
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The last window it offered.
    pub(crate) offered: Option<i64>,
    /// Records it left in the spool, where it got that far.
    pub(crate) left: Option<u64>,
}

impl Ended {
    pub(crate) fn killed(&self) -> bool {
        self.status.signal().is_some()
    }
}

/// This binary as a child that runs the test of this name.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.stdout(Stdio::piped());
    command
}

impl Task {
    /// Runs a child to its end. `failpoints` as in `FAILPOINTS`; with `kill_after`, it is killed once it has offered so many windows.
    pub(crate) fn run(&self, failpoints: &str, kill_after: Option<i64>) -> Ended {
        let mut command = command("child::child");
        command.env("FAILPOINTS", failpoints).env("DELIVERY_FOLDER", &self.folder);
        command.env("DELIVERY_SINK", &self.sink);
        command.env("DELIVERY_FROM", self.from.to_string()).env("DELIVERY_COUNT", self.count.to_string());
        if !failpoints.is_empty() {
            // An abort on purpose says nothing that anybody wants to read.
            command.stderr(Stdio::null());
        }
        let mut child = command.spawn().unwrap();
        let mut ended = Ended { status: ExitStatus::default(), offered: None, left: None };
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if let Some(n) = line.strip_prefix("offer ") {
                let n = n.parse().unwrap();
                ended.offered = Some(n);
                if kill_after.is_some_and(|after| n - self.from == after) {
                    child.kill().unwrap();
                }
            }
            if let Some(left) = line.strip_prefix("left ") {
                ended.left = Some(left.parse().unwrap());
            }
        }
        ended.status = child.wait().unwrap();
        ended
    }
}

fn given(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // libtest has written the begin of a line.
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

pub(crate) fn spool(folder: &Path, max_bytes: u64) -> Spool {
    let settings =
        SpoolSettings { folder: folder.to_owned(), max_bytes, segment_bytes: 4 << 10, sync: Sync::Each };
    Spool::open(settings, truth::name("n1")).unwrap()
}

pub(crate) fn impatient() -> PublishSettings {
    PublishSettings {
        batch_records: 4,
        batch_bytes: 64 << 10,
        backfill_per_second: 0,
        first_pause_ms: 2,
        longest_pause_ms: 20,
        drain_ms: 30_000,
    }
}

pub(crate) fn sink(text: &str) -> AnySink {
    let words: Vec<&str> = text.split(' ').collect();
    let settings = match words[..] {
        ["http", url] => SinkSettings::Http(HttpSettings {
            url: url.to_owned(),
            token_file: None,
            ca_file: None,
            timeout_seconds: 5,
        }),
        ["file", path] => SinkSettings::File(FileSettings { path: path.into() }),
        ["kafka", bootstrap, prefix] => {
            let mut kafka = KafkaSettings::plaintext(bootstrap);
            kafka.topic_prefix = prefix.to_owned();
            SinkSettings::Kafka(kafka)
        }
        _ => panic!("no sink: {text}"),
    };
    AnySink::new(settings).unwrap()
}

#[test]
#[ignore = "not a test: the process that the others kill"]
fn child() {
    let Some(folder) = given("DELIVERY_FOLDER") else { return };
    let _failpoints = fail::FailScenario::setup();
    let spool = spool(Path::new(&folder), 4 << 20);
    let publisher = Publisher::new(spool.clone(), sink(&given("DELIVERY_SINK").unwrap()), impatient());
    let (from, count): (i64, i64) =
        (given("DELIVERY_FROM").unwrap().parse().unwrap(), given("DELIVERY_COUNT").unwrap().parse().unwrap());
    let stop = CancellationToken::new();
    let appending = std::thread::spawn({
        let stop = stop.clone();
        move || {
            offer(&spool, from, count);
            stop.cancel();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let drained = runtime.block_on(publisher.run(stop));
    appending.join().unwrap();
    say(&format!("left {}", drained.left));
}

/// Keeps windows, and a fact with each fifth.
fn offer(spool: &Spool, from: i64, count: i64) {
    for n in from..from + count {
        say(&format!("offer {n}"));
        spool.append_window(truth::window(n)).unwrap();
        if n % 5 == 0 {
            let fact = EventData::from(NodeDecommissioned::Gpu(truth::name(&format!("GPU-{n}"))));
            spool.append_fact(Instant::from_micros(n * truth::STEP_US), fact).unwrap();
        }
    }
}
