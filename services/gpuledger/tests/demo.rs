//! `gpuledger demo`, run as a person runs it: on the built-in day by HTTP and by Kafka, and on a file; kept and killed.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests are tests too")]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A demo whose temporary files lie in `home`. The user's database is named and out of reach: nobody may ask for it.
fn demo(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.arg("demo").args(arguments).current_dir(home).stdin(Stdio::null());
    command.env("TMPDIR", home).env("DATABASE_URL", "postgres://nobody:none@127.0.0.1:1/users");
    command.env_remove("GPULEDGER_NOW").env_remove("GPULEDGER_CONFIG").env_remove("KAFKA_BOOTSTRAP");
    command
}

/// Runs it to its end. None, said aloud, where there is nothing to try it on.
fn run(home: &Path, arguments: &[&str]) -> Option<Output> {
    finished(demo(home, arguments).output().unwrap())
}

/// None where no `PostgreSQL` is installed, or the collector or its simulator was not built.
fn finished(output: Output) -> Option<Output> {
    let said = text(&output.stderr);
    if output.status.code() == Some(3) && is_missing(&said) {
        eprintln!("SKIPPED: {said}");
        return None;
    }
    Some(output)
}

fn is_missing(said: &str) -> bool {
    said.contains("no PostgreSQL") || said.contains("cargo build -p gpuledger-collector")
}

/// The broker of this checkout, started where it does not run; none, said aloud, where it cannot be.
fn broker() -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/local/kafka.sh");
    let output = Command::new(script).arg("start").stdin(Stdio::null()).output().unwrap();
    let address = text(&output.stdout).lines().last().map(str::to_owned);
    if address.is_none() {
        eprintln!("SKIPPED: {}", text(&output.stderr));
    }
    address
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What it prints, where it ends well.
fn printed(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status);
    out
}

/// Each line with its columns set apart by one blank.
fn lines(printed: &str) -> Vec<String> {
    printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn assert_line(printed: &str, start: &str) {
    assert!(
        lines(printed).iter().any(|line| line.starts_with(start)),
        "no line begins with {start:?} in\n{printed}"
    );
}

/// The word after `key` in what was printed.
fn after<'t>(printed: &'t str, key: &str) -> &'t str {
    let rest = printed.split_once(key).unwrap_or_else(|| panic!("no {key:?} in\n{printed}")).1;
    rest.split([',', ' ', '\n', '\'']).next().unwrap()
}

fn port(printed: &str) -> u16 {
    after(printed, "on 127.0.0.1:").parse().unwrap()
}

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Bills by their file names.
fn bills(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder.join("bills")).unwrap().map(|entry| entry.unwrap());
    let mut bills: Vec<(String, String)> = entries
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    bills.sort();
    bills
}

/// Stops a kept server however the test ends.
struct Stop(String);

impl Drop for Stop {
    fn drop(&mut self) {
        let stopped = Command::new("sh").args(["-c", &self.0]).stdout(Stdio::null()).status();
        assert!(std::thread::panicking() || stopped.unwrap().success(), "{}", self.0);
    }
}

#[test]
fn the_built_in_day_comes_out_as_planned_and_the_same_by_http_and_by_kafka() {
    let home = tempfile::tempdir().unwrap();
    let Some(output) = run(home.path(), &[]) else { return };
    let by_http = printed(&output);
    assert_line(&by_http, "✓ events go by HTTP to the demo's own API: no KAFKA_BOOTSTRAP");
    check_day(&by_http);
    assert!(!listens(port(&by_http)), "the database is gone");
    let folder = PathBuf::from(after(&by_http, "\nhere      "));
    assert!(folder.starts_with(home.path().canonicalize().unwrap()), "{}", folder.display());
    let pages = bills(&folder);
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["GC-2026-0001.html", "GC-2026-0002.html", "GC-2026-0003.html"]);
    assert!(pages[1].1.contains("224.60") && pages[1].1.contains("Bolt, Inc."));

    let mut kept = demo(home.path(), &["--keep", "kept"]);
    if let Some(broker) = broker() {
        kept.env("KAFKA_BOOTSTRAP", broker);
    }
    let again = printed(&kept.output().unwrap());
    check_day(&again);
    goes_on(home.path(), &again);
    assert_eq!(without_digest(pages), without_digest(bills(&home.path().join("kept"))));
}

/// The names of the nodes' own facts are drawn for each run, and with them the digest of all facts; the rest is the same, byte for byte.
fn without_digest(pages: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_digest = |line: &str| line.trim_start().starts_with("<p class=\"mono\">");
    let rest = |page: String| page.lines().filter(|line| !is_digest(line)).collect::<Vec<_>>().join("\n");
    pages.into_iter().map(|(name, page)| (name, rest(page))).collect()
}

/// What was kept is an ordinary database.
fn goes_on(home: &Path, printed_before: &str) {
    let stop =
        Stop(printed_before.lines().find_map(|line| line.strip_prefix("stop      ")).unwrap().to_owned());
    let url = after(printed_before, "DATABASE_URL='");
    let mut verify = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    let verdict =
        verify.args(["ledger", "verify"]).current_dir(home).env("DATABASE_URL", url).output().unwrap();
    assert!(printed(&verdict).contains("the ledger holds: 16 GPUs"));
    drop(stop);
    assert!(!listens(port(printed_before)));
    if home.join("kept/postgres").exists() {
        let again = demo(home, &["--keep", "kept"]).output().unwrap();
        assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
        assert!(text(&again.stderr).contains("earlier demo"));
    } else {
        // Root's server runs as another user, who cannot reach a private folder: its data lie elsewhere.
        let elsewhere = PathBuf::from(after(printed_before, "database  "));
        std::fs::remove_dir_all(elsewhere).unwrap();
    }
}

/// Two nodes of eight GPUs for 24 hours are 384 GPU hours. By memory slices: bolt 80 whole A100, 18 + 12 whole H100, half an H100 for 10 hours, half
/// an A100 for 20, half of one for 14; cora 6 whole H100, half an A100 for 12 and 4 hours, an eighth for 9, a quarter of an H100 for 8, and 36
/// seconds. acme is charged what its four H100 were but for the time in which one of them was lost, by a sample more or less.
fn check_day(printed: &str) {
    for row in [
        "bolt 132.000",
        "cora 17.135",
        "maintenance 2.000 2.000 0.5 %",
        "all 384.000 384.000 100.0 %",
        "✓ adds up to the capacity of 16 GPUs, 384.000 GPU h",
        "✓ the ledger holds: 16 GPUs",
        "found out by the collectors alone: the devices of 17 holds, and 2 states of GPUs",
        // A process on each of four GPUs for 20 h less 25 s at 94 %, with nine checkpoints of 3 min at 11 %, and 5 % in its first 2 min.
        "bolt a100-sxm4-80gb 80.000 100.0 % 73.56",
        "acme a100-sxm4-80gb/2g.20gb 5.000 99.9 % n/a n/a 14.0 unavailable(not_supported)",
        "cora h100-80gb-hbm3 6.000 0.0 % – – – no process was ever there",
        "nothing counts twice: 39 repeated, 1 new. The late release takes 4.000 h off",
        // 80 × 1.30 + 30 × 2.60 + 10 × 1.20 + 20 × 0.90 + 7 × 1.80.
        "GC-2026-0002 bolt 2026-10 224.60 – 224.60 USD issued",
        // 6 × 380 + 12 × 110 + 4 × 120 + 9 × 30 + 2 × 270 + a minute of 250 an hour, rounded to 4; 10 % of 4894 is 489.4.
        "GC-2026-0003 cora 2026-10 4894 489 5383 JPY issued",
    ] {
        assert_line(printed, row);
    }
}

const EVENTS: &str = r#"{"specversion":"1.0","id":"1","source":"/allocators/a","type":"gpuledger.allocation.granted.v1","time":"2025-03-01T00:00:00Z","data":{"allocation":"a-1","tenant":"zoo","units":[{"sku":"h100","count":2}],"mode":"exclusive","class":"on_demand"}}
this is no event
{"specversion":"1.0","id":"2","source":"/allocators/a","type":"gpuledger.allocation.released.v1","time":"2025-04-01T06:00:00Z","data":{"allocation":"a-1"}}
"#;

#[test]
fn a_file_of_events_is_billed_for_every_month_that_is_over() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("own.ndjson"), EVENTS).unwrap();
    let Some(output) = run(home.path(), &["--from", "events", "own.ndjson", "--price", "h100=2.50"]) else {
        return;
    };
    let out = printed(&output);
    // 2 GPUs for 31 days and for 6 hours, at 2.50.
    assert_line(&out, "DEMO-0001 zoo 2025-03 3720.00 – 3720.00 USD issued");
    assert_line(&out, "DEMO-0002 zoo 2025-04 30.00 – 30.00 USD issued");
    assert_line(&out, "warning bad_value");
    assert!(out.contains("own.ndjson:2"), "the bad line is named\n{out}");

    let without = printed(&run(home.path(), &["--from", "events", "own.ndjson"]).unwrap());
    assert_line(&without, "– zoo 2025-03 0.00 – 0.00 USD draft");
    assert!(without.contains("say --price 'h100=2.40'"), "{without}");
}

#[test]
fn a_file_without_any_use_says_so() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("own.ndjson"), "{}\n").unwrap();
    let Some(output) = run(home.path(), &["--from", "events", "own.ndjson"]) else { return };
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing in the file says") && said.contains("bad_value"), "{said}");
}

/// Collectors, and the shells that keep them, whose settings lie below a folder.
fn collectors(home: &Path) -> Vec<String> {
    let home = home.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok());
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let is_one =
        |line: &String| line.contains("gpuledger-collector") && line.contains(home.to_str().unwrap());
    lines.map(|line| text(&line)).filter(is_one).collect()
}

fn is_collector(line: &str) -> bool {
    line.split('\0').next().unwrap().ends_with("gpuledger-collector")
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_demo_that_is_killed_takes_its_database_and_its_collectors_with_it() {
    let home = tempfile::tempdir().unwrap();
    let mut child = demo(home.path(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let Some(line) = out.find_map(|line| line.ok().filter(|line| line.contains("private to this demo")))
    else {
        let said = text(&child.wait_with_output().unwrap().stderr);
        assert!(is_missing(&said), "{said}");
        eprintln!("SKIPPED: {said}");
        return;
    };
    let port = port(&line);
    wait_until("both collectors run", || {
        collectors(home.path()).iter().filter(|line| is_collector(line.as_str())).count() == 2
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the database still runs", || !listens(port));
    wait_until("a collector still runs", || collectors(home.path()).is_empty());
}

#[test]
fn wrong_options_say_what_is_right_before_anything_is_started() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["--price", "h100=1"][..], "--price goes with --from"),
        (&["--from", "events", "x.ndjson", "--price", "h100"], "SKU=PRICE"),
        (&["--from", "events"], "required"),
    ] {
        let output = demo(home.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(wanted), "{}", text(&output.stderr));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was made");
    }
}
