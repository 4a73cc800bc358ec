//! `gpuledger demo`, run as a person runs it: twice, on the built-in day and on a file, kept and killed.

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
    command.env_remove("GPULEDGER_NOW").env_remove("GPULEDGER_CONFIG");
    command
}

/// Runs it to its end. None, said aloud, where no `PostgreSQL` is installed: there is nothing to try it on.
fn run(home: &Path, arguments: &[&str]) -> Option<Output> {
    let output = demo(home, arguments).output().unwrap();
    let said = text(&output.stderr);
    if output.status.code() == Some(3) && said.contains("no PostgreSQL") {
        eprintln!("SKIPPED: {said}");
        return None;
    }
    Some(output)
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

#[test]
fn the_built_in_day_comes_out_as_computed_by_hand_and_the_same_twice() {
    let home = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for _ in 0..2 {
        let Some(output) = run(home.path(), &[]) else { return };
        let printed = printed(&output);
        check_day(&printed);
        assert!(!listens(port(&printed)), "the database is gone");
        let folder = PathBuf::from(after(&printed, "here      "));
        assert!(folder.starts_with(home.path().canonicalize().unwrap()), "{}", folder.display());
        pages.push(bills(&folder));
    }
    assert_eq!(pages[0], pages[1], "the same bills, byte for byte");
    let names: Vec<&str> = pages[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["GC-2026-0001.html", "GC-2026-0002.html", "GC-2026-0003.html"]);
    assert!(pages[0][0].1.contains("83.06") && pages[0][0].1.contains("Acme Robotics AG"));
}

/// Two nodes of four GPUs for 24 hours are 192 GPU hours. By memory slices: acme 12 + 10.5 + 3 whole H100, half an A100 for 6 + 4
/// hours, a quarter for 12; bolt 18 whole H100, half an A100 for 21 hours, half of one for 12; cora half an A100 for 12 hours, an eighth for
/// 12, and 36 seconds. Of A1 one memory slice in 8 is stranded while its node is seen, 22 hours; of A0 one compute slice in 7 until noon.
fn check_day(printed: &str) {
    for row in [
        "acme 33.500 33.357 17.4 %",
        "bolt 34.500 36.000 18.0 %",
        "cora 7.510 6.867 3.9 %",
        "idle 102.240 102.561 53.3 %",
        "stranded 2.750 1.714 1.4 %",
        "fault 1.500 1.500 0.8 %",
        "maintenance 2.000 2.000 1.0 %",
        "unobserved 8.000 8.000 4.2 %",
        "all 192.000 192.000 100.0 %",
        "✓ adds up to the capacity of 8 GPUs, 192.000 GPU h",
        "✓ the ledger holds: 8 GPUs",
        "nothing counts twice: 316 repeated, 1 new. The late release takes 4.000 h off",
        // Held 122.51 h; of 12 shared hours acme is billed a quarter and bolt half.
        "all 122.510 107.510 75.510",
        "critical contested cora-eval",
        "warning lost_node n2",
        // 22.5 × 2.40 + 3 × 1.20 + 6 × 0.70 + 4 × 0.80 + 3 × 1.60 = 69.80; 19 % of it is 13.262.
        "4 vision h100-80gb-hbm3 on_demand 22 h 30 min 81000 2.40 54.00",
        "81000 s × 2.40 EUR per hour ÷ 3600 = 54",
        "GC-2026-0001 acme 2026-10 69.80 13.26 83.06 EUR issued",
        // 18 × 2.60 + 21 × 0.90 + 6 × 1.80.
        "GC-2026-0002 bolt 2026-10 76.50 – 76.50 USD issued",
        // 12 × 110 + 12 × 30 + a minute of 250 an hour, rounded to 4; 10 % of 1684 is 168.4.
        "GC-2026-0003 cora 2026-10 1684 168 1852 JPY issued",
    ] {
        assert_line(printed, row);
    }
    let (start, end) = (printed.find("\n{").unwrap(), printed.find("\n}").unwrap());
    let answer: serde_json::Value = serde_json::from_str(&printed[start..end + 2]).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let seconds: Vec<_> =
        rows.iter().map(|row| (row["project"].as_str(), row["unit_seconds"].as_str())).collect();
    assert_eq!(
        seconds,
        [(Some("speech"), Some("46800")), (Some("vision"), Some("91800"))],
        "acme's rows and nobody else's"
    );
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

/// Stops a kept server however the test ends.
struct Stop(String);

impl Drop for Stop {
    fn drop(&mut self) {
        let stopped = Command::new("sh").args(["-c", &self.0]).stdout(Stdio::null()).status();
        assert!(std::thread::panicking() || stopped.unwrap().success(), "{}", self.0);
    }
}

#[test]
fn a_kept_demo_goes_on_as_an_ordinary_database() {
    let home = tempfile::tempdir().unwrap();
    let Some(output) = run(home.path(), &["--keep", "kept"]) else { return };
    let out = printed(&output);
    let stop = Stop(out.lines().find_map(|line| line.strip_prefix("stop      ")).unwrap().to_owned());
    let url = after(&out, "DATABASE_URL='");
    let mut verify = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    let verdict =
        verify.args(["ledger", "verify"]).current_dir(home.path()).env("DATABASE_URL", url).output().unwrap();
    assert!(printed(&verdict).contains("the ledger holds: 8 GPUs"));
    assert_eq!(bills(&home.path().join("kept")).len(), 3);
    drop(stop);
    assert!(!listens(port(&out)));
    if home.path().join("kept/postgres").exists() {
        let again = demo(home.path(), &["--keep", "kept"]).output().unwrap();
        assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
        assert!(text(&again.stderr).contains("earlier demo"));
    } else {
        // Root's server runs as another user, who cannot reach a private folder: its data lie elsewhere.
        let elsewhere = PathBuf::from(after(&out, "database  "));
        std::fs::remove_dir_all(elsewhere).unwrap();
    }
}

#[test]
fn a_demo_that_is_killed_takes_its_database_with_it() {
    let home = tempfile::tempdir().unwrap();
    let mut child = demo(home.path(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let Some(line) = out.find_map(|line| line.ok().filter(|line| line.contains("private to this demo")))
    else {
        let said = text(&child.wait_with_output().unwrap().stderr);
        assert!(said.contains("no PostgreSQL"), "{said}");
        eprintln!("SKIPPED: {said}");
        return;
    };
    let port = port(&line);
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while listens(port) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the database still runs");
        std::thread::sleep(Duration::from_millis(100));
    }
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
